/*
 * line_back.c - a store that went back: LINE-15.
 *
 *      list spans ─> get the newest ─> list the groups behind it ─> all are there
 *       ^                                  │ a hole                   │ is the newest ours?
 *       │                                  v                          v
 *       └── a newer span has come ── list spans again               done
 *                                          │ no newer span            ^
 *                                          v                          │
 *                   is the group before the hole ours? ─> put what is missing again
 *
 * A successor may have written a span and removed groups between the two listings. So a hole
 * counts only if no newer span has come.
 */
#include "line/line_private.h"

#include <inttypes.h>

static void look(struct line *l);
static void list_groups(struct line *l);
static void put_missing(struct line *l);

static void
diverge(struct line *l, uint64_t number, const struct line_group *other)
{
	line_give_up(l, SLU_ECORRUPT,
		     "%s: the store went back, and another node has put group %" PRIu64
		     ": life %02x%02x%02x%02x, epoch %" PRIu64 "; ours is life %02x%02x%02x%02x, epoch %" PRIu64,
		     l->conf.shard, number, other->life[0], other->life[1], other->life[2], other->life[3],
		     other->epoch, l->conf.life[0], l->conf.life[1], l->conf.life[2], l->conf.life[3], l->epoch);
}

static void
on_spans_of_other(struct line *l, unsigned slot, const struct line_answer *a)
{
	uint64_t last = l->back.after;

	(void)line_take_names(l, NULL, LINE_SPAN, a, &last);
	if (last != l->back.after)
		look(l);
	else if (a->more && a->n_names > 0)
		line_list_more(l, slot, on_spans_of_other, a);
	else
		diverge(l, l->back.other.number, &l->back.other);
}

/* Another group has the number of ours. Ours may be in a span by now: then it was removed, and a node
 * has put an opening under its name (LINE-3). */
static void
suspect(struct line *l, unsigned slot, const struct line_group *other)
{
	l->back.other = *other;
	l->back.other.body = (struct slice){ 0 };
	line_list(l, slot, on_spans_of_other, LINE_SPAN, l->back.after);
}

static void
lose(struct line *l)
{
	line_give_up(l, SLU_EBUSY, "%s: another node has taken the shard", l->conf.shard);
}

/* ---- Groups that this node has ---- */

static bool
find_loose(const struct line_run *r, uint64_t number, struct slice *object)
{
	size_t at = 0;

	if (r->n == 0 || number < r->first || number - r->first >= r->n)
		return false;
	for (uint64_t i = 0; i < number - r->first; i++)
		at += r->lengths[i];
	*object = (struct slice){ r->bytes.p + at, r->lengths[number - r->first] };
	return true;
}

/* Sets l->pending to the object of a confirmed group, and *g to the group. If this node does not
 * have it, gives up and returns false. */
static bool
load(struct line *l, uint64_t number, struct line_group *g)
{
	struct slice object;

	buf_clear(&l->pending);
	if (find_loose(&l->loose, number, &object))
		buf_put(&l->pending, object.p, object.n);
	else if (l->conf.again)
		l->conf.again(l->conf.arg, number, &l->pending);
	if (l->pending.failed) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return false;
	}
	if (l->pending.n && !line_group_decode(g, buf_slice(&l->pending), NULL) && g->number == number)
		return true;
	line_give_up(l, SLU_ECORRUPT,
		     "%s: the store lacks groups %" PRIu64 " to %" PRIu64 ", and this node does not have group %" PRIu64,
		     l->conf.shard, l->back.hole ? l->back.hole : number, l->last, number);
	return false;
}

/* ---- The end ---- */

/* The store has fewer spans than before: more groups are loose. */
static bool
rebuild_loose(struct line *l)
{
	struct line_run run = { 0 };
	struct line_group g;
	bool ok = true;

	buf_init(&run.bytes, SIZE_MAX / 2);
	for (uint64_t n = l->back.reach + 1; ok && n <= l->last; n++)
		ok = load(l, n, &g) && line_run_add(&run, n, buf_slice(&l->pending));
	if (ok) {
		line_run_release(&l->loose);
		l->loose = run;
		l->spanned = l->back.reach;
		return true;
	}
	line_run_release(&run);
	if (l->state != LINE_OVER)
		line_give_up(l, SLU_ENOMEM, "out of memory");
	return false;
}

