/*
 * codeq.h - the codeQ dialect: what the clients of codeQ speak, JSON over HTTP below /v1/codeq.
 *
 *      POST /v1/codeq/tasks                {"command":"MAIL","payload":{...}}      a producer
 *      POST /v1/codeq/tasks/claim          {"commands":["MAIL"],"waitSeconds":10}  a worker
 *      POST /v1/codeq/tasks/{id}/result    {"status":"COMPLETED","result":{...}}   the same worker
 *      GET  /v1/codeq/tasks/{id}/result?waitSeconds=30                             a producer
 *
 *      tenant    namespace                      command    queue
 *      task      message; its id is the uid     result     result of the ack
 *      priority  9 - p: 9 goes first            webhook    attribute
 *
 * A finished task is the result of its message, a document {"task":{...},"result":{...}}, kept as long as the topic says.
 *
 *  CODEQ-1  The token chooses the tenant (auth/codeq_token.h); a token of Sluice, or none, the namespace of
 *           identity_home. An id of another tenant is 404.
 *  CODEQ-2  The subject that claimed a task settles it. Two workers with one subject are the same worker.
 *           After a restart the server does not know the owner of a lease, and any worker of the tenant may settle it.
 *  CODEQ-3  The settle carries the token of the lease that was looked at, so that a lease that ended meanwhile is 409.
 *  CODEQ-4  The base path is a setting (dialect.base); a handler looks at what follows the path of its route.
 */
#ifndef API_CODEQ_CODEQ_H
#define API_CODEQ_CODEQ_H

#include "api/dialect.h"
#include "api/handler.h"
#include "api/rows.h"
#include "auth/codeq_token.h"
#include "core/names.h"

enum {
	CODEQ_BATCH = 100,       /* tasks or results of a batch */
	CODEQ_CLAIMS = 10,       /* tasks of a claim */
	CODEQ_COMMANDS = 64,     /* commands of a claim */
	CODEQ_WAIT = 30,         /* seconds that a claim may wait */
	CODEQ_RESULT_WAIT = 60,  /* seconds that a look at a result may wait */
	CODEQ_LEASE = 300,       /* seconds of a lease that names none */
	CODEQ_BACKOFF = 900,     /* seconds of the delay of a nack at most */
	CODEQ_PRIORITIES = 10,   /* 0 to 9, and 9 goes first */
	CODEQ_RETENTION = 86400, /* seconds that a finished task is kept */
	CODEQ_WEBHOOK = 2048,    /* bytes of the address of a webhook */
	CODEQ_ARTIFACTS = 64,    /* of a result */
	CODEQ_BODY = 1200 << 10, /* bytes of a request with one task or result */
	CODEQ_BATCH_BODY = 16 << 20
};

/* Who may use a route. */
enum codeq_who {
	CODEQ_PRODUCER,
	CODEQ_WORKER, /* with the scope of the action */
	CODEQ_EITHER,
	CODEQ_ADMINS
};

struct codeq_action {
	void (*run)(struct apicall *a);
	size_t own; /* bytes of codeq_call.own, zeroed */
	enum codeq_who who;
	unsigned scope; /* of a worker */
};

/* apicall.state of every action. */
struct codeq_call {
	const struct codeq_token *token; /* NULL: a token of Sluice, or none */
	char space[NAME_TEXT];           /* the tenant */
	void *own;                       /* of the action */
	uint32_t wait;                   /* waitSeconds of the query */
	struct slice deletion;           /* deletionPolicy of the query */
};

static inline struct codeq_call *
codeq_of(struct apicall *a)
{
	return a->state;
}

static inline struct slice
codeq_space(struct apicall *a)
{
	return slice_of(codeq_of(a)->space);
}

/* What follows the path of the route: an id, a command, the name of a topic. */
struct slice codeq_rest(struct apicall *a);

/* Answers {"error":"..."}. */
void codeq_refuse(struct apicall *a, unsigned status, const char *fmt, ...) SLU_PRINTF(3, 4);

/* Answers with the status of an SLU_ code. */
void codeq_refuse_rc(struct apicall *a, int rc, const char *text);

/* The status of an SLU_ code in this dialect. */
unsigned codeq_status(int rc);

/* A copy in the memory of the apicall, with a NUL; p NULL: no memory. */
struct slice codeq_copy(struct apicall *a, struct slice text);

extern const struct dialect codeq_dialect;

/* The actions. */
extern const struct codeq_action codeq_create, codeq_create_batch;
extern const struct codeq_action codeq_claim, codeq_claim_batch;
extern const struct codeq_action codeq_heartbeat, codeq_abandon, codeq_nack;
extern const struct codeq_action codeq_result, codeq_result_batch;
extern const struct codeq_action codeq_task_get, codeq_result_get;
extern const struct codeq_action codeq_queues, codeq_queue, codeq_cleanup, codeq_raft;
extern const struct codeq_action codeq_topic_put, codeq_topic_get, codeq_topic_delete;
extern const struct codeq_action codeq_subscribe, codeq_subscription_beat;

#endif
