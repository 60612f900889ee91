/*
 * line.c - slots: requests, their retries, and putting a group.
 */
#include "line/line_private.h"

#include "base/mem.h"
#include "core/backoff.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int
line_new(struct line **out, const struct line_conf *conf)
{
	struct line *const l = mem_zalloc(sizeof *l);

	if (!l)
		return SLU_ENOMEM;
	l->conf = *conf;
	buf_init(&l->out, SIZE_MAX / 2);
	buf_init(&l->pending, SIZE_MAX / 2);
	buf_init(&l->span, SIZE_MAX / 2);
	buf_init(&l->also, SIZE_MAX / 2);
	buf_init(&l->loose.bytes, SIZE_MAX / 2);
	for (unsigned i = 0; i < LINE_SLOTS; i++)
		buf_init(&l->slots[i].object, SIZE_MAX / 2);
	*out = l;
	return 0;
}

void
line_free(struct line *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < LINE_SLOTS; i++)
		buf_release(&l->slots[i].object);
	buf_release(&l->out);
	buf_release(&l->pending);
	buf_release(&l->span);
	buf_release(&l->also);
	line_run_release(&l->loose);
	mem_free(l->spans.p);
	mem_free(l->openings.p);
	mem_free(l->found.p);
	mem_free(l);
}

bool
line_is_open(const struct line *l)
{
	return l->state == LINE_OWNED && !l->reopens;
}

bool
line_is_ready(const struct line *l)
{
	return line_is_open(l) && !l->appending &&
	       (l->conf.loose_groups == 0 || l->loose.n < l->conf.loose_groups);
}

struct line_facts
line_facts(const struct line *l)
{
	return (struct line_facts){
		.epoch = l->epoch,
		.put_epoch = l->tried_epoch ? l->tried_epoch : l->own_epoch,
		.last = l->last,
		.begin = l->begin,
		.spanned = l->spanned,
		.mark = l->mark,
		.refuted = l->refuted,
		.proved = l->proved,
	};
}

void
line_begin(struct line *l, uint64_t number)
{
	assert(number <= l->last);
	if (number > l->next_begin)
		l->next_begin = number;
}

void
line_give_up(struct line *l, enum slu_code code, const char *fmt, ...)
{
	struct slu_err err = { .code = code };
	va_list args;

	va_start(args, fmt);
	vsnprintf(err.text, sizeof err.text, fmt, args);
	va_end(args);
	l->state = LINE_OVER;
	for (unsigned i = 0; i < LINE_SLOTS; i++)
		if (!l->slots[i].sent)
			l->slots[i].step = NULL;
	l->conf.lost(l->conf.arg, &err);
}

void
line_lose(struct line *l, const struct line_group *other)
{
	line_give_up(l, SLU_EBUSY,
		     "%s: another node has taken the shard: life %02x%02x%02x%02x, epoch %" PRIu64
		     ", group %" PRIu64,
		     l->conf.shard, other->life[0], other->life[1], other->life[2], other->life[3],
		     other->epoch, other->number);
}

/* ---- Slots ---- */

void
line_idle(struct line *l, unsigned slot)
{
	l->slots[slot].step = NULL;
}

void
line_ask(struct line *l, unsigned slot, line_step *step, enum line_verb verb,
	 enum line_kind kind, uint64_t number)
{
	struct line_slot *const s = &l->slots[slot];

	assert(!s->sent);
	s->step = step;
	s->failures = 0;
	s->not_before = 0;
	s->request = (struct line_request){ .verb = verb, .slot = slot };
	line_name(s->request.name, l->conf.shard, kind, number);
}

void
line_list(struct line *l, unsigned slot, line_step *step, enum line_kind kind, uint64_t after)
{
	struct line_request *const r = &l->slots[slot].request;

	line_ask(l, slot, step, LINE_LIST, kind, 0);
	line_prefix(r->name, l->conf.shard, kind);
	line_name(r->after, l->conf.shard, kind, after);
}

