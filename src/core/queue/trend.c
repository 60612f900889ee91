#include "core/queue/trend.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

const struct trend_span trend_spans[TREND_SCALES] = {
	[TREND_10S] = { 10 * SLU_SEC, 60 },
	[TREND_1MIN] = { SLU_MIN, 60 },
	[TREND_5MIN] = { 5 * SLU_MIN, TREND_STEPS_MAX },
};

/* ---- Codes: an exponent of 6 bits and a mantissa of 11, whose first bit is 1 unless the exponent is 0 ---- */

enum {
	MANTISSA = 10, /* bits of the mantissa behind its first */
	LARGEST = TREND_NONE - 1
};

uint16_t
trend_code(uint64_t value)
{
	const unsigned bits = value ? 64u - (unsigned)__builtin_clzll(value) : 0;
	const unsigned e = bits > MANTISSA + 1 ? bits - (MANTISSA + 1) : 0;
	const uint64_t half = e ? 1ull << (e - 1) : 0;
	const uint64_t code = ((uint64_t)e << MANTISSA) + ((value >> e) + ((value & half) != 0));

	return code > LARGEST ? LARGEST : (uint16_t)code;
}

uint64_t
trend_value(uint16_t code)
{
	const unsigned e = code < 2u << MANTISSA ? 0 : (code >> MANTISSA) - 1u;

	return (uint64_t)(code - (e << MANTISSA)) << e;
}

/* ---- Spreads ---- */

/* Bucket 0 has times below a unit; bucket 2n + 1 begins at 2^n units, bucket 2n + 2 at one and a half times that. */
static unsigned
bucket_of(slu_time time)
{
	const uint64_t units = time > 0 ? (uint64_t)(time / TREND_UNIT) : 0;
	unsigned log, b;

	if (units == 0)
		return 0;
	log = 63u - (unsigned)__builtin_clzll(units);
	b = 2 * log + 1 + (log > 0 && (units >> (log - 1) & 1));
	return b < TREND_BUCKETS ? b : TREND_BUCKETS - 1;
}

/* The start of a bucket, in units. */
static double
bucket_start(unsigned b)
{
	const double octave = b ? (double)(1ull << ((b - 1) / 2)) : 0;

	return b && b % 2 == 0 ? octave * 1.5 : octave;
}

/* A full bucket halves the spread: its form stays. */
static void
halve(struct trend_spread *s)
{
	for (unsigned i = 0; i < TREND_BUCKETS; i++)
		s->n[i] /= 2;
}

static void
spread_add(struct trend_spread *s, unsigned bucket, uint32_t n)
{
	while (s->n[bucket] + n > UINT16_MAX) {
		halve(s);
		n = (n + 1) / 2;
	}
	s->n[bucket] = (uint16_t)(s->n[bucket] + n);
}

static uint64_t
spread_sum(const struct trend_spread *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TREND_BUCKETS; i++)
		n += s->n[i];
	return n;
}

/* The time that `percent` of all are below, by its place in its bucket. */
static uint16_t
percentile(const struct trend_spread *s, uint64_t sum, unsigned percent)
{
	const double want = (double)sum * percent / 100;
	double below = 0;
	unsigned b = 0;

	while (b < TREND_BUCKETS - 1 && below + s->n[b] < want)
		below += s->n[b++];
	const double start = bucket_start(b);
	const double part = s->n[b] ? (want - below) / s->n[b] : 1;

	return trend_code((uint64_t)(start + part * (bucket_start(b + 1) - start) + 0.5));
}

static void
write_percentiles(const struct trend_spread *s, uint16_t out[static 3])
{
	static const unsigned percents[] = { 50, 95, 99 };
	const uint64_t sum = spread_sum(s);

	for (unsigned i = 0; i < 3; i++)
		out[i] = sum ? percentile(s, sum, percents[i]) : TREND_NONE;
}

