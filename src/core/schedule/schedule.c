#include "core/schedule/schedule.h"

#include "base/hash.h"
#include "base/le.h"
#include "base/parse.h"
#include "base/rfc3339.h"

/* Ticks that are looked at, at most: a schedule that was not looked at for longer begins this long before now. */
#define HORIZON (400 * 24 * SLU_HOUR)

/* ---- Ticks ---- */

slu_time
schedule_tick(const struct schedule *s, const struct schedule_plan *p, slu_time after)
{
	return cron_next(&p->cron, p->zone, s->anchor, after > 0 ? after : 0);
}

static uint64_t
hash_of(struct slice name, slu_time tick)
{
	static const struct hash_key fixed = { 0x736c75696365u, 0x7363686564u };
	char parts[16];

	le64_put(parts, hash_keyed(&fixed, name.p, name.n));
	le64_put(parts + 8, (uint64_t)tick);
	return hash_keyed(&fixed, parts, sizeof parts);
}

slu_time
schedule_moment(const struct schedule *s, slu_time tick)
{
	const slu_time more = s->jitter > 0 ? (slu_time)(hash_of(slice_of(s->name), tick) % (uint64_t)s->jitter) : 0;

	return tick > SLU_NEVER - more ? SLU_NEVER : tick + more;
}

slu_time
schedule_next(const struct schedule *s, const struct schedule_plan *p)
{
	return s->paused ? SLU_NEVER : schedule_moment(s, schedule_tick(s, p, s->last));
}

/* ---- What is due ---- */

/* How many of the newest due ticks fire. */
static uint32_t
allowed(const struct schedule *s)
{
	return s->missed == SCHEDULE_ALL ? s->most : 1;
}

static void
add_tick(struct schedule_due *out, slu_time tick, uint32_t most)
{
	if (out->n == most) {
		memmove(out->ticks, out->ticks + 1, (most - 1) * sizeof out->ticks[0]);
		out->n--;
		out->lost++;
	}
	out->ticks[out->n++] = tick;
	out->last = tick;
}

/* Ticks of an interval that are so far back that they cannot fire are counted, not looked at one by one. */
static slu_time
pass_over(const struct schedule *s, const struct schedule_plan *p, slu_time now, struct schedule_due *out)
{
	const slu_time back = p->cron.every ? p->cron.every * (SCHEDULE_MOST + 2) + s->jitter : HORIZON;
	const slu_time begin = now > back ? now - back : 0;

	if (begin <= s->last)
		return s->last;
	if (p->cron.every && begin > s->anchor)
		out->lost += (uint64_t)((begin - s->anchor) / p->cron.every - (s->last - s->anchor) / p->cron.every);
	return begin;
}

void
schedule_due(const struct schedule *s, const struct schedule_plan *p, slu_time now, struct schedule_due *out)
{
	slu_time tick;

	*out = (struct schedule_due){ 0 };
	if (s->paused)
		return;
	tick = schedule_tick(s, p, pass_over(s, p, now, out));
	for (; tick <= now && schedule_moment(s, tick) <= now; tick = schedule_tick(s, p, tick))
		add_tick(out, tick, allowed(s));
	if (s->missed == SCHEDULE_SKIP && out->n && now - schedule_moment(s, out->last) > SCHEDULE_LATE) {
		out->n = 0;
		out->lost++;
	}
}

/* ---- What has happened ---- */

static void
add_event(struct schedule *s, const struct schedule_event *e)
{
	if (s->n_events == SCHEDULE_HISTORY) {
		memmove(s->events, s->events + 1, (SCHEDULE_HISTORY - 1) * sizeof s->events[0]);
		s->n_events--;
	}
	s->events[s->n_events++] = *e;
}

void
schedule_fire(struct schedule *s, const struct schedule_due *due, const uint64_t *ids, slu_time now)
{
	for (uint32_t i = 0; i < due->n; i++) {
		add_event(s, &(struct schedule_event){
				     .tick = due->ticks[i],
				     .at = now,
				     .id = ids ? ids[i] : s->last_id,
				     .outcome = ids ? SCHEDULE_FIRED : SCHEDULE_OVERLAPPED,
			     });
		s->last_id = ids ? ids[i] : s->last_id;
	}
	*(ids ? &s->fired : &s->overlapped) += due->n;
	s->lost += due->lost;
	if (due->last > s->last)
		s->last = due->last;
}