void
line_list_more(struct line *l, unsigned slot, line_step *step, const struct line_answer *a)
{
	struct line_slot *const s = &l->slots[slot];

	s->step = step;
	snprintf(s->request.after, sizeof s->request.after, "%s", a->names[a->n_names - 1]);
}

/* Whether requests of an owner are on their way. */
static bool
is_busy(const struct line *l)
{
	return l->slots[LINE_MAIN].sent || l->slots[LINE_BACK].sent;
}

bool
line_next(struct line *l, slu_time now, struct line_request *r)
{
	if (l->state == LINE_OVER)
		return false;
	if (l->back.wanted) {
		if (is_busy(l))
			return false;
		line_back_begin(l);
	}
	if (l->state == LINE_READING)
		line_read_more(l);
	if (l->state == LINE_OWNED && !l->slots[LINE_BACK].step && !l->back.comparing)
		line_own_work(l);
	for (unsigned i = 0; i < LINE_SLOTS; i++) {
		struct line_slot *const s = &l->slots[i];

		if (!s->step || s->sent || s->arrived || s->not_before > now)
			continue;
		s->sent = true;
		if (i == LINE_MAIN && s->request.verb == LINE_PUT && now < l->put_sent)
			l->put_sent = now;
		*r = s->request;
		return true;
	}
	return false;
}

slu_time
line_due(const struct line *l)
{
	slu_time due = l->back.wanted && !is_busy(l) ? 0 : SLU_NEVER;

	for (unsigned i = 0; i < LINE_SLOTS; i++) {
		const struct line_slot *const s = &l->slots[i];

		if (s->step && !s->sent && !s->arrived && s->not_before < due)
			due = s->not_before;
	}
	return l->state == LINE_OVER ? SLU_NEVER : due;
}

void
line_reply(struct line *l, unsigned slot, const struct line_answer *a, slu_time now)
{
	struct line_slot *const s = &l->slots[slot];

	assert(slot < LINE_SLOTS && s->sent);
	s->sent = false;
	if (l->state == LINE_OVER) {
		s->step = NULL;
	} else if (a->result == LINE_FAILED) {
		s->failures++;
		l->unsure |= slot == LINE_MAIN && s->request.verb == LINE_PUT;
		s->not_before = now + backoff_delay(&l->conf.retry, s->failures,
						    l->conf.random(l->conf.arg));
	} else {
		s->step(l, slot, a);
	}
}

/* ---- Arrays ---- */

static bool
reserve(uint64_t **p, uint32_t *size, uint32_t n)
{
	const uint32_t more = n < 16 ? 16 : 2 * n;
	uint64_t *grown;

	if (n < *size)
		return true;
	grown = mem_realloc(*p, more * sizeof *grown);
	if (!grown)
		return false;
	*p = grown;
	*size = more;
	return true;
}

bool
line_numbers_add(struct line_numbers *v, uint64_t number)
{
	if (!reserve(&v->p, &v->size, v->n))
		return false;
	v->p[v->n++] = number;
	return true;
}

bool
line_run_add(struct line_run *r, uint64_t number, struct slice object)
{
	assert(r->n == 0 || number == r->first + r->n);
	if (!reserve(&r->lengths, &r->size, r->n))
		return false;
	buf_put(&r->bytes, object.p, object.n);
	if (r->bytes.failed)
		return false;
	if (r->n == 0)
		r->first = number;
	r->lengths[r->n++] = object.n;
	return true;
}

void
line_run_drop(struct line_run *r, uint32_t n)
{
	size_t bytes = 0;

	assert(n <= r->n);
	for (uint32_t i = 0; i < n; i++)
		bytes += r->lengths[i];
	r->n -= n;
	r->first += n;
	r->bytes.n -= bytes;
	if (r->n == 0)
		return;
	memmove(r->bytes.p, r->bytes.p + bytes, r->bytes.n);
	memmove(r->lengths, r->lengths + n, r->n * sizeof *r->lengths);
}

