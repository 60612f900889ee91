#include "api/live/live_rows.h"

#include "api/flat/view.h"
#include "base/mem.h"

#include <stdlib.h>

enum {
	ROW_TEXT = 8192, /* bytes of a row, at most */
	GONE_KEPT = 60   /* LIVE-ROWS-2 */
};

/* A queue on a lane: a queue of several shards has a row for each. */
struct live_row_key {
	uint32_t lane, space_n;
	struct slice key;
};

static uint64_t
row_hash(const void *rows, uint32_t handle)
{
	const struct live_rows *const r = rows;

	return r->slots[handle].row->hash;
}

static bool
row_is(const void *rows, uint32_t handle, const void *key)
{
	const struct live_row *const row = ((const struct live_rows *)rows)->slots[handle].row;
	const struct live_row_key *const k = key;

	return row->lane == k->lane && row->space_n == k->space_n && memcmp(row->key, k->key.p, k->space_n) == 0 &&
	       strcmp(row->key + k->space_n + 1, k->key.p + k->space_n + 1) == 0;
}

int
live_rows_init(struct live_rows *r)
{
	*r = (struct live_rows){ 0 };
	list_init(&r->order);
	buf_init(&r->text, ROW_TEXT);
	map_init(&r->map, r, row_hash, row_is);
	return hash_key_init(&r->secret, NULL) ? SLU_ENOMEM : 0;
}

static void
drop(struct live_rows *r, struct live_row *row)
{
	r->slots[row->handle] = (struct live_slot){ .next = r->free };
	r->free = row->handle + 1;
	r->used--;
	list_remove(&row->node);
	mem_free((char *)(uintptr_t)row->text.p);
	mem_free(row);
}

void
live_rows_release(struct live_rows *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->slots[i].row)
			drop(r, r->slots[i].row);
	map_release(&r->map);
	mem_free(r->slots);
	buf_release(&r->text);
	*r = (struct live_rows){ 0 };
}

/* --- a row -------------------------------------------------------------------- */

static bool
same_totals(const struct ledger_totals *a, const struct ledger_totals *b)
{
	return a->accepted == b->accepted && a->delivered == b->delivered && a->done == b->done && a->failed == b->failed &&
	       a->died == b->died;
}

static bool
same_counts(const struct live_counts *a, const struct live_counts *b)
{
	return memcmp(a->count, b->count, sizeof a->count) == 0 && same_totals(&a->totals, &b->totals) &&
	       a->warn_depth == b->warn_depth && a->workers == b->workers && a->slots == b->slots && a->used == b->used && a->paused == b->paused && a->draining == b->draining && a->pause == b->pause && a->tags == b->tags && a->warn_age == b->warn_age && a->held == b->held;
}

/* Returns a free handle, or MAP_NONE. */
static uint32_t
take_slot(struct live_rows *r)
{
	const uint32_t free = r->free;

	if (free) {
		r->free = r->slots[free - 1].next;
		return free - 1;
	}
	if (!mem_room(&r->slots, &r->room, r->n + 1, sizeof *r->slots))
		return MAP_NONE;
	return r->n++;
}

static struct live_row *
add(struct live_rows *r, const struct live_row_key *k, uint64_t hash)
{
	struct live_row *const row = mem_zalloc(sizeof *row + k->key.n);
	const uint32_t handle = row && r->used < LIVE_QUEUES ? take_slot(r) : MAP_NONE;

	if (handle == MAP_NONE) {
		mem_free(row);
		return NULL;
	}
	*row = (struct live_row){ .hash = hash, .handle = handle, .lane = k->lane, .space_n = k->space_n };
	memcpy(row->key, k->key.p, k->key.n);
	list_init(&row->node);
	r->slots[handle].row = row;
	r->used++;
	if (map_insert(&r->map, hash, handle) == 0)
		return row;
	drop(r, row);
	return NULL;
}

/* The row of the queue. NULL: LIVE-ROWS-3, or no memory. */
static struct live_row *
row_of(struct live_rows *r, const struct op_queue *q, uint32_t lane, bool *is_new)
{
	const size_t space_n = strlen(q->space), name_n = strlen(q->name);
	char key[2 * NAME_TEXT];
	const struct live_row_key k = { lane, (uint32_t)space_n, { key, space_n + name_n + 2 } };
	uint64_t hash;
	uint32_t handle;

	memcpy(key, q->space, space_n + 1);
	memcpy(key + space_n + 1, q->name, name_n + 1);
	hash = hash_keyed(&r->secret, key, k.key.n) + hash_number(lane);
	handle = map_find(&r->map, hash, &k);
	*is_new = handle == MAP_NONE;
	return *is_new ? add(r, &k, hash) : r->slots[handle].row;
}

