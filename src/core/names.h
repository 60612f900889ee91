/*
 * names.h - what namespaces, queues, keys and correlation ids may be called.
 *
 *      namespace, queue    A-Z a-z 0-9 . _ -    1 to 128 bytes    folded to lower case;
 *                                                                 a leading dot is ours
 *      key                 UTF-8 without control characters       1 to 256 bytes
 *      lock key            names with slashes between, leading    1 to 128 bytes    folded
 *                          dots too
 *      correlation id      printable ASCII, spaces too            1 to 128 bytes
 *
 * Checked at the edge, in every dialect; inside, a name is folded and sound. Keys are
 * ordering and idempotency keys; they are not folded. A refusal is SLU_EINVAL, and
 * its sentence begins with `what`: "queue" or "key", as the caller's input calls it.
 */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	NAME_LONGEST = 128,
	NAME_TEXT = NAME_LONGEST + 1, /* with the end */
	KEY_LONGEST = 256,
	CORRELATION_LONGEST = 128
};

/* The folded name, terminated. On a refusal out is as it was. */
int name_fold(struct slice name, const char *what, char out[static NAME_TEXT],
	      struct slu_err *err);

/* The same for a lock key. */
int lock_key_fold(struct slice key, const char *what, char out[static NAME_TEXT],
		  struct slu_err *err);

/* How a caller spelled a namespace and a queue. The first spelling is the one that is
 * shown; n 0: as the name is. */
struct spelling {
	struct slice space;
	struct slice queue;
};

int key_check(struct slice key, const char *what, struct slu_err *err);
int correlation_check(struct slice id, const char *what, struct slu_err *err);

#endif
