/*
 * keys.c - GET /v1/admin/keys: the ordering keys of the messages of a page, with their depth and what holds them.
 *
 *      {"keys":[{"namespace":"ops","queue":"jobs","key":"customer-7","messages":12,"ready":0,"delayed":0,"leased":1,"held":11,
 *        "dead":0,"oldest_at":"...","front":"01a1...","front_state":"leased","owner":"worker-7","until":"..."}],
 *       "without_key":3,"looked":1000,"of":3200000,"cursor":"..."}
 *
 *  KEYS-1  An answer has the keys of one page of messages (ADMIN-1), those with the most messages first. Keys with one name
 *          on several pages are one key: the caller adds them up.
 *  KEYS-2  `front` is the message that the others of its key wait for: it is ready, delayed or leased. A page
 *          without it has none.
 */
#include "api/admin/admin.h"

#include "api/admin/total.h"
#include "api/flat/page.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "base/hash.h"
#include "base/id.h"
#include "core/queue/holders.h"

#include <stdlib.h>

enum {
	SLOTS = 2048
};

struct key_count {
	struct slice space, queue, key;
	uint32_t count[MSG_STATES];
	uint32_t all;
	slu_time oldest; /* accepted; SLU_NEVER: only dead letters so far */

	/* KEYS-2 */
	uint64_t front;
	slu_time until; /* LEASED: the end of the lease; DELAYED: when it is due */
	enum msg_state front_state;
	struct slice owner;
};

struct state {
	struct slice namespace; /* n 0: all */
	struct slice queue;     /* n 0: all */
	struct slice key;       /* n 0: all; otherwise only this one */
	uint64_t cursor;
	uint32_t limit;

	struct admin_total total;
	struct rows rows;
	struct key_count *keys; /* room for API_PAGE_MAX */
	uint32_t n;
	uint16_t *slots; /* of a hash table: 1 + an index in keys */
	uint32_t plain;  /* messages without a key */
	uint32_t own;    /* messages of reserved queues, which do not count */
	bool failed;     /* no memory */
};

static const struct param params[] = {
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, queue, .also = "topic"),
	PARAM(word, struct state, key),
	PARAM_PAGE(struct state, API_PAGE_MAX),
};

/* --- which -------------------------------------------------------------------- */

static struct slice
keep(struct state *s, struct apicall *a, struct slice text)
{
	const struct slice copy = text.n ? arena_copy(&a->memory, text) : text;

	s->failed |= copy.n != text.n;
	return copy;
}

static struct key_count *
find(struct state *s, struct apicall *a, const struct message *m)
{
	uint32_t i = fnv1a32(m->key.p, m->key.n) % SLOTS;
	struct key_count *k;

	for (; s->slots[i]; i = (i + 1) % SLOTS) {
		k = &s->keys[s->slots[i] - 1];
		if (slice_eq(k->key, m->key) && slice_eq(k->queue, m->queue) && slice_eq(k->space, m->space))
			return k;
	}
	k = &s->keys[s->n];
	s->slots[i] = (uint16_t)++s->n;
	k->space = keep(s, a, m->space);
	k->queue = keep(s, a, m->queue);
	k->key = keep(s, a, m->key);
	k->oldest = SLU_NEVER;
	return k;
}

static void
take_front(struct state *s, struct apicall *a, struct key_count *k, const struct op_row *row)
{
	k->front = row->id;
	k->front_state = row->state;
	k->until = row->state == MSG_LEASED ? row->until : row->due;
	if (row->state == MSG_LEASED && row->holder)
		k->owner = keep(s, a, holder_name(shared_text_slice(row->holder)));
}