static void
finish(struct line *l)
{
	if (l->back.newest > l->last + (l->appending ? 1 : 0)) {
		lose(l);
		return;
	}
	if (l->back.reach < l->spanned && !rebuild_loose(l))
		return;
	line_spanned(l, l->back.reach);
	l->swept = 0;
	l->found.n = l->found_at = 0;
	l->back.comparing = false;
	line_idle(l, LINE_MAIN);
	if (l->appending)
		line_put_again(l);
	else
		line_take_again(l);
}

/* ---- Putting again ---- */

static void
on_put_again(struct line *l, unsigned slot, const struct line_answer *a);

static void
on_exists(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group other, ours;

	if (a->result == LINE_ABSENT)
		put_missing(l);
	else if (line_group_decode(&other, a->object, NULL))
		line_give_up(l, SLU_ECORRUPT, "%s: damaged group", l->slots[slot].request.name);
	else if (!load(l, l->back.next, &ours))
		return;
	else if (!line_mark_eq(other.mark, ours.mark))
		suspect(l, slot, &other);
	else
		on_put_again(l, slot, &(struct line_answer){ .result = LINE_OK });
}

/* Whether the listing, which is in order, has the group. */
static bool
is_found(const struct line *l, uint64_t number)
{
	uint32_t a = 0, b = l->found.n;

	while (a < b) {
		const uint32_t m = a + (b - a) / 2;

		if (l->found.p[m] < number)
			a = m + 1;
		else
			b = m;
	}
	return a < l->found.n && l->found.p[a] == number;
}

static void
on_put_again(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (a->result == LINE_EXISTS) {
		line_ask(l, slot, on_exists, LINE_GET, LINE_GROUP, l->back.next);
		return;
	}
	l->back.n_put++;
	do
		l->back.next++;
	while (l->back.next <= l->last && is_found(l, l->back.next));
	put_missing(l);
}

static void
put_missing(struct line *l)
{
	struct line_group g;

	if (l->back.next > l->last) {
		if (l->conf.restored)
			l->conf.restored(l->conf.arg, l->back.hole, l->back.n_put);
		finish(l);
	} else if (load(l, l->back.next, &g)) {
		line_ask(l, LINE_MAIN, on_put_again, LINE_PUT, LINE_GROUP, l->back.next);
		l->slots[LINE_MAIN].request.object = buf_slice(&l->pending);
	}
}

static void
on_before_hole(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group other, first;

	if (a->result == LINE_ABSENT)
		look(l);
	else if (line_group_decode(&other, a->object, NULL))
		line_give_up(l, SLU_ECORRUPT, "%s: damaged group", l->slots[slot].request.name);
	else if (!load(l, l->back.hole, &first))
		return;
	else if (!line_mark_eq(other.mark, first.before))
		suspect(l, slot, &other);
	else
		put_missing(l);
}

/* ---- Looking ---- */

/* The hole is real: the store went back. */
static void
repair(struct line *l)
{
	struct line_group first;

	l->back.next = l->back.hole;
	l->back.n_put = 0;
	if (l->back.hole - 1 > l->back.reach)
		line_ask(l, LINE_MAIN, on_before_hole, LINE_GET, LINE_GROUP, l->back.hole - 1);
	else if (!load(l, l->back.hole, &first))
		return;
	else if (l->back.reach > 0 && !line_mark_eq(l->back.reached.mark, first.before))
		diverge(l, l->back.reach, &l->back.reached);
	else
		put_missing(l);
}

static void
on_spans_again(struct line *l, unsigned slot, const struct line_answer *a)
{
	uint64_t last = l->back.after;

	(void)line_take_names(l, NULL, LINE_SPAN, a, &last);
	if (last != l->back.after)
		look(l);
	else if (a->more && a->n_names > 0)
		line_list_more(l, slot, on_spans_again, a);
	else
		repair(l);
}

static void
on_newest(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group newest;

	if (a->result == LINE_ABSENT)
		look(l);
	else if (line_group_decode(&newest, a->object, NULL))
		line_give_up(l, SLU_ECORRUPT, "%s: damaged group", l->slots[slot].request.name);
	else if (!line_mark_eq(newest.mark, l->mark))
		suspect(l, slot, &newest);
	else
		finish(l);
}

