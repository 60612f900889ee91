/*
 * mask.h - hides values of JSON bodies from callers who may only look.
 *
 *      mask: password, card.number, *.token
 *
 *      {"user":{"password":"x"},"card":{"number":42,"type":"visa"},"token":"t","api":{"token":"t"}}
 *      {"user":{"password":"***"},"card":{"number":"***","type":"visa"},"token":"t","api":{"token":"***"}}
 *
 * A rule is a path of names with dots between, * for any one name. It hides every value whose path ends with it, of any type,
 * also in arrays.
 *
 *  MASK-1  A caller who has the right admin, write or consume in a namespace sees its bodies: it may claim them as well. Others
 *          get bodies that are masked, and what searches them searches the masked bodies: a search must not tell what a body
 *          hides. A caller who may see a body may ask for the masked one.
 *  MASK-2  A body that is not JSON and has a name of a rule in it is hidden whole, and so is a string with JSON in it that has
 *          one.
 *  MASK-3  A body that cannot be masked because it is not in memory (a payload with a file of its own) is not shown.
 *  MASK-4  The rules change while calls run: a call keeps the rules that it began with.
 */
#ifndef API_MASK_H
#define API_MASK_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <pthread.h>
#include <stdatomic.h>

struct apicall;
struct message;

enum {
	MASK_RULES = 64,
	MASK_NAMES = 8,       /* of a rule */
	MASK_RULE_MAX = 128,  /* bytes */
	MASKED_MAX = 64 << 20 /* of a masked body: *** may be longer than a value */
};

extern const struct slice mask_shown; /* what stands for a hidden value: *** */

/* Rules; never changed. */
struct mask {
	_Atomic unsigned refs;
	unsigned n;
	struct mask_rule {
		unsigned n;
		struct slice names[MASK_NAMES]; /* in text */
		char text[MASK_RULE_MAX + 1];
	} rules[];
};

/* Returns SLU_EINVAL for an invalid rule, or SLU_ENOMEM. *out: NULL if there are none. */
int mask_new(char *const *rules, unsigned n, struct mask **out, struct slu_err *err);
void mask_unref(struct mask *m); /* NULL is fine */

/* The rules in force. Any thread. */
struct masks {
	pthread_mutex_t mtx;
	struct mask *now; /* NULL: none */
};

void masks_init(struct masks *s);
void masks_release(struct masks *s);
void masks_set(struct masks *s, struct mask *m); /* takes the reference */

/* MASK-1: a reference to the rules for bodies of this namespace (n 0: of all) that are shown to the caller of a; NULL: bodies
 * are shown as they are. asked: also if the caller may see them. */
struct mask *mask_for(const struct apicall *a, struct slice namespace, bool asked);

/* Whether the caller may see what the rules hide. */
bool mask_may_see(const struct apicall *a, struct slice namespace);

/* Appends the body to out, with what the rules hide as ***. Returns whether there was something; if out has failed the result
 * means nothing. */
bool mask_body(const struct mask *m, struct slice body, struct buf *out);

/* Replaces the body by a masked one in the memory of the apicall, if the caller may only look at the namespace. Returns
 * SLU_ENOMEM. */
int mask_for_caller(struct apicall *a, struct slice namespace, struct slice *body);

/* The same for a message to enqueue, as JSON: its payload in base64 is hidden whole. */
int mask_put_for_caller(struct apicall *a, struct slice namespace, struct slice *put);

/* Replaces payload and attributes of a message by masked ones in room, which must live as long as the message.
 * *hidden: there was something to hide. Returns SLU_ENOMEM. */
int mask_message(const struct mask *m, struct message *message, struct buf *room, bool *hidden);

#endif
