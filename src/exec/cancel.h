/*
 * cancel.h - cancel tokens inside the library: references, and hooks for waiting threads.
 *
 * Lock order: the token's lock, then the lock that a hook's function takes. So do not hook or
 * unhook while holding the second.
 */
#ifndef EXEC_CANCEL_H
#define EXEC_CANCEL_H

#include "base/list.h"

#include <sluice/cancel.h>

/* Embedded in an object that waits. `fired` is called once, on the thread that fires the token, with
 * the token's lock held: it wakes the waiter and returns. From then on the waiter may use `node`. */
struct cancel_hook {
	struct list node;
	void (*fired)(struct cancel_hook *h);
};

struct slu_cancel *cancel_ref(struct slu_cancel *c); /* NULL is fine */

/* Returns false if the token has fired already; then `fired` is not called. */
bool cancel_hook(struct slu_cancel *c, struct cancel_hook *h);

/* After its return `fired` is not running and will not be called. */
void cancel_unhook(struct slu_cancel *c, struct cancel_hook *h);

const char *cancel_reason(const struct slu_cancel *c); /* valid once fired */

#endif
