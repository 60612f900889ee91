/*
 * cancel.h - the inside of a cancel token: counted, and it tells who waits.
 *
 * Lock order: a token's lock comes before the lock that a hook's function takes, so
 * nobody hooks or unhooks while holding that one.
 */
#ifndef EXEC_CANCEL_H
#define EXEC_CANCEL_H

#include "base/list.h"

#include <sluice/cancel.h>

/* Embedded in whatever waits. `fired` is called once, on the firing thread, with the
 * token's lock held: note it, wake the waiter, return. From then on the node is free for
 * whoever was told. */
struct cancel_hook {
	struct list node;
	void (*fired)(struct cancel_hook *h);
};

struct slu_cancel *cancel_ref(struct slu_cancel *c); /* NULL is fine */

/* False when the token has fired already: not hooked, `fired` will not be called. */
bool cancel_hook(struct slu_cancel *c, struct cancel_hook *h);

/* After this returns `fired` is neither running nor will it be called. */
void cancel_unhook(struct slu_cancel *c, struct cancel_hook *h);

const char *cancel_reason(const struct slu_cancel *c); /* valid once fired */

#endif
