#include "api/codeq/subscribers.h"

#include "base/hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>

struct subscriber_row {
	enum subscriber_mode mode;
	slu_time end;      /* of its ttl */
	slu_time interval; /* SUBSCRIBERS-2 */
	slu_time next;     /* it may be called from then on */
	slu_time pending;  /* a call waits until then; in the past: none does */
	unsigned n_types;  /* 0: all */
	char id[SUBSCRIBER_ID];
	struct slice space, url, group; /* in text */
	char *types;                    /* the same: names, each ended by a zero */
	char text[];
};

struct subscribers {
	pthread_mutex_t mtx;
	_Atomic unsigned n;
	struct subscriber_row *rows[SUBSCRIBERS_MAX];
};

int
subscribers_new(struct subscribers **out)
{
	struct subscribers *const s = mem_zalloc(sizeof *s);

	*out = s;
	if (!s)
		return SLU_ENOMEM;
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail without attributes */
	return 0;
}

void
subscribers_free(struct subscribers *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++)
		mem_free(s->rows[i]);
	pthread_mutex_destroy(&s->mtx);
	mem_free(s);
}

bool
subscribers_any(const struct subscribers *s)
{
	return atomic_load_explicit(&s->n, memory_order_relaxed) > 0;
}

/* Forgets those whose ttl is over. */
static void
forget(struct subscribers *s, slu_time now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->rows[i]->end > now)
			s->rows[kept++] = s->rows[i];
		else
			mem_free(s->rows[i]);
	}
	s->n = kept;
}

/* --- add, beat ------------------------------------------------------------------ */

static struct slice
put(char **at, struct slice text)
{
	const struct slice copy = { *at, text.n };

	if (text.n)
		memcpy(*at, text.p, text.n);
	(*at)[text.n] = '\0';
	*at += text.n + 1;
	return copy;
}

static struct subscriber_row *
make(const struct subscriber *new, slu_time now)
{
	size_t n = new->space.n + new->url.n + new->group.n + 3;
	struct subscriber_row *r;
	char *at;

	for (unsigned i = 0; i < new->n_types; i++)
		n += new->types[i].n + 1;
	r = mem_zalloc(sizeof *r + n);
	if (!r)
		return NULL;
	at = r->text;
	r->mode = new->mode;
	r->end = now + new->ttl;
	r->interval = new->interval;
	r->next = now;
	r->space = put(&at, new->space);
	r->url = put(&at, new->url);
	r->group = put(&at, new->group);
	r->types = at;
	r->n_types = new->n_types;
	for (unsigned i = 0; i < new->n_types; i++)
		(void)put(&at, new->types[i]);
	return r;
}

/* An id that others cannot guess. */
static int
make_id(char id[static SUBSCRIBER_ID])
{
	unsigned char r[16];
	char *at = id;

	if (getrandom(r, sizeof r, 0) != sizeof r)
		return SLU_EDOWN;
	for (unsigned i = 0; i < sizeof r; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		at += snprintf(at, 3, "%02x", r[i]);
	}
	return 0;
}

static bool
has_same_types(const struct subscriber_row *a, const struct subscriber_row *b)
{
	const char *x = a->types, *y = b->types;
	unsigned i = 0;

	if (a->n_types != b->n_types)
		return false;
	for (; i < a->n_types && strcmp(x, y) == 0; i++) {
		x += strlen(x) + 1;
		y += strlen(y) + 1;
	}
	return i == a->n_types;
}

static bool
is_same(const struct subscriber_row *a, const struct subscriber_row *b)
{
	return a->mode == b->mode && slice_eq(a->space, b->space) && slice_eq(a->url, b->url) && slice_eq(a->group, b->group) &&
	       has_same_types(a, b);
}

/* SUBSCRIBERS-1. NULL: no room. Otherwise r, or the equal one. */
static struct subscriber_row *
place(struct subscribers *s, struct subscriber_row *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct subscriber_row *const old = s->rows[i];

		n += slice_eq(old->space, r->space);
		if (!is_same(old, r))
			continue;
		old->end = r->end;
		old->interval = r->interval;
		return old;
	}
	if (n >= SUBSCRIBERS_SPACE || s->n == SUBSCRIBERS_MAX)
		return NULL;
	s->rows[s->n++] = r;
	return r;
}

