#include "engine/log/rejoin.h"

#include "engine/log/logengine_private.h"

#include <stdlib.h>

struct reading {
	struct logengine_rejoin *r;
	struct logengine *l;
	uint64_t *accepted; /* ids, in the order of the log */
	uint32_t n, max;
	uint64_t *ended; /* ids of DONE and KEEP */
	uint32_t n_ended, max_ended;
	bool no_memory;
};

/* ---- Replay ---- */

static bool
is_before(struct wal_where at, struct logengine_spot spot)
{
	return at.segment < spot.segment || (at.segment == spot.segment && at.offset < spot.offset);
}

static void
add(struct reading *g, uint64_t **ids, uint32_t *n, uint32_t *max, uint64_t id)
{
	if (mem_room(ids, max, *n + 1, sizeof **ids))
		(*ids)[(*n)++] = id;
	else
		g->no_memory = true;
}

/* The accept of this group is void. */
static void
undo(struct reading *g, uint64_t id)
{
	for (uint32_t i = g->n; i-- > 0;)
		if (g->accepted[i] == id) {
			memmove(g->accepted + i, g->accepted + i + 1, (g->n - i - 1) * sizeof *g->accepted);
			g->n--;
			return;
		}
}

static bool
on_record(void *arg, const struct wal_record *rec)
{
	struct reading *const g = arg;
	struct logengine_entry entry = { 0 };

	if (g->r->to.segment && !is_before(rec->where, g->r->to))
		return false;
	if (is_before(rec->where, g->r->from) || logengine_decode(rec->type, rec->body, &entry, NULL))
		return true; /* replay reports what it cannot read */
	g->r->types[rec->type]++;
	if (rec->type == LOGENGINE_ACCEPT)
		add(g, &g->accepted, &g->n, &g->max, entry.message.id);
	else if (rec->type == LOGENGINE_UNDO)
		undo(g, entry.change.id);
	else if (rec->type == LOGENGINE_DONE || rec->type == LOGENGINE_KEEP)
		add(g, &g->ended, &g->n_ended, &g->max_ended, entry.change.id);
	return true;
}

/* ---- Messages ---- */

static int
read_ref(struct reading *g, struct op_ref *ref, struct buf *out, struct slu_err *err)
{
	char *p;
	int rc;

	if (!ref->pin)
		return 0;
	p = buf_add(out, ref->size);
	rc = p ? logengine_read(&g->l->engine, ref, 0, ref->size, p, true, err) : logengine_no_memory(err);
	logengine_unpin(&g->l->engine, ref);
	return rc;
}

static int
hand_on(struct reading *g, const struct ledger_view *v, struct buf *record, struct buf *payload, struct slu_err *err)
{
	struct op_ref refs[2] = { { 0 }, { 0 } };
	struct message m;
	int rc = logengine_keeping.pin(&g->l->ledgerengine, v->where, &refs[0], &refs[1], err);

	buf_clear(record);
	buf_clear(payload);
	if (rc)
		return rc;
	rc = read_ref(g, &refs[0], record, err);
	if (!rc)
		rc = read_ref(g, &refs[1], payload, err);
	else if (refs[1].pin)
		logengine_unpin(&g->l->engine, &refs[1]);
	if (!rc)
		rc = message_decode(buf_slice(record), &m, err);
	if (rc)
		return rc;
	if (m.file)
		m.payload = buf_slice(payload);
	return g->r->message(g->r->arg, &m, err);
}

static int
hand_on_all(struct reading *g, struct slu_err *err)
{
	struct buf record, payload;
	int rc = 0;

	buf_init(&record, SIZE_MAX / 2);
	buf_init(&payload, SIZE_MAX / 2);
	for (uint32_t i = 0; !rc && i < g->n; i++) {
		const uint32_t msg = ledger_find_any(g->l->ledger, g->accepted[i]);
		struct ledger_view v = { 0 };

		if (msg != SLAB_NONE)
			ledger_get(g->l->ledger, msg, &v);
		g->r->done += msg == SLAB_NONE;
		g->r->dead += v.state == MSG_DEAD || v.state == MSG_DAMAGED;
		if (msg != SLAB_NONE && v.state != MSG_DEAD && v.state != MSG_DAMAGED)
			rc = hand_on(g, &v, &record, &payload, err);
	}
	buf_release(&record);
	buf_release(&payload);
	return rc;
}

static int
compare_ids(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The order of the accepted ids does not matter any more. */
static void
tell_ended(struct reading *g)
{
	if (g->n)
		qsort(g->accepted, g->n, sizeof *g->accepted, compare_ids);
	for (uint32_t i = 0; i < g->n_ended; i++)
		if (!g->n || !bsearch(&g->ended[i], g->accepted, g->n, sizeof *g->accepted, compare_ids))
			g->r->ended(g->r->arg, g->ended[i]);
}

int
logengine_rejoin(struct logengine_rejoin *r, struct slu_err *err)
{
	const struct engine_conf conf = { .folder = r->folder };
	struct reading g = { .r = r };
	int rc = logengine_new(&g.l, &conf, &(struct logengine_conf){ 0 }, err);

	if (rc)
		return rc;
	g.l->watch = on_record;
	g.l->watch_arg = &g;
	rc = logengine_open_wal(g.l, &conf, true, err);
	if (!rc && g.no_memory)
		rc = logengine_no_memory(err);
	r->accepted = g.n;
	if (!rc)
		rc = hand_on_all(&g, err);
	if (!rc)
		tell_ended(&g);
	logengine_free(g.l);
	mem_free(g.accepted);
	mem_free(g.ended);
	return rc;
}
