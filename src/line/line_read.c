/*
 * line_read.c - every group from the beginning of the log to the opening, in order.
 *
 *      span ─ span ─ group group group ... opening
 *
 * Some spans, and then some groups, are fetched at a time, and wait in their slots for their turn.
 *
 * A group is handed on when the group behind it names its mark: an opening that was put
 * under a removed name may look like the end of a line, but no group follows it. So the
 * reader drops a group that the next one does not name, lists the spans and goes on from
 * there. The same if a name is absent: meanwhile a span may hold the group (LINE-7).
 *
 * If the caller has a part of the log (line_conf.known), reading begins with the last known
 * group, or earlier with the first group that no span holds: the next span needs it. If the
 * mark of the last known group differs, the caller's part belongs to another line, and all
 * is read.
 */
#include "line/line_private.h"

#include <inttypes.h>

static void relist(struct line *l, uint64_t number, const char *why);
static void begin_at(struct line *l, uint64_t number);

/* Gives back the memory of what was read. Slots on their way forget what they bring. */
static void
finish(struct line *l)
{
	for (unsigned i = LINE_READ; i < LINE_SLOTS; i++) {
		struct line_slot *const s = &l->slots[i];

		s->arrived = false;
		if (!s->sent)
			s->step = NULL;
		buf_release(&s->object);
		buf_init(&s->object, SIZE_MAX / 2);
	}
	l->has_pending = false;
	line_own_begin(l);
}

static void
reads(struct line *l, uint64_t from)
{
	if (l->conf.reads)
		l->conf.reads(l->conf.arg, from);
}

/* Whether the pending group shows that the caller's part belongs to another line. If it
 * does, reading begins anew. */
static bool
distrusts(struct line *l)
{
	if (!l->has_pending || l->pending_group.number != l->known ||
	    line_mark_eq(l->pending_group.mark, l->conf.known.mark))
		return false;
	l->has_pending = false;
	l->known = 0;
	l->openings.n = 0;
	line_run_drop(&l->loose, l->loose.n);
	begin_at(l, l->put.begin);
	return true;
}

static bool
hand_on(struct line *l)
{
	const struct line_group *const g = &l->pending_group;
	const struct slice object = buf_slice(&l->pending);

	if (!l->has_pending)
		return true;
	l->has_pending = false;
	l->looks = 0;
	if (g->number == l->known)
		reads(l, g->number + 1);
	if (g->number > l->known)
		l->conf.read(l->conf.arg, g, object);
	return (!g->opening || line_numbers_add(&l->openings, g->number)) &&
	       (g->number <= l->spanned || line_run_add(&l->loose, g->number, object));
}

/* The opening closes the chain. */
static void
end(struct line *l)
{
	if (l->has_pending && !line_mark_eq(l->put.before, l->pending_group.mark))
		relist(l, l->next, "does not name the group before");
	else if (distrusts(l))
		return;
	else if (!hand_on(l))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else
		finish(l);
}

/* The object of group l->next. Returns false if reading does not simply go on. */
static bool
feed(struct line *l, struct slice object)
{
	struct line_group g;
	struct slu_err err;

	if (line_group_decode(&g, object, &err) || g.number != l->next) {
		line_give_up(l, SLU_ECORRUPT, "%s: group %" PRIu64 " is damaged", l->conf.shard,
			     l->next);
		return false;
	}
	if (l->has_pending && !line_mark_eq(g.before, l->pending_group.mark)) {
		relist(l, l->next, "does not name the group before");
		return false;
	}
	if (distrusts(l))
		return false;
	if (!hand_on(l)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return false;
	}
	buf_clear(&l->pending);
	buf_put(&l->pending, object.p, object.n);
	if (l->pending.failed ||
	    line_group_decode(&l->pending_group, buf_slice(&l->pending), NULL)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return false;
	}
	l->has_pending = true;
	l->next++;
	return true;
}

/* ---- Loose groups ---- */

