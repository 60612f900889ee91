/*
 * line_take.c - taking the shard: LINE-3.
 *
 *      list spans ─> list groups ─> get the newest ─> put an opening behind it
 *           ^                            │ absent        │ won
 *           └────────────────────────────┘               v
 *           ^                                       list spans ─> get the newest span
 *           │                                                         │
 *           └── a span reaches the opening: its name had been removed ┤
 *                                                                     v
 *                                                                 line_read.c
 */
#include "line/line_private.h"

#include <inttypes.h>

enum {
	PEEK = 64 << 10 /* bytes of a span: its head, if it has less than 8,000 groups */
};

static void look(struct line *l);

static void
put_opening(struct line *l)
{
	l->put = (struct line_group){
		.opening = true,
		.number = l->last + 1,
		.epoch = l->epoch + 1,
		.before = l->mark,
		.begin = l->last ? l->begin : 1,
		.time = l->time,
	};
	l->tried_epoch = l->put.epoch;
	line_put(l);
}

/* LINE-17 */
static bool
is_pinned_to(const struct line *l, const struct line_group *newest)
{
	return newest->pinned && l->conf.pinned && memcmp(newest->life, l->conf.life, LINE_LIFE) == 0;
}

/* LINE-17 */
static bool
may_unpin(const struct line *l, const struct line_group *newest)
{
	return l->conf.unpins || (newest->pinned && l->conf.left && memcmp(newest->life, l->conf.left, LINE_LIFE) == 0);
}

static void
refuse_pinned(struct line *l, const struct line_group *newest)
{
	line_give_up(l, SLU_EBUSY,
		     "%s: the shard is pinned to another front folder: %02x%02x%02x%02x, epoch %" PRIu64 ", group %" PRIu64,
		     l->conf.shard, newest->life[0], newest->life[1], newest->life[2], newest->life[3], newest->epoch,
		     newest->number);
}

/* The newest group is known: the opening goes behind it. */
static void
behind(struct line *l, const struct line_group *newest)
{
	const bool is_ours = is_pinned_to(l, newest);
	const bool unpins = may_unpin(l, newest);
	const bool may = is_ours || unpins || !l->conf.may_take || l->conf.may_take(l->conf.arg, newest);

	if (newest->pinned && !is_ours && !unpins) {
		refuse_pinned(l, newest);
		return;
	}
	if (!may) {
		line_lose(l, newest);
		return;
	}
	l->last = newest->number;
	l->epoch = newest->epoch;
	l->mark = newest->mark;
	l->time = newest->time;
	l->begin = newest->begin;
	put_opening(l);
}

static void
on_newest(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group newest;
	struct slu_err err;

	if (a->result == LINE_ABSENT)
		look(l);
	else if (line_group_decode(&newest, a->object, &err))
		line_give_up(l, SLU_ECORRUPT, "%s: %s", l->slots[slot].request.name, err.text);
	else
		behind(l, &newest);
}

static void
on_groups(struct line *l, unsigned slot, const struct line_answer *a)
{
	(void)line_take_names(l, NULL, LINE_GROUP, a, &l->last);
	if (a->more && a->n_names > 0)
		line_list_more(l, slot, on_groups, a);
	else if (l->last > 0)
		line_ask(l, slot, on_newest, LINE_GET, LINE_GROUP, l->last);
	else if (l->spans.n > 0)
		look(l);
	else
		put_opening(l);
}

static void
on_spans(struct line *l, unsigned slot, const struct line_answer *a)
{
	uint64_t last = 0;

	if (!line_take_names(l, &l->spans, LINE_SPAN, a, &last)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
	} else if (a->more && a->n_names > 0) {
		line_list_more(l, slot, on_spans, a);
	} else {
		l->last = 0;
		line_list(l, slot, on_groups, LINE_GROUP,
			  l->spans.n ? l->spans.p[l->spans.n - 1] - 1 : 0);
	}
}

static void
look(struct line *l)
{
	l->last = l->epoch = 0;
	l->mark = (struct line_mark){ 0 };
	l->spans.n = 0;
	if (l->looks++ == LINE_LOOKS_MAX)
		line_give_up(l, SLU_EBUSY, "%s: the newest group changes all the time", l->conf.shard);
	else
		line_list(l, LINE_MAIN, on_spans, LINE_SPAN, 0);
}

void
line_take(struct line *l)
{
	l->state = LINE_TAKING;
	l->looks = 0;
	look(l);
}

void
line_take_taken(struct line *l, const struct line_group *other)
{
	if (other->opening || l->reopens)
		line_lose(l, other);
	else
		behind(l, other);
}

void
line_take_again(struct line *l)
{
	l->state = LINE_TAKING;
	put_opening(l);
}

/* ---- The opening is in the store: does it count? ---- */

static void
counts(struct line *l)
{
	if (l->reopens)
		line_own_again(l);
	else
		line_read_begin(l);
}

static void
anew(struct line *l)
{
	if (l->reopens)
		line_give_up(l, SLU_EBUSY, "%s: another node has taken the shard", l->conf.shard);
	else
		look(l);
}

static void
on_reach(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_span newest;
	struct slu_err err;
	const int rc = a->result == LINE_ABSENT ? 0 : line_span_peek(&newest, a->object, &err);

	if (rc && l->slots[slot].request.max) {
		line_ask(l, slot, on_reach, LINE_GET, LINE_SPAN, l->newest_span); /* all of it */
	} else if (rc) {
		line_give_up(l, SLU_ECORRUPT, "%s: %s", l->slots[slot].request.name, err.text);
	} else if (a->result == LINE_ABSENT || line_span_last(&newest) >= l->last) {
		anew(l);
	} else {
		l->reach = line_span_last(&newest);
		counts(l);
	}
}

static void
on_spans_again(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (!line_take_names(l, l->reopens ? NULL : &l->spans, LINE_SPAN, a, &l->newest_span)) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
	} else if (a->more && a->n_names > 0) {
		line_list_more(l, slot, on_spans_again, a);
	} else if (l->newest_span == 0) {
		counts(l);
	} else {
		line_ask(l, slot, on_reach, LINE_GET, LINE_SPAN, l->newest_span);
		l->slots[slot].request.max = PEEK;
	}
}

void
line_take_won(struct line *l)
{
	if (!l->reopens)
		l->spans.n = 0;
	l->newest_span = l->reach = 0;
	line_list(l, LINE_MAIN, on_spans_again, LINE_SPAN, 0);
}
