/*
 * client.h - the inside of a struct slu_client: its servers and connections, and requests that are
 * repeated where that is safe.
 *
 *         struct client_request a;
 *
 *         client_request_init(&a, c, call, "POST", "/v1/queue/ack");
 *         json_out_...(&a.body ...);
 *         a.repeatable = true;
 *         rc = client_request_run(&a, err);
 *         if (!rc)
 *                 use(a.link->http.answer.status, client_request_body(&a));
 *         client_request_release(&a);
 *
 *      slu_client ──> servers[now], servers[next] ...        client_failover changes `now`
 *          └──> idle links, the last used first ──> link: a server and a struct http
 *
 * Threads share a client: its changing members are under mtx. A link and a request belong to one
 * thread.
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
	CLIENT_IDLE_MAX = 64, /* idle connections, at most */
	CLIENT_OWNER_TEXT = 132
};

struct slu_client {
	/* Set when the client is created. */
	uint32_t born; /* forked.h */
	struct address servers[CLIENT_SERVERS_MAX];
	unsigned n_servers;
	char *space, *token;
	struct tls_context *tls;
	slu_time timeout, patience;
	slu_time absence; /* replaces patience in a call as long as no server answers */
	bool idempotent, packed;

	int stop_fd; /* readable after slu_client_stop */
	_Atomic bool stopped;
	_Atomic uint64_t owners; /* how many idempotency keys were made */
	_Atomic unsigned now;    /* index of the server that answered last */

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

struct client_request {
	struct slu_client *client;
	const char *method;
	struct buf path;
	struct buf body;
	struct buf fields;        /* more fields of the head */
	const char *content_type; /* NULL = JSON */
	http_source *source;      /* the rest of the body after `body`; NULL = none */
	void *source_arg;
	void (*rewind)(void *source_arg); /* rewinds the source; NULL = the source can be read once */
	bool repeatable;
	bool in_pieces;
	bool begins; /* begins new work: a stopped client refuses it */

	/* For a request that waits: the waiting time. `write` is called before each try, with the time that
	 * is left, and writes path or body. */
	bool waits;
	slu_time wait;
	void (*write)(struct client_request *a, slu_time left);
	void *user;

	/* From the caller's slu_call. */
	const char *space;
	struct patience until;
	bool has_timeout;       /* the caller set the timeout */
	struct slu_err refused; /* an invalid slu_call of the caller; client_request_run returns it */
	slu_time patience;      /* CLIENT-2 */

	/* The connection with the answer; NULL = no answer. */
	struct link *link;
	unsigned status;
	bool too_early; /* the server waited shorter than requested */
	bool in_doubt;  /* a try was sent and got no answer */
	bool met;       /* a server was reached: it answered, or the connection broke */
	bool retried;   /* then another server was tried */
};

/* path: NULL if `write` sets it. */
void client_request_init(struct client_request *a, struct slu_client *c, const struct slu_call *given,
			 const char *method, const char *path);

/* Makes it a request that waits: only a timeout of the caller applies. */
void client_request_waits(struct client_request *a, slu_time wait);

/* Appends a duration to the query of the path (http_param). 0 is not sent. */
void client_request_param_time(struct client_request *a, const char *name, slu_time t);

/* Add a field to the head (NULL is not sent), and the fields of a lease. */
void client_request_field(struct client_request *a, const char *name, const char *value);
void client_request_lease(struct client_request *a, const struct slu_lease *l);

/*
 * Sends the request, again if needed. Returns 0 for a status below 300, or the code of the refusal. With
 * in_pieces the caller reads the body of a good answer from link->http.
 */
int client_request_run(struct client_request *a, struct slu_err *err);

/* The same, and releases the request: for an answer without content. */
int client_request_finish(struct client_request *a, struct slu_err *err);

/* The body of a complete answer. */
struct slice client_request_body(const struct client_request *a);

/* Returns the connection to the idle ones, or closes it if its answer was not read completely. */
void client_request_release(struct client_request *a);

/* Takes the link out of the request, to read on; the caller ends it by link_end. */
struct link *client_request_take(struct client_request *a);

/* Sets how long a call tries while no address accepts connections, instead of patience: a user may have
 * mistyped the address. Call it before the first request. */
void client_set_absence(struct slu_client *c, slu_time t);

/* An idle link to that server, or a new one; NULL if memory runs out. */
struct link *link_begin(struct slu_client *c, unsigned server);
void link_end(struct slu_client *c, struct link *l); /* NULL is fine */

enum refusal_kind {
	REFUSAL_FINAL,
	REFUSAL_AWAY,   /* this server does not serve now; it did nothing */
	REFUSAL_WAITING /* the awaited event did not occur */
};

/* The code and text of a refusal: by its name, or by its status if the name is unknown. */
int refusal_read(const struct client_request *a, enum refusal_kind *kind, struct slu_err *err);

/* The code of an error name of either API; by the status if the name is unknown. */
int refusal_code(struct slice name, unsigned status, enum refusal_kind *kind);

/* Returns SLU_ECLOSED, with the text for a stopped client. */
int client_stopped(struct slu_err *err);

/* "host-pid-number": unique among all clients */
void client_process(char out[static CLIENT_OWNER_TEXT]); /* "host:pid" */
void client_owner(struct slu_client *c, const char *given, char out[static CLIENT_OWNER_TEXT]);

/* Whole seconds of the lease API, rounded up; and the value of a waiting time. */
int64_t seconds_up(slu_time t);
int64_t seconds_to_wait(slu_time wait);

#endif
