/*
 * api.h - what all dialects share: the broker behind them and what they count.
 *
 * Errors are answered here, in one form:
 *
 *         {"error":"lease_lost","message":"lease expired or not yours"}
 *         {"error":"limit_reached","message":"namespace a: ...","limit":"rate"}
 *
 * The name and the status come from the error table (sluice/err.h), the limit from
 * base/limit.h. 429 and 503 say Retry-After. X-Request-Id and X-Correlation-Id come back as they were sent, if they
 * are printable ASCII of at most 128 bytes.
 */
#ifndef API_API_H
#define API_API_H

#include "api/gate.h"
#include "api/uploads.h"
#include "base/clock.h"
#include "base/episode.h"
#include "base/json_out.h"
#include "base/metrics.h"
#include "net/lane.h"

#include <sluice/err.h>
#include <sluice/log.h>

#include <stdatomic.h>

struct ask;
struct broker;
struct broker_progress;
struct call;
struct gathers;
struct guard;
struct lines;
struct op;
struct reload;
struct server;

/* What requests were asked with, kept for others: api/ask.h. */
struct ask_spares {
	struct ask *first;
	unsigned n;
	char apart[48]; /* each is one thread's: no line of the cache has two */
};

struct api {
	struct broker *broker;                  /* borrowed, as all pointers; there once it is `open` */
	_Atomic bool open;                      /* set last; until then all but /healthz waits, or is 503 `starting` */
	const struct broker_progress *progress; /* of the opening; NULL: not known */
	struct server *server;                  /* for its metrics; NULL: none */
	struct guard *guard;
	struct clock *clock;
	struct slu_log *log;
	const char *engine; /* "log", shown by /healthz and /metrics */
	const char *sync;   /* "interval=10ms" */
	slu_time started;   /* on the wall clock; set by api_init */
	_Atomic bool draining;
	struct reload *reload;     /* the settings; NULL: nobody may see or change them */
	unsigned threads;          /* of the server: 1, unless set before api_init */
	struct metrics *ops;       /* a set a thread, and in it a series per verb */
	struct ask_spares *spares; /* a thread each */
	struct metrics hits;       /* a series per limit */
	struct metrics refused;    /* api/refusals.h: a series per reason */
	struct episodes episodes;  /* what goes wrong again and again; ticked by the node */
	struct gate gate;
	struct lane lane; /* of ask_long_job */
	struct uploads uploads;

	/* Of the lockd dialect. */
	_Atomic uint32_t consumers;     /* calls that wait for messages, or stream them, now */
	_Atomic uint32_t max_consumers; /* 0: no limit */
	_Atomic uint32_t unsettled;     /* deliveries of one stream; fewer than its page: that */
	_Atomic uint64_t flows;         /* numbers of streams, for op.flow */

	_Atomic uint32_t disagreements; /* nodes whose shard map is not ours */
	_Atomic uint32_t twins;         /* 1: another node has our number */
	_Atomic uint32_t metric_queues; /* that have lines of their own in /metrics */

	_Atomic slu_time stats_timeout; /* of a question to shards; 0: none */
	struct gathers *gathers;        /* api/gather.h */
	struct lines *audit;            /* api/audit.h; NULL: off */
};

/* How an API speaks that is not the flat one: what struct route has as its dialect. */
struct dialect {
	void (*greet)(struct call *c, const struct api *api); /* instead of api_echo */

	/* Answers, instead of api_refuse_err. */
	void (*refuse)(struct call *c, const struct slu_err *err, int64_t index);

	/* Parameters of queries that may be given once; behind the last is NULL. */
	const char *const *params;
};

/* SLU_ENOMEM. The caller has set the pointers. */
int api_init(struct api *api);
void api_release(struct api *api);

/* An op of this api was answered, on the network thread of that number. */
void api_count(struct api *api, unsigned thread, const struct op *op, slu_time took);

/* A limit was met: err->limit, or none. */
void api_count_limit(struct api *api, const struct slu_err *err);

/* Append all that is counted here as Prometheus text. */
void api_metrics(struct api *api, struct buf *out);

/* SLU_ESTARTING in words: how far the opening has come. */
int api_starting(const struct api *api, struct slu_err *err);

/* The members of an error, inside an object that the caller has opened. */
void api_write_error(struct json_out *w, int rc, const char *text);

/* Every JSON answer ends with a newline, so that a shell shows its prompt on a line of its
 * own. Adds the newline unless it is there. */
void api_end_line(struct buf *out);

/* Answer a call with an error; text NULL: what the table says. index: which item of
 * a list, or -1. */
void api_refuse(struct call *c, int rc, const char *text, int64_t index);

/* The same with what err says beyond its text: limit, Retry-After. */
void api_refuse_err(struct call *c, const struct slu_err *err, int64_t index);
void api_write_err(struct json_out *w, const struct slu_err *err);
void api_add_retry(struct call *c, const struct slu_err *err);

/* At the door: every answer, and every log line about the call, has its ids. */
void api_echo(struct call *c, const struct api *api);

/* For server_conf: the body of what the server answers by itself. */
void api_describe(struct buf *out, unsigned status, const char *reason,
		  struct slice method, struct slice path, void *arg);

extern const char api_json[]; /* the content type */

#endif