/* Hands on what has arrived, as far as it is next. */
static void
drain(struct line *l)
{
	for (unsigned i = LINE_READ; i < LINE_SLOTS; i++) {
		struct line_slot *const s = &l->slots[i];

		if (s->arrived && !s->span && s->number < l->next) { /* it came twice */
			s->arrived = false;
			s->step = NULL;
		}
		if (!s->arrived || s->span || s->number != l->next)
			continue;
		s->arrived = false;
		s->step = NULL;
		if (!feed(l, buf_slice(&s->object)))
			return;
		i = LINE_READ - 1; /* from the first slot again */
	}
	if (l->next == l->put.number)
		end(l);
}

static void
on_group(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_slot *const s = &l->slots[slot];

	if (s->number < l->next || s->number >= l->fetched) { /* from before a listing */
		s->step = NULL;
		return;
	}
	if (a->result == LINE_ABSENT) {
		s->step = NULL;
		relist(l, s->number, "is missing");
		return;
	}
	buf_clear(&s->object);
	buf_put(&s->object, a->object.p, a->object.n);
	if (s->object.failed) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return;
	}
	s->arrived = true;
	drain(l);
}

/* ---- Spans ---- */

/* The first group of the last span that begins at or before the number; 0 if none does. */
static uint64_t
span_of(const struct line *l, uint64_t number)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < l->spans.n && l->spans.p[i] <= number; i++)
		first = l->spans.p[i];
	return first;
}

/* The slot that has the span, or fetches it; 0 = none. */
static unsigned
slot_of_span(const struct line *l, uint64_t first)
{
	for (unsigned i = LINE_READ; i < LINE_SLOTS; i++)
		if (l->slots[i].step && l->slots[i].span && l->slots[i].number == first)
			return i;
	return 0;
}

/* Forgets spans that have arrived and begin before this number. */
static void
drop_spans(struct line *l, uint64_t before)
{
	for (unsigned i = LINE_READ; i < LINE_SLOTS; i++)
		if (l->slots[i].span && l->slots[i].arrived && l->slots[i].number < before) {
			l->slots[i].arrived = false;
			l->slots[i].step = NULL;
		}
}

/* Hands on the groups of a span. Returns false if reading does not simply go on. */
static bool
take_span(struct line *l, uint64_t first, struct slice object)
{
	struct line_span s;
	struct slice group;
	struct slu_err err;
	uint64_t number;

	if (line_span_decode(&s, object, &err)) {
		line_give_up(l, SLU_ECORRUPT, "%s: span %" PRIu64 ": %.150s", l->conf.shard, first, err.text);
		return false;
	}
	l->awaited = 0;
	l->tried_span = s.first;
	line_spanned(l, line_span_last(&s));
	for (number = s.first; line_span_next(&s, &group); number++)
		if (number == l->next && number < l->put.number && !feed(l, group))
			return false;
	return true;
}

/* Spans as long as they hold the next group, then groups. */
static void
go_on(struct line *l)
{
	for (;;) {
		const uint64_t first = span_of(l, l->next);
		const unsigned slot = slot_of_span(l, first);

		if (l->next == l->put.number) {
			end(l);
			return;
		}
		if (first <= l->tried_span) {
			drop_spans(l, UINT64_MAX);
			l->fetched = l->next;
			return;
		}
		l->awaited = first;
		drop_spans(l, first);
		if (!slot || !l->slots[slot].arrived)
			return;
		if (!take_span(l, first, buf_slice(&l->slots[slot].object)))
			return;
	}
}

static void
on_span(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_slot *const s = &l->slots[slot];
	const bool next = s->number == l->awaited;

	if (l->awaited == 0 || next || a->result == LINE_ABSENT)
		s->step = NULL;
	if (next && a->result == LINE_ABSENT) {
		relist(l, l->next, "is missing");
	} else if (next) {
		if (take_span(l, s->number, a->object))
			go_on(l);
	} else if (s->step) {
		buf_clear(&s->object);
		buf_put(&s->object, a->object.p, a->object.n);
		s->arrived = !s->object.failed;
		if (s->object.failed)
			line_give_up(l, SLU_ENOMEM, "out of memory");
	}
}

