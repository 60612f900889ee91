/*
 * client.h - the inside of a struct slu_client: servers, connections, and how a call is
 * made that may have to be made again.
 *
 *         struct ask a;
 *
 *         ask_init(&a, c, call, "POST", "/v1/queue/ack");
 *         json_out_...(&a.body ...);
 *         a.repeatable = true;
 *         rc = ask_run(&a, err);
 *         if (!rc)
 *                 use(a.link->http.answer.status, ask_body(&a));
 *         ask_release(&a);
 *
 *      slu_client ──> servers[now], servers[next] ...        client_failover moves `now`
 *          └──> idle links, the last used first ──> link: a server and a struct http
 *
 * A client is shared by threads: what changes in it is under mtx. A link and an ask belong
 * to the thread that has them.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "base/list.h"
#include "client/http.h"

#include <sluice/client.h>

#include <pthread.h>
#include <stdatomic.h>

enum {
	CLIENT_SERVERS_MAX = 16,
	CLIENT_IDLE_MAX = 64, /* connections that rest */
	CLIENT_OWNER_TEXT = 132
};

struct slu_client {
	/* Set once. */
	uint32_t born; /* forked.h */
	struct address servers[CLIENT_SERVERS_MAX];
	unsigned n_servers;
	char *space, *token;
	struct tls_context *tls;
	slu_time timeout, patience;
	slu_time absence; /* as patience, while no server was met in a call */
	bool idempotent;

	int stop_fd; /* readable: slu_client_stop was called */
	_Atomic bool stopped;
	_Atomic uint64_t owners; /* made so far */
	_Atomic unsigned now;    /* the server that answered last */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct list idle;
	unsigned n_idle;
};

struct link {
	struct list node;
	unsigned server;
	struct http http;
};

struct ask {
	struct slu_client *client;
	const char *method;
	struct buf path;
	struct buf body;
	struct buf fields;        /* of the head */
	const char *content_type; /* NULL: JSON */
	http_source *source;      /* what follows body; NULL: nothing does */
	void *source_arg;
	void (*rewind)(void *source_arg); /* read it from its begin again; NULL: once only */
	bool repeatable;
	bool in_pieces;
	bool begins; /* new work, which a client that is stopped refuses */

	/* A call that waits: how long the server is asked to, and how to say it: called
	 * before each try, with what is left, to write path or body anew. */
	bool waits;
	slu_time wait;
	void (*write)(struct ask *a, slu_time left);
	void *user;

	/* From the caller. */
	const char *space;
	struct patience until;
	bool has_timeout;       /* it is the caller's own */
	struct slu_err refused; /* the caller's slu_call is not valid: ask_run returns it */
	slu_time patience;      /* Q2 */

	/* The answer; NULL: there was none. */
	struct link *link;
	unsigned status;
	bool too_early; /* it waited, but not for as long as it was asked to */
	bool in_doubt;  /* a try was sent and not answered */
	bool met;       /* a server was there, and answered or broke off */
	bool retried;   /* and then another */
};

/* path may be NULL: write does it. */
void ask_init(struct ask *a, struct slu_client *c, const struct slu_call *call,
	      const char *method, const char *path);

/* It waits: no timeout but the caller's own. */
void ask_waits(struct ask *a, slu_time wait);

/* Append to the query of the path. NULL is left out. */
void ask_param(struct ask *a, const char *name, const char *value);
void ask_param_u64(struct ask *a, const char *name, uint64_t value);
void ask_param_time(struct ask *a, const char *name, slu_time t); /* 0 is left out */

/* A field of the head; NULL is left out. And those of a lease. */
void ask_field(struct ask *a, const char *name, const char *value);
void ask_lease(struct ask *a, const struct slu_lease *l);

/*
 * Make the call: 0 and a status below 300; or the code of the refusal. With in_pieces the
 * body of a good answer is still to come, from link->http.
 */
int ask_run(struct ask *a, struct slu_err *err);

/* Of a whole answer. */
struct slice ask_body(const struct ask *a);

/* The connection goes back to rest, or is closed when its answer was not read whole. */
void ask_release(struct ask *a);

/* Take the link out of the ask, for who reads on; then link_end. */
struct link *ask_take(struct ask *a);

/* How long a call tries while nobody listens at any address, instead of patience: for a person
 * who has mistyped it. Before the first call. */
void client_set_absence(struct slu_client *c, slu_time t);

/* One that rests and leads to that server, or a new one; NULL: no memory. */
struct link *link_begin(struct slu_client *c, unsigned server);
void link_end(struct slu_client *c, struct link *l); /* NULL is fine */

enum refusal_kind {
	REFUSAL_FINAL,
	REFUSAL_AWAY,   /* it is not the one to ask, or not yet; nothing has happened */
	REFUSAL_WAITING /* what was waited for did not come */
};

/* The code of a refusal, by its name or else by its status, and its sentence. */
int refusal_read(const struct ask *a, enum refusal_kind *kind, struct slu_err *err);

/* The code of a name of either API; the status decides about one that is not known. */
int refusal_code(struct slice name, unsigned status, enum refusal_kind *kind);

/* SLU_ECLOSED: slu_client_stop was called. */
int client_stopped(struct slu_err *err);

/* "host-pid-number": no other client of the world has it. */
void client_process(char out[static CLIENT_OWNER_TEXT]); /* "host:pid" */
void client_owner(struct slu_client *c, const char *given, char out[static CLIENT_OWNER_TEXT]);

/* Whole seconds, rounded up, as the lease API has them; and how it is told to wait. */
int64_t seconds_up(slu_time t);
int64_t seconds_to_wait(slu_time wait);

#endif
