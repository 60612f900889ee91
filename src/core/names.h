/*
 * names.h - valid names of namespaces, queues, keys and correlation ids.
 *
 *      namespace, queue    A-Z a-z 0-9 . _ -                      1 to 128 bytes    folded;
 *                                                                 a leading dot is reserved
 *      key                 UTF-8 without control characters       1 to 256 bytes
 *      lock key            names with slashes between; leading    1 to 128 bytes    folded
 *                          dots are allowed
 *      correlation id      printable ASCII, spaces too            1 to 128 bytes
 *
 * Folded: in lower case. Every dialect checks names at the edge; inside, a name is valid and
 * folded. A key is an ordering or idempotency key. A refusal is SLU_EINVAL, and its text names
 * `what`: "queue" or "key", the word of the caller's input.
 */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	NAME_LONGEST = 128,
	NAME_TEXT = NAME_LONGEST + 1, /* with the NUL */
	KEY_LONGEST = 256,
	SHARE_LONGEST = 128,
	CORRELATION_LONGEST = 128
};

/* Writes the folded name with a NUL. A refusal leaves out unchanged. */
int name_fold(struct slice name, const char *what, char out[static NAME_TEXT],
	      struct slu_err *err);

/* Returns true for a valid name that name_fold leaves as it is. */
bool name_is_folded(struct slice name);

/* Folds a lock key like a name. */
int lock_key_fold(struct slice key, const char *what, char out[static NAME_TEXT],
		  struct slu_err *err);

/* The spelling of a namespace and a queue, with capital letters. The server displays the first
 * spelling that it gets; n 0: the name itself. */
struct spelling {
	struct slice space;
	struct slice queue;
};

int key_check(struct slice key, const char *what, struct slu_err *err);
int share_check(struct slice share, const char *what, struct slu_err *err); /* as a key, but shorter */
int kind_check(struct slice kind, const char *what, struct slu_err *err);   /* 1 to KIND_MAX bytes: letters, digits and . _ - : / */
int correlation_check(struct slice id, const char *what, struct slu_err *err);

#endif
