/*
 * line_own.c - what the owner does: append groups, write spans, remove what spans hold.
 *
 * The slot LINE_BACK does one thing at a time, in this order:
 *   1  put a span, when enough groups are loose (LINE-6)
 *   2  remove a span from before the beginning (LINE-7)
 *   3  list groups that spans hold, and remove those that need not stay (LINE-2)
 */
#include "line/line_private.h"

#include <assert.h>

void
line_own_begin(struct line *l)
{
	l->state = LINE_OWNED;
	l->next_begin = l->begin;
	l->swept = 0;
	if (!line_numbers_add(&l->openings, l->last) ||
	    !line_run_add(&l->loose, l->last, buf_slice(&l->out)))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else
		l->conf.opened(l->conf.arg);
}

void
line_own_again(struct line *l)
{
	const struct line_known held = l->held;

	l->held.number = 0;
	line_idle(l, LINE_MAIN);
	l->state = LINE_OWNED;
	l->reopens = false;
	l->proved = l->put_sent;
	if (!line_numbers_add(&l->openings, l->last) ||
	    !line_run_add(&l->loose, l->last, buf_slice(&l->out)))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else if (held.number)
		l->conf.confirmed(l->conf.arg, &held);
}

void
line_reopen(struct line *l)
{
	if (l->state == LINE_TAKING || l->state == LINE_READING) {
		line_give_up(l, SLU_EBUSY, "%s: the connection was lost before the shard was open",
			     l->conf.shard);
	} else if (l->state == LINE_OWNED) {
		l->reopens = true;
		l->back.wanted = true;
	}
}

uint64_t
line_append(struct line *l, struct slice body, int64_t time)
{
	assert(line_is_ready(l));
	l->put = (struct line_group){
		.number = l->last + 1,
		.epoch = l->epoch,
		.before = l->mark,
		.begin = l->next_begin,
		.time = time > l->time ? time : l->time,
		.body = body,
	};
	l->appending = true;
	line_put(l);
	return l->state == LINE_OWNED ? l->put.number : 0;
}

void
line_own_won(struct line *l)
{
	const struct line_known won = { l->last, l->mark };

	l->appending = false;
	if (!line_run_add(&l->loose, l->last, buf_slice(&l->out))) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return;
	}
	if (!l->reopens) {
		l->conf.confirmed(l->conf.arg, &won);
		return;
	}
	l->held = won; /* its name may have been free only because another node had removed it */
	if (!l->back.wanted)
		line_take_again(l);
}

/* ---- Spans ---- */

/* Adds a span of our groups. While the groups were read, the spans may have been listed again: a span
 * that begins behind our groups is of another owner, and is the newest one (LINE-2). */
static bool
add_span(struct line *l, uint64_t first)
{
	if (l->spans.n > 0 && l->spans.p[l->spans.n - 1] > first)
		line_give_up(l, SLU_EBUSY, "%s: another node has taken the shard", l->conf.shard);
	else if (!line_numbers_add(&l->spans, first))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	return l->state != LINE_OVER;
}

/* Another node has written a span that begins here; it may be shorter or longer. */
static void
on_other_span(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_span s;
	struct slu_err err;

	line_idle(l, slot);
	if (a->result == LINE_ABSENT)
		return; /* not for long: put it again */
	if (line_span_decode(&s, a->object, &err)) {
		line_give_up(l, SLU_ECORRUPT, "%s: %s", l->slots[slot].request.name, err.text);
		return;
	}
	if (!add_span(l, s.first))
		return;
	if (line_span_last(&s) > l->last)
		line_give_up(l, SLU_EBUSY, "%s: another node has taken the shard", l->conf.shard);
	else
		line_spanned(l, line_span_last(&s));
}

static void
on_span(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (a->result == LINE_EXISTS) {
		line_ask(l, slot, on_other_span, LINE_GET, LINE_SPAN, l->loose.first);
		return;
	}
	line_idle(l, slot);
	if (add_span(l, l->loose.first))
		line_spanned(l, l->loose.first + l->span_n - 1);
}

static bool
wants_span(const struct line *l)
{
	return l->span_wanted || l->loose.n >= l->conf.span_groups ||
	       l->loose.bytes.n >= l->conf.span_bytes;
}

void
line_span(struct line *l)
{
	l->span_wanted = l->loose.n > 0;
}

/* The first loose groups, with at most twice span_bytes: an object has a largest size. */
static uint32_t
choose_groups(const struct line *l, size_t *bytes)
{
	uint32_t n = 0;

	for (*bytes = 0; n < l->loose.n; n++) {
		if (n > 0 && *bytes + l->loose.lengths[n] > 2 * l->conf.span_bytes)
			break;
		*bytes += l->loose.lengths[n];
	}
	return n;
}