void
line_run_release(struct line_run *r)
{
	buf_release(&r->bytes);
	mem_free(r->lengths);
}

/* The first n loose groups. */
static void
forget(struct line *l, uint32_t n)
{
	const char *p = l->loose.bytes.p;

	for (uint32_t i = 0; l->conf.forgets && i < n; i++) {
		l->conf.forgets(l->conf.arg, l->loose.first + i, (struct slice){ p, l->loose.lengths[i] }, i + 1 == n);
		p += l->loose.lengths[i];
	}
	line_run_drop(&l->loose, n);
}

void
line_spanned(struct line *l, uint64_t last)
{
	const uint64_t n = last < l->loose.first ? 0 : last - l->loose.first + 1;

	if (last <= l->spanned)
		return;
	l->spanned = last;
	forget(l, n < l->loose.n ? (uint32_t)n : l->loose.n);
}

bool
line_take_names(struct line *l, struct line_numbers *v, enum line_kind kind,
		const struct line_answer *a, uint64_t *last)
{
	for (uint32_t i = 0; i < a->n_names; i++) {
		const uint64_t number = line_number(a->names[i], l->conf.shard, kind);

		if (number == 0)
			continue; /* not ours */
		if (v && !line_numbers_add(v, number))
			return false;
		*last = number;
	}
	return true;
}

/* ---- Putting a group: LINE-4 ---- */

static void on_put(struct line *l, unsigned slot, const struct line_answer *a);

static void
won(struct line *l)
{
	line_idle(l, LINE_MAIN);
	l->last = l->put.number;
	l->epoch = l->put.epoch;
	l->mark = l->put.mark;
	l->time = l->put.time;
	l->begin = l->put.begin;
	if (!l->reopens)
		l->proved = l->put_sent;
	if (l->put.opening) {
		l->own_epoch = l->put.epoch;
		l->tried_epoch = 0;
	}
	if (l->state == LINE_TAKING)
		line_take_won(l);
	else
		line_own_won(l);
}

void
line_put_again(struct line *l)
{
	line_ask(l, LINE_MAIN, on_put, LINE_PUT, LINE_GROUP, l->put.number);
	l->slots[LINE_MAIN].request.object = buf_slice(&l->out);
}

/* What is there under the number: ours, or another node's? */
static void
on_check(struct line *l, unsigned slot, const struct line_answer *a)
{
	struct line_group other;
	struct slu_err err;

	if (a->result == LINE_ABSENT) {
		line_put_again(l);
		return;
	}
	if (line_group_decode(&other, a->object, &err)) {
		line_give_up(l, SLU_ECORRUPT, "%s: %s", l->slots[slot].request.name, err.text);
		return;
	}
	if (line_mark_eq(other.mark, l->put.mark)) {
		won(l);
		return;
	}
	l->tried_epoch = 0;
	l->refuted = l->state == LINE_OWNED && !l->unsure; /* else it may be in a span by now */
	if (l->state == LINE_TAKING)
		line_take_taken(l, &other);
	else
		line_lose(l, &other);
}

static void
on_put(struct line *l, unsigned slot, const struct line_answer *a)
{
	(void)slot;
	if (a->result == LINE_OK)
		won(l);
	else
		line_ask(l, LINE_MAIN, on_check, LINE_GET, LINE_GROUP, l->put.number);
}

void
line_put(struct line *l)
{
	l->put.mark.put = l->conf.random(l->conf.arg);
	l->put_sent = SLU_NEVER;
	l->unsure = false;
	l->put.pinned = l->conf.pinned;
	memcpy(l->put.life, l->conf.life, LINE_LIFE);
	buf_clear(&l->out);
	line_group_encode(&l->put, &l->out);
	if (l->out.failed)
		line_give_up(l, SLU_ENOMEM, "out of memory");
	else
		line_put_again(l);
}
