/*
 * ownstate.h - a document of the server's own beside a queue: attributes of SQS, topics of codeQ.
 *
 *      ownstate_load      STATE_GET ──────────────────────────────────────> then(a): k->text
 *      ownstate_change    ACQUIRE, STATE_GET, change(a), STATE_PUT, RELEASE ─> then(a)
 *
 * The document is the state of a reserved lock key, ~DIALECT/QUEUE, written as clients write theirs. So it is as durable,
 * moves with the locks of its namespace, and concurrent changes follow each other.
 *
 *  OWNSTATE-1  All functions run on the loop. They call `then`, or `refuse` with k->rc and k->err if they fail.
 *  OWNSTATE-2  apicall.part is the struct ownstate, which may be the first member of a larger struct.
 *  OWNSTATE-3  k->text is empty if there is no document; it is in the memory of the apicall.
 */
#ifndef API_QUEUE_OWNSTATE_H
#define API_QUEUE_OWNSTATE_H

#include "api/apicall.h"
#include "core/names.h"

enum {
	OWNSTATE_MAX = 64 << 10 /* bytes of a document */
};

struct ownstate {
	struct slice space;
	char key[NAME_TEXT + 16];
	struct slice text;  /* OWNSTATE-3 */
	struct slice next;  /* change: what is written; n 0: the document is removed */
	int rc;             /* of `change`, or of the op that failed */
	struct slu_err err; /* its text */
	bool refused;       /* rc is the result of `change` */

	/* Looks at k->text and sets k->next. Returns 0, or a code with its text in err: then nothing is written. */
	int (*change)(struct apicall *a, struct slu_err *err);
	void (*then)(struct apicall *a);
	void (*refuse)(struct apicall *a); /* NULL: apicall_refuse */

	/* Private. */
	uint64_t token; /* of the lease; 0: none */
	uint8_t txn[LOCK_TXN];
	struct op_put put;
	struct buf read;
	bool has; /* there is a document */
};

/* Sets a->part. prefix: "~sqs/". space and queue live as long as the call. */
void ownstate_init(struct ownstate *k, struct apicall *a, struct slice space, const char *prefix, struct slice queue);

void ownstate_load(struct ownstate *k, struct apicall *a, void (*then)(struct apicall *a));
void ownstate_change(struct ownstate *k, struct apicall *a, int (*change)(struct apicall *a, struct slu_err *err),
		     void (*then)(struct apicall *a));

#endif