static void
put_span(struct line *l)
{
	size_t bytes;
	const uint32_t n = choose_groups(l, &bytes);

	buf_clear(&l->span);
	line_span_encode(&l->span, l->loose.first, l->loose.lengths, n,
			 (struct slice){ l->loose.bytes.p, bytes });
	if (l->span.failed) {
		line_give_up(l, SLU_ENOMEM, "out of memory");
		return;
	}
	l->span_n = n;
	l->span_wanted = false;
	line_ask(l, LINE_BACK, on_span, LINE_PUT, LINE_SPAN, l->loose.first);
	l->slots[LINE_BACK].request.object = buf_slice(&l->span);
}

/* ---- Removals ---- */

static void
on_removed_span(struct line *l, unsigned slot, const struct line_answer *a)
{
	(void)a;
	line_idle(l, slot);
	l->spans.n--;
	memmove(l->spans.p, l->spans.p + 1, l->spans.n * sizeof *l->spans.p);
}

static bool
has_old_span(const struct line *l)
{
	return l->spans.n > 1 && l->spans.p[1] <= l->begin;
}

static void
on_removed(struct line *l, unsigned slot, const struct line_answer *a)
{
	(void)a;
	line_idle(l, slot);
	l->found_at += l->n_also;
	l->swept = l->found.p[l->found_at++];
}

static bool
is_opening(const struct line *l, uint64_t number)
{
	for (uint32_t i = 0; i < l->openings.n; i++)
		if (l->openings.p[i] == number)
			return true;
	return false;
}

/* LINE-2 */
static bool
stays(const struct line *l, uint64_t number)
{
	return is_opening(l, number) || is_opening(l, number + 1);
}

/* Whether the answer has a group that is no opening. */
static bool
has_plain_group(const struct line_answer *a)
{
	struct line_group g;

	return a->result != LINE_ABSENT && !line_group_decode(&g, a->object, NULL) && !g.opening;
}

/* The group behind a group from before the beginning, which is no opening: is this one? */
static void
on_next_old_group(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (a->result == LINE_ABSENT || has_plain_group(a))
		line_ask(l, slot, on_removed, LINE_REMOVE, LINE_GROUP, l->found.p[l->found_at]);
	else
		on_removed(l, slot, a); /* it stays */
}

/* A group from before the beginning: is it an opening? */
static void
on_old_group(struct line *l, unsigned slot, const struct line_answer *a)
{
	if (has_plain_group(a))
		line_ask(l, slot, on_next_old_group, LINE_GET, LINE_GROUP, l->found.p[l->found_at] + 1);
	else
		on_removed(l, slot, a); /* it stays, or is gone */
}

/* The last group that may be removed: a span holds it, and it is not the newest (LINE-2). */
static uint64_t
sweep_to(const struct line *l)
{
	return l->spanned < l->last ? l->spanned : l->last - 1;
}

static void
on_groups(struct line *l, unsigned slot, const struct line_answer *a)
{
	uint64_t last = 0;

	line_idle(l, slot);
	l->found.n = l->found_at = 0;
	if (!line_take_names(l, &l->found, LINE_GROUP, a, &last))
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else if (last == 0)
		l->swept = sweep_to(l);
}

/* Removes the next listed group, and those behind it up to the next one that stays. */
static void
remove_groups(struct line *l)
{
	char name[LINE_NAME_MAX];

	buf_clear(&l->also);
	line_ask(l, LINE_BACK, on_removed, LINE_REMOVE, LINE_GROUP, l->found.p[l->found_at]);
	for (uint32_t i = l->found_at + 1; i < l->found.n && l->n_also + 1 < l->conf.removes; i++, l->n_also++) {
		if (l->found.p[i] > sweep_to(l) || stays(l, l->found.p[i]))
			break;
		line_name(name, l->conf.shard, LINE_GROUP, l->found.p[i]);
		buf_put(&l->also, name, strlen(name) + 1);
	}
	if (l->also.failed)
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else
		l->slots[LINE_BACK].request.object = buf_slice(&l->also);
}

/* Goes on with the listed groups. */
static void
sweep(struct line *l)
{
	l->n_also = 0;
	while (l->found_at < l->found.n) {
		const uint64_t number = l->found.p[l->found_at];

		if (number > sweep_to(l)) {
			l->found.n = l->found_at = 0;
			l->swept = sweep_to(l);
			return;
		}
		if (number < l->known_from) {
			line_ask(l, LINE_BACK, on_old_group, LINE_GET, LINE_GROUP, number);
			return;
		}
		if (!stays(l, number)) {
			remove_groups(l);
			return;
		}
		l->swept = number;
		l->found_at++;
	}
	if (l->swept < sweep_to(l))
		line_list(l, LINE_BACK, on_groups, LINE_GROUP, l->swept);
}

void
line_own_work(struct line *l)
{
	if (wants_span(l) && l->loose.n > 0)
		put_span(l);
	else if (has_old_span(l))
		line_ask(l, LINE_BACK, on_removed_span, LINE_REMOVE, LINE_SPAN, l->spans.p[0]);
	else
		sweep(l);
}