static void
spread_join(struct trend_spread *to, const struct trend_spread *from)
{
	for (unsigned i = 0; i < TREND_BUCKETS; i++)
		spread_add(to, i, from->n[i]);
}

/* ---- Steps ---- */

size_t
trend_bytes(unsigned scales)
{
	size_t n = sizeof(struct trend) + scales * sizeof(struct trend_ring);

	for (unsigned i = 0; i < scales; i++)
		n += trend_spans[i].steps * sizeof(struct trend_row);
	return n;
}

struct trend *
trend_new(unsigned scales, slu_time now)
{
	struct trend *const h = mem_zalloc(trend_bytes(scales));
	struct trend_row *rows;

	assert(scales <= TREND_SCALES);
	if (!h)
		return NULL;
	h->scales = (uint8_t)scales;
	rows = (struct trend_row *)&h->rings[scales];
	for (unsigned i = 0; i < scales; i++) {
		h->rings[i].rows = rows;
		h->rings[i].end = h->rings[i].first = now / trend_spans[i].length;
		rows += trend_spans[i].steps;
	}
	h->next = (h->rings[0].end + 1) * trend_spans[0].length;
	return h;
}

void
trend_free(struct trend *h)
{
	mem_free(h);
}

static void
join_step(struct trend_ring *to, const struct trend_ring *from)
{
	for (unsigned i = 0; i < TREND_EVENTS; i++)
		to->events[i] += from->events[i];
	spread_join(&to->wait, &from->wait);
	spread_join(&to->run, &from->run);
}

static void
end_step(struct trend *h, unsigned scale, const struct trend_now *at)
{
	struct trend_ring *const r = &h->rings[scale];
	const slu_time end = (r->end + 1) * trend_spans[scale].length;
	struct trend_row *const row = &r->rows[r->end % trend_spans[scale].steps];

	for (unsigned i = 0; i < TREND_EVENTS; i++)
		row->v[i] = trend_code(r->events[i]);
	for (unsigned i = 0; i < TREND_LEVELS; i++)
		row->v[TREND_LEVEL_AT + i] = trend_code(at->level[i]);
	row->v[TREND_OLDEST] = at->oldest < end ? trend_code((uint64_t)((end - at->oldest) / TREND_UNIT)) : 0;
	write_percentiles(&r->wait, &row->v[TREND_WAIT]);
	write_percentiles(&r->run, &row->v[TREND_RUN]);
	if (scale + 1u < h->scales)
		join_step(&h->rings[scale + 1], r);
	r->end++;
	memset(r->events, 0, sizeof r->events);
	r->wait = r->run = (struct trend_spread){ 0 };
}

void
trend_to(struct trend *h, slu_time now, const struct trend_now *at)
{
	while (now >= h->next) {
		for (unsigned i = 0; i < h->scales && h->next % trend_spans[i].length == 0; i++)
			end_step(h, i, at);
		h->next += trend_spans[0].length;
		h->moved = false;
	}
}

void
trend_wait(struct trend *h, slu_time time)
{
	spread_add(&h->rings[0].wait, bucket_of(time), 1);
}

void
trend_run(struct trend *h, slu_time time)
{
	spread_add(&h->rings[0].run, bucket_of(time), 1);
}

void
trend_read(const struct trend *h, enum trend_scale scale, struct trend_row *rows, uint32_t n, slu_time *end)
{
	const struct trend_ring *const r = &h->rings[scale];
	const uint32_t steps = trend_spans[scale].steps;

	assert(scale < h->scales && n <= steps);
	for (uint32_t i = 0; i < n; i++) {
		const int64_t step = r->end - (int64_t)(n - i);

		if (step >= r->first && step >= 0)
			rows[i] = r->rows[step % steps];
		else
			memset(&rows[i], 0xff, sizeof rows[i]); /* TREND_NONE */
	}
	*end = r->end * trend_spans[scale].length;
}