/* The first number behind the spans that the store lacks; 0 = none. */
static uint64_t
find_hole(const struct line *l)
{
	for (uint64_t n = l->back.reach + 1; n <= l->last; n++)
		if (!is_found(l, n))
			return n;
	return 0;
}

static void
on_groups(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (!line_take_names(l, &l->found, LINE_GROUP, a, &l->back.newest)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
	} else if (a->more && a->n_names > 0) {
		line_list_more(l, slot, on_groups, a);
	} else {
		l->back.hole = find_hole(l);
		if (l->back.hole)
			line_list(l, slot, on_spans_again, LINE_SPAN, l->back.after);
		else if (l->back.reach == l->last)
			finish(l);
		else
			line_ask(l, slot, on_newest, LINE_GET, LINE_GROUP, l->last);
	}
}

static void
list_groups(struct line *l)
{
	l->found.n = l->found_at = 0;
	line_list(l, LINE_MAIN, on_groups, LINE_GROUP, l->back.reach);
}

/* Our newest group is in a span. */
static void
compare_spanned(struct line *l, const struct line_group *same)
{
	if (!line_mark_eq(same->mark, l->mark))
		diverge(l, l->last, same);
	else if (l->back.reach > l->last)
		lose(l);
	else
		list_groups(l);
}

/* Reads the groups of a span as far as they are wanted: our newest group, and the last one.
 * Returns false if a group is damaged. */
static bool
read_span(struct line *l, struct line_span *s, struct line_group *same, struct line_group *last)
{
	const uint64_t first = s->first;
	struct slice object;

	for (uint64_t n = first; line_span_next(s, &object); n++)
		if ((n == l->last && line_group_decode(same, object, NULL)) ||
		    (s->taken == s->n && line_group_decode(last, object, NULL)))
			return false;
	return true;
}

static void
on_span(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group same = { 0 }, last = { 0 };
	struct line_span s;
	uint64_t first = 0;

	if (a->result == LINE_ABSENT) {
		look(l);
		return;
	}
	if (line_span_decode(&s, a->object, NULL) || !read_span(l, &s, &same, &last)) {
		line_give_up(l, SLU_ECORRUPT, "%s: damaged span", l->slots[slot].request.name);
		return;
	}
	if (line_span_last(&s) > l->back.reach) {
		l->back.reach = line_span_last(&s);
		l->back.reached = last;
		l->back.reached.body = (struct slice){ 0 };
	}
	for (uint32_t i = 0; i < l->spans.n && l->spans.p[i] <= l->last; i++)
		first = l->spans.p[i];
	if (l->back.reach < l->last)
		list_groups(l);
	else if (same.number > 0)
		compare_spanned(l, &same);
	else if (first > 0 && first != s.first)
		line_ask(l, slot, on_span, LINE_GET, LINE_SPAN, first);
	else
		line_give_up(l, SLU_EBUSY,
			     "%s: another node has taken the shard, and the log begins behind our group %" PRIu64
			     ": cannot compare",
			     l->conf.shard, l->last);
}

static void
on_spans(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (!line_take_names(l, &l->spans, LINE_SPAN, a, &l->back.after))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else if (a->more && a->n_names > 0)
		line_list_more(l, slot, on_spans, a);
	else if (l->back.after > 0)
		line_ask(l, slot, on_span, LINE_GET, LINE_SPAN, l->back.after);
	else
		list_groups(l);
}

static void
look(struct line *l)
{
	l->spans.n = 0;
	l->back.after = l->back.reach = l->back.newest = l->back.hole = 0;
	if (l->looks++ == LINE_LOOKS_MAX)
		line_give_up(l, SLU_EBUSY, "%s: the spans change all the time", l->conf.shard);
	else
		line_list(l, LINE_MAIN, on_spans, LINE_SPAN, 0);
}

void
line_back_begin(struct line *l)
{
	l->back.wanted = false;
	l->back.comparing = true;
	l->looks = 0;
	line_idle(l, LINE_BACK);
	look(l);
}
