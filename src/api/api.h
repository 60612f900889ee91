/*
 * api.h - the state that all dialects share: the broker, the settings, the metrics.
 *
 * The node owns it. Network threads read it; atomic members change while they run.
 */
#ifndef API_API_H
#define API_API_H

#include "api/mask/mask.h"
#include "api/ratelimit.h"
#include "duty/zones.h"
#include "api/uploads.h"
#include "base/clock.h"
#include "base/episode.h"
#include "base/json/json_out.h"
#include "base/metrics.h"
#include "net/filejobs.h"

#include <sluice/err.h>
#include <sluice/log.h>

#include <stdatomic.h>

struct apicall;
struct broker;
struct broker_progress;
struct dialect;
struct fanouts;
struct guard;
struct known;
struct lines;
struct live;
struct nodes_ops;
struct op;
struct reload;
struct server;
struct subscribers;
struct workers;

/* Finished apicalls of one thread, for later requests: api/apicall.h. */
struct apicall_spares {
	struct apicall *first;
	unsigned n;
	char apart[48]; /* fills a cache line: threads do not share one */
};

struct api {
	struct broker *broker;                            /* borrowed, as all pointers; NULL until `open` */
	_Atomic bool open;                                /* set last; until then requests wait or get 503 `starting` */
	const struct nodes_ops *nodes;                    /* api/nodes.h; NULL: no store that several nodes share */
	const struct broker_progress *progress;           /* of the recovery; NULL: unknown */
	struct server *server;                            /* for its metrics; NULL: none */
	void (*more_metrics)(void *arg, struct buf *out); /* appends metrics of the process; NULL: none */
	void *more_arg;
	const struct dialect *const *dialects; /* api/dialect.h: the dialects of its routes */
	struct guard *guard;
	struct clock *clock;
	struct slu_log *log;
	const char *engine; /* "log", shown by /healthz and /metrics */
	const char *sync;   /* "interval=10ms" */
	slu_time started;   /* on the wall clock; set by api_init */
	_Atomic bool draining;
	struct reload *reload;         /* the settings; NULL: requests may not see or change them */
	unsigned threads;              /* of the server; 1 unless set before api_init */
	struct metrics *ops;           /* one set per thread, one series per verb */
	struct apicall_spares *spares; /* one per thread */
	struct metrics hits;           /* one series per limit */
	struct metrics refused;        /* api/refusals.h: one series per reason */
	struct episodes episodes;      /* repeated refusals; the node ticks them */
	struct ratelimit ratelimit;
	struct filejobs filejobs; /* of apicall_long_job */
	struct uploads uploads;
	struct zones zones; /* duty/zones.h */

	/* Consumers, in all dialects. */
	_Atomic uint32_t consumers;     /* calls that wait for messages, or stream them, now */
	_Atomic uint32_t max_consumers; /* 0: no limit */
	_Atomic uint32_t unsettled;     /* most unsettled deliveries of a stream, at least its page */
	_Atomic uint64_t credits;       /* the last number given to a stream: op.claim.stream */

	_Atomic uint32_t disagreements; /* nodes with another shard map */
	_Atomic uint32_t twins;         /* 1: another node has the same node.id */
	_Atomic uint32_t metric_queues; /* queues with lines of their own in /metrics, at most */
	_Atomic uint32_t disk_warn;     /* percent of a disk that should be free; 0: never warn */

	_Atomic uint32_t searches; /* that run now: api/admin/search.c */

	_Atomic bool console;    /* serve the web console: api/console/console.h */
	const char *environment; /* a name that the console shows; NULL or "": none */
	const char *trace_url;   /* the setting trace.url; NULL or "": none */

	_Atomic slu_time stats_timeout;  /* how long a fan-out waits; 0: no limit */
	struct fanouts *fanouts;         /* api/fanout.h */
	struct known *known;             /* api/queue/known.h */
	struct workers *workers;         /* api/worker/workers.h */
	struct live *live;               /* api/live/live.h; NULL: none, by hand */
	struct subscribers *subscribers; /* api/codeq/subscribers.h */
	struct {
		void (*kick)(void *arg); /* server/webhooks.h: there is one to send; NULL: no sender */
		void *arg;
	} webhooks;
	struct lines *audit; /* api/audit/audit.h; NULL: off */
	struct masks masks;  /* what bodies hide from callers who may only look */
};

/* The caller has set the pointers. Returns SLU_ENOMEM. */
int api_init(struct api *api);
void api_release(struct api *api);

/* Counts an op that was answered, on network thread `thread`. */
void api_count(struct api *api, unsigned thread, const struct op *op, slu_time took);

/* Counts the limit err->limit; NULL counts nothing. */
void api_count_limit(struct api *api, const struct slu_err *err);

/* Appends the metrics of the API as Prometheus text. */
void api_metrics(struct api *api, struct buf *out);

/* Fills err with SLU_ESTARTING and how much of the log was read; returns it. */
int api_starting(const struct api *api, struct slu_err *err);

/* Adds a newline unless out ends with one. Every JSON answer does, so that a shell shows its
 * prompt on a new line. */
void api_end_line(struct buf *out);

/* The seconds of Retry-After: err->retry_after, at least API_RETRY_AFTER_SECONDS. */
int64_t api_retry_seconds(const struct slu_err *err);

extern const char api_json[]; /* the content type */

#endif