int
subscribers_add(struct subscribers *s, const struct subscriber *new, slu_time now, char id[static SUBSCRIBER_ID],
		struct slu_err *err)
{
	struct subscriber_row *const r = make(new, now), *placed;
	int rc = r ? make_id(r->id) : SLU_ENOMEM;

	if (rc) {
		mem_free(r);
		return slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	}
	pthread_mutex_lock(&s->mtx);
	forget(s, now);
	placed = place(s, r);
	if (placed)
		memcpy(id, placed->id, SUBSCRIBER_ID);
	pthread_mutex_unlock(&s->mtx);
	if (placed != r)
		mem_free(r);
	if (placed)
		return 0;
	return slu_fail(err, SLU_EBUSY, "too many subscriptions: expected at most %d of a namespace, and %d in all",
			SUBSCRIBERS_SPACE, SUBSCRIBERS_MAX);
}

int
subscribers_beat(struct subscribers *s, struct slice space, struct slice id, slu_time ttl, slu_time now)
{
	int rc = SLU_ENOTFOUND;

	pthread_mutex_lock(&s->mtx);
	forget(s, now);
	for (unsigned i = 0; i < s->n && rc; i++) {
		struct subscriber_row *const r = s->rows[i];

		if (!slice_eq(slice_of(r->id), id) || !slice_eq(r->space, space))
			continue;
		r->end = now + ttl;
		rc = 0;
	}
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

/* --- ready ---------------------------------------------------------------------- */

static bool
wants(const struct subscriber_row *r, struct slice space, struct slice queue)
{
	const char *type = r->types;

	if (!slice_eq(r->space, space))
		return false;
	for (unsigned i = 0; i < r->n_types; i++, type += strlen(type) + 1)
		if (slice_eq(slice_of(type), queue))
			return true;
	return r->n_types == 0;
}

static uint32_t
weight(const struct subscriber_row *r, struct slice queue)
{
	return fnv1a32_more(fnv1a32(r->id, SUBSCRIBER_ID), queue.p, queue.n);
}

/* Whether a is chosen before b, which has the same mode and group. */
static bool
is_before(const struct subscriber_row *a, const struct subscriber_row *b, struct slice queue)
{
	return a->mode == SUBSCRIBER_HASHED ? weight(a, queue) > weight(b, queue) : a->next < b->next;
}

/* Of two rivals one is called. */
static bool
is_rival(const struct subscriber_row *a, const struct subscriber_row *b)
{
	return a->mode == b->mode && (a->mode == SUBSCRIBER_HASHED || slice_eq(a->group, b->group));
}

/* The rival of r among the n chosen ones, or n. */
static unsigned
rival_of(struct subscriber_row *const *chosen, unsigned n, const struct subscriber_row *r)
{
	unsigned k = r->mode == SUBSCRIBER_FANOUT ? n : 0;

	while (k < n && !is_rival(chosen[k], r))
		k++;
	return k;
}

/* Fills chosen with those that are called; returns how many. */
static unsigned
choose(const struct subscribers *s, struct slice space, struct slice queue, struct subscriber_row *chosen[static SUBSCRIBERS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct subscriber_row *const r = s->rows[i];
		unsigned k;

		if (!wants(r, space, queue))
			continue;
		k = rival_of(chosen, n, r);
		if (k == n)
			chosen[n++] = r;
		else if (is_before(r, chosen[k], queue))
			chosen[k] = r;
	}
	return n;
}

/* SUBSCRIBERS-2 */
static void
call(struct subscriber_row *r, slu_time now, subscriber_tell *tell, void *arg)
{
	if (r->pending > now)
		return;
	if (r->next <= now) {
		r->next = now + r->interval;
		tell(arg, r->url, 0);
		return;
	}
	r->pending = r->next;
	r->next += r->interval;
	tell(arg, r->url, r->pending - now);
}

void
subscribers_ready(struct subscribers *s, struct slice space, struct slice queue, slu_time now, subscriber_tell *tell,
		  void *arg)
{
	struct subscriber_row *chosen[SUBSCRIBERS_MAX];
	unsigned n;

	pthread_mutex_lock(&s->mtx);
	forget(s, now);
	n = choose(s, space, queue, chosen);
	for (unsigned i = 0; i < n; i++)
		call(chosen[i], now, tell, arg);
	pthread_mutex_unlock(&s->mtx);
}