/* For rows_start: writes nothing. */
static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;
	struct key_count *k;

	(void)error;
	if (m->queue.n && m->queue.p[0] == '.' && !s->queue.n) {
		s->own++;
		return;
	}
	if (!m->key.n) {
		s->plain++;
		return;
	}
	if (s->key.n && !slice_eq(s->key, m->key))
		return;
	k = find(s, r->apicall, m);
	k->all++;
	k->count[row->state]++;
	if (row->state == MSG_READY || row->state == MSG_DELAYED || row->state == MSG_LEASED)
		take_front(s, r->apicall, k, row);
	if (row->state != MSG_DEAD && m->accepted < k->oldest)
		k->oldest = m->accepted;
}

/* --- the answer --------------------------------------------------------------- */

static int
deepest_first(const void *a, const void *b)
{
	const struct key_count *const x = a, *const y = b;

	return (x->all < y->all) - (x->all > y->all);
}

static void
write_front(struct json_out *w, const struct key_count *k)
{
	char uid[ID_UUID_TEXT];

	(void)id_to_uuid(k->front, uid);
	json_out_str(w, "front", slice_of(uid));
	json_out_str(w, "front_state", slice_of(flat_view_states[k->front_state]));
	if (k->owner.n)
		json_out_str(w, "owner", k->owner);
	if (k->front_state != MSG_READY)
		json_out_time(w, "until", k->until);
}

static void
write_key(struct json_out *w, const struct key_count *k)
{
	static const enum msg_state shown[] = { MSG_READY, MSG_DELAYED, MSG_LEASED, MSG_HELD, MSG_DEAD };

	json_out_object(w, NULL);
	json_out_str(w, "namespace", k->space);
	json_out_str(w, "queue", k->queue);
	json_out_str(w, "key", k->key);
	json_out_u64(w, "messages", k->all);
	for (unsigned i = 0; i < COUNT(shown); i++)
		json_out_u64(w, flat_view_states[shown[i]], k->count[shown[i]]);
	if (k->oldest != SLU_NEVER)
		json_out_time(w, "oldest_at", k->oldest);
	if (k->front)
		write_front(w, k);
	json_out_close(w);
}

static void
taken(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	struct json_out w;

	if (apicall_refused(a, !rc && s->failed ? SLU_ENOMEM : rc, NULL))
		return;
	qsort(s->keys, s->n, sizeof *s->keys, deepest_first);
	apicall_object(a, &w);
	json_out_array(&w, "keys");
	for (uint32_t i = 0; i < s->n; i++)
		write_key(&w, &s->keys[i]);
	json_out_close(&w);
	json_out_u64(&w, "without_key", s->plain);
	json_out_u64(&w, "looked", s->rows.at - s->own);
	if (s->total.known)
		json_out_u64(&w, "of", s->total.of);
	flat_view_cursor(&w, page_cursor(&s->rows));
	apicall_reply_object(a, &w, 200);
}

/* --- the call ----------------------------------------------------------------- */

static void
found(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	page_look(&s->rows, a, take_row, taken);
}

static void
look(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_LIST, s->namespace, s->queue);
	a->op.cursor = s->cursor;
	apicall_run_rows(a, s->limit, found);
}

static bool
make_room(struct apicall *a, struct state *s)
{
	s->keys = arena_array(&a->memory, API_PAGE_MAX, sizeof *s->keys);
	s->slots = arena_array(&a->memory, SLOTS, sizeof *s->slots);
	if (!s->keys || !s->slots)
		return false;
	(void)memset(s->keys, 0, API_PAGE_MAX * sizeof *s->keys);
	(void)memset(s->slots, 0, SLOTS * sizeof *s->slots);
	return true;
}

static void
keys(struct apicall *a)
{
	struct state *const s = a->state;

	if (s->queue.n && !s->namespace.n)
		apicall_refuse(a, SLU_EINVAL, "missing namespace; expected the namespace of the queue");
	else if (!make_room(a, s))
		apicall_refuse(a, SLU_ENOMEM, NULL);
	else if (s->cursor)
		look(a);
	else
		admin_total_count(a, &s->total, &(struct admin_total){ .namespace = s->namespace, .queue = s->queue, .then = look });
}

const struct handler admin_keys = { keys, sizeof(struct state), QUERY_ROWS(params) };