/* Fetches the awaited span and those behind it. */
static void
ask_spans(struct line *l)
{
	unsigned wanted = LINE_SPANS, slot = LINE_READ;

	for (uint32_t i = 0; i < l->spans.n && wanted > 0; i++) {
		if (l->spans.p[i] < l->awaited)
			continue;
		wanted--;
		if (slot_of_span(l, l->spans.p[i]))
			continue;
		while (slot < LINE_SLOTS && l->slots[slot].step)
			slot++;
		if (slot == LINE_SLOTS)
			return;
		line_ask(l, slot, on_span, LINE_GET, LINE_SPAN, l->spans.p[i]);
		l->slots[slot].number = l->spans.p[i];
		l->slots[slot].span = true;
	}
}

void
line_read_more(struct line *l)
{
	if (l->slots[LINE_MAIN].step) /* a listing comes first */
		return;
	if (l->awaited) {
		ask_spans(l);
		return;
	}
	for (unsigned i = LINE_READ; i < LINE_SLOTS && l->fetched < l->put.number; i++)
		if (!l->slots[i].step) {
			l->slots[i].number = l->fetched;
			l->slots[i].span = false;
			line_ask(l, i, on_group, LINE_GET, LINE_GROUP, l->fetched++);
		}
}

static void
on_relist(struct line *l, unsigned slot, const struct line_answer *a)
{
	uint64_t last = 0;

	if (!line_take_names(l, &l->spans, LINE_SPAN, a, &last)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
	} else if (a->more && a->n_names > 0) {
		line_list_more(l, slot, on_relist, a);
	} else {
		line_idle(l, slot);
		go_on(l);
	}
}

/* What we read may be gone because another node has taken the shard and cleaned the log. */
static void
on_groups_behind(struct line *l, unsigned slot, const struct line_answer *a)
{
	(void)slot;
	if (a->n_names > 0)
		line_give_up(l, SLU_EBUSY, "%s: another node has taken the shard", l->conf.shard);
	else
		line_give_up(l, SLU_ECORRUPT, "%s: group %" PRIu64 " %s", l->conf.shard, l->bad, l->why);
}

static void
relist(struct line *l, uint64_t number, const char *why)
{
	l->bad = number;
	l->why = why;
	if (l->has_pending)
		l->next = l->pending_group.number;
	l->has_pending = false;
	l->fetched = l->awaited = 0; /* what is on its way is not wanted */
	for (unsigned i = LINE_READ; i < LINE_SLOTS; i++)
		if (!l->slots[i].sent) {
			l->slots[i].arrived = false;
			l->slots[i].step = NULL;
		}
	l->tried_span = 0;
	l->spans.n = 0;
	if (l->looks++ == LINE_LOOKS_MAX)
		line_list(l, LINE_MAIN, on_groups_behind, LINE_GROUP, l->put.number);
	else
		line_list(l, LINE_MAIN, on_relist, LINE_SPAN, 0);
}

/* Begins to read at this number. What is on its way is not wanted. */
static void
begin_at(struct line *l, uint64_t number)
{
	l->next = l->known_from = number;
	l->fetched = l->put.number;
	l->looks = 0;
	l->tried_span = l->awaited = 0;
	line_idle(l, LINE_MAIN);
	if (l->known == 0)
		reads(l, number);
	go_on(l);
}

void
line_read_begin(struct line *l)
{
	const uint64_t known = l->conf.known.number;
	const bool is_useful = known >= l->put.begin && known < l->put.number;
	uint64_t from = l->reach + 1; /* the first group that no span holds */

	l->state = LINE_READING;
	l->known = is_useful ? known : 0;
	l->spanned = l->reach;
	if (from > known)
		from = known;
	begin_at(l, is_useful && from > l->put.begin ? from : l->put.begin);
}