void
schedule_run(struct schedule *s, uint64_t id, slu_time now)
{
	add_event(s, &(struct schedule_event){ .tick = now, .at = now, .id = id, .outcome = SCHEDULE_BY_HAND });
	s->last_id = id ? id : s->last_id;
}

void
schedule_pause(struct schedule *s, bool paused, slu_time now)
{
	if (s->paused && !paused && now > s->last)
		s->last = now; /* SCHEDULE-3 */
	s->paused = paused;
}

static bool
is_due_alike(const struct schedule *a, const struct schedule *b)
{
	return strcmp(a->when, b->when) == 0 && strcmp(a->zone, b->zone) == 0;
}

void
schedule_take(struct schedule *s, const struct schedule *old, slu_time now)
{
	const bool paused = s->paused;

	s->anchor = s->last = now - now % SLU_SEC;
	if (!old)
		return;
	s->fired = old->fired;
	s->lost = old->lost;
	s->overlapped = old->overlapped;
	s->last_id = old->last_id;
	memcpy(s->queue, old->queue, sizeof s->queue);
	s->n_events = old->n_events;
	memcpy(s->events, old->events, sizeof s->events);
	if (!is_due_alike(s, old)) {
		s->last = old->last > s->last ? old->last : s->last; /* SCHEDULE-1 */
		return;
	}
	s->anchor = old->anchor;
	s->last = old->last;
	s->paused = old->paused;
	schedule_pause(s, paused, now);
}

/* ---- Names ---- */

uint64_t
schedule_id(struct slice space, struct slice name)
{
	return (hash_of(name, (slu_time)hash_of(space, 0)) >> 8 | 1ull << 55) & ~1ull;
}

size_t
schedule_idem(const struct schedule *s, slu_time tick, char out[static SCHEDULE_IDEM])
{
	char moment[RFC3339_TEXT];
	char *p = stpcpy(out, "schedule:");

	p = stpcpy(p, s->name);
	p = stpcpy(p, ":");
	return (size_t)(stpcpy(p, rfc3339_format(tick, moment)) - out);
}

/* ---- Words ---- */

int
schedule_missed_parse(struct slice text, struct schedule *out, struct slu_err *err)
{
	struct slice count = text, word;
	uint64_t n = 0;

	if (slice_eq(text, SLICE("skip")) || slice_eq(text, SLICE("one"))) {
		out->missed = text.p[0] == 's' ? SCHEDULE_SKIP : SCHEDULE_ONE;
		return 0;
	}
	if (slice_cut(&count, ':', &word) && slice_eq(word, SLICE("all")) && !parse_u64(count, 1, SCHEDULE_MOST, &n, NULL)) {
		out->missed = SCHEDULE_ALL;
		out->most = (uint32_t)n;
		return 0;
	}
	return slu_fail(err, SLU_EINVAL, "invalid missed: %.*s; expected skip, one, or all:N with N from 1 to %d",
			(int)(text.n < 40 ? text.n : 40), text.p, SCHEDULE_MOST);
}

const char *
schedule_missed_text(const struct schedule *s, char out[static 16])
{
	char *p = out;

	if (s->missed != SCHEDULE_ALL)
		return s->missed == SCHEDULE_SKIP ? "skip" : "one";
	p = stpcpy(p, "all:");
	for (uint32_t unit = SCHEDULE_MOST; unit > 0; unit /= 10)
		if (s->most >= unit)
			*p++ = (char)('0' + s->most / unit % 10);
	*p = '\0';
	return out;
}

int
schedule_overlap_parse(struct slice text, struct schedule *out, struct slu_err *err)
{
	if (!slice_eq(text, SLICE("allow")) && !slice_eq(text, SLICE("skip")))
		return slu_fail(err, SLU_EINVAL, "invalid overlap: %.*s; expected allow or skip",
				(int)(text.n < 40 ? text.n : 40), text.p);
	out->overlap = text.p[0] == 'a' ? SCHEDULE_ALLOW : SCHEDULE_WAIT;
	return 0;
}

const char *
schedule_overlap_text(const struct schedule *s)
{
	return s->overlap == SCHEDULE_ALLOW ? "allow" : "skip";
}

const char *
schedule_outcome_text(uint64_t outcome)
{
	static const char *const texts[] = { "fired", "run", "overlap" };

	return outcome < COUNT(texts) ? texts[outcome] : "fired";
}