static struct live_counts
counts_of(const struct live_rows *r, const struct op_queue *q)
{
	struct live_counts c;

	memset(&c, 0, sizeof c); /* also between the members: they are compared */
	memcpy(c.count, q->count, sizeof c.count);
	c.totals = q->totals;
	c.warn_depth = q->warn_depth;
	c.workers = q->workers;
	c.slots = q->slots;
	c.used = q->used;
	c.paused = q->paused;
	c.draining = q->draining;
	c.pause = hash_keyed(&r->secret, &q->pause, sizeof q->pause);
	c.tags = hash_keyed(&r->secret, q->tags, sizeof q->tags);
	c.warn_age = q->warn_age;
	c.held = q->held != 0;
	return c;
}

static void
write_row(struct live_rows *r, const struct op_queue *q, const char *shard)
{
	struct json_out w;

	buf_clear(&r->text);
	json_out_open(&w, &r->text);
	flat_view_queue_details(&w, q);
	if (shard)
		json_out_str(&w, "shard", slice_of(shard));
	json_out_close(&w);
}

static void
write_gone(struct live_rows *r, const struct live_row *row)
{
	struct json_out w;

	buf_clear(&r->text);
	json_out_open(&w, &r->text);
	flat_view_place(&w, (struct slice){ row->key, row->space_n }, slice_of(row->key + row->space_n + 1));
	json_out_bool(&w, "gone", true);
	json_out_close(&w);
}

/* The row has changed: r->text has its text. Without memory all readers begin anew. */
static void
renew(struct live_rows *r, struct live_row *row)
{
	char *const text = r->text.failed ? NULL : mem_alloc(r->text.n);

	row->version = ++r->version;
	mem_free((char *)(uintptr_t)row->text.p);
	row->text = (struct slice){ text, text ? r->text.n : 0 };
	if (text)
		memcpy(text, r->text.p, r->text.n);
	else
		r->floor = r->version;
	list_remove(&row->node);
	list_append(&r->order, &row->node);
}

/* --- a look ------------------------------------------------------------------- */

void
live_rows_begin(struct live_rows *r)
{
	r->pass++;
	r->over = 0;
	r->sum = (struct live_counts){ 0 };
	r->queues = 0;
}

static void
add_counts(struct live_counts *sum, const struct live_counts *c)
{
	for (unsigned i = 0; i < MSG_STATES; i++)
		sum->count[i] += c->count[i];
	ledger_add_totals(&sum->totals, &c->totals);
}

void
live_rows_note(struct live_rows *r, const struct op_queue *q, uint32_t lane, const char *shard)
{
	const struct live_counts counts = counts_of(r, q);
	bool is_new;
	struct live_row *const row = row_of(r, q, lane, &is_new);

	r->queues++;
	add_counts(&r->sum, &counts);
	if (!row) {
		r->over++;
		return;
	}
	row->pass = r->pass;
	if (!row->gone && !is_new && same_counts(&row->counts, &counts))
		return;
	row->counts = counts;
	row->gone = false;
	if (!r->filled)
		return;
	write_row(r, q, shard);
	renew(r, row);
}

/* A queue that the look did not see. */
static void
miss(struct live_rows *r, struct live_row *row)
{
	if (!row->gone) {
		row->gone = true;
		row->pass = r->pass;
		write_gone(r, row);
		renew(r, row);
	} else if (r->pass - row->pass > GONE_KEPT) {
		r->floor = row->version > r->floor ? row->version : r->floor;
		map_remove(&r->map, row->hash, row->handle);
		drop(r, row);
	}
}

void
live_rows_end(struct live_rows *r, bool whole)
{
	for (uint32_t i = 0; whole && i < r->n; i++)
		if (r->slots[i].row && r->slots[i].row->pass != r->pass)
			miss(r, r->slots[i].row);
	if (whole) {
		r->totals = r->sum;
		r->last_queues = r->queues;
		r->last_over = r->over;
	}
	r->filled = true;
}

/* --- readers ------------------------------------------------------------------ */

const struct live_row *
live_rows_after(const struct live_rows *r, uint64_t version)
{
	const struct list *n = &r->order;

	while (n->prev != &r->order && CONTAINER(n->prev, struct live_row, node)->version > version)
		n = n->prev;
	return n == &r->order ? NULL : CONTAINER(n, struct live_row, node);
}

const struct live_row *
live_rows_next(const struct live_rows *r, const struct live_row *row)
{
	return row->node.next == &r->order ? NULL : CONTAINER(row->node.next, struct live_row, node);
}
