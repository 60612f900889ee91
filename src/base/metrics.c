/*
 * metrics.c - cells, and their output.
 *
 *      cells:  | series 0: row 0 | row 1 | ... | series 1: row 0 | ... |
 *              | histogram | histogram | ...            for each series and histogram row
 *
 * All are in one block of memory. Each cell and each histogram begins on a cache line of its
 * own, so that writers of different cells do not slow each other down.
 *
 * A histogram stores the count of each bucket; the output computes cumulative counts and the
 * total from one reading of the buckets. So a text is consistent, except that _sum may differ
 * by observations that are being written.
 */
#include "base/metrics.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
	CACHE_LINE = 64,
	BOUNDS = 24,
	BUCKETS = BOUNDS + 1 /* the last one has no bound */
};

struct histogram {
	_Alignas(CACHE_LINE) _Atomic uint64_t buckets[BUCKETS];
};

struct metric_cell {
	_Alignas(CACHE_LINE) _Atomic uint64_t value; /* histogram: sum, of times in ns */
	struct histogram *hist;                      /* NULL: not a histogram */
};

/* Each is at least twice the one before, as bucket_of_time requires. */
static const struct {
	slu_time most;
	const char *text; /* in seconds */
} bounds[BUCKETS] = {
	{ 1000, "1e-06" },
	{ 2500, "2.5e-06" },
	{ 5000, "5e-06" },
	{ 10000, "1e-05" },
	{ 25000, "2.5e-05" },
	{ 50000, "5e-05" },
	{ 100000, "0.0001" },
	{ 250000, "0.00025" },
	{ 500000, "0.0005" },
	{ 1000000, "0.001" },
	{ 2500000, "0.0025" },
	{ 5000000, "0.005" },
	{ 10000000, "0.01" },
	{ 25000000, "0.025" },
	{ 50000000, "0.05" },
	{ 100000000, "0.1" },
	{ 250000000, "0.25" },
	{ 500000000, "0.5" },
	{ 1000000000, "1" },
	{ 2500000000, "2.5" },
	{ 5000000000, "5" },
	{ 10000000000, "10" },
	{ 25000000000, "25" },
	{ 60000000000, "60" },
	{ INT64_MAX, "+Inf" },
};

/* For a time whose highest bit is number i: the first bound of at least 2^i. */
static const uint8_t first_bound[64] = {
	/* clang-format off */
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  1,  1,  2,  3,  4,  5,
	 6,  7,  8,  9, 10, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 19,
	20, 21, 22, 23, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
	24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
	/* clang-format on */
};

static const char *const kind_names[] = {
	[METRIC_COUNTER] = "counter",
	[METRIC_GAUGE] = "gauge",
	[METRIC_HISTOGRAM] = "histogram",
	[METRIC_SIZES] = "histogram",
};

static bool
is_histogram(const struct metric *row)
{
	return row->kind == METRIC_HISTOGRAM || row->kind == METRIC_SIZES;
}

/* Between 2^i and 2^(i+1) there is at most one bound, so one comparison is enough. */
static unsigned
bucket_of_time(slu_time t)
{
	unsigned i;

	if (t <= bounds[0].most) /* the common case */
		return 0;
	i = first_bound[63 - __builtin_clzll((uint64_t)t)];
	return i + (t > bounds[i].most);
}

/* Bound i is 2^i. */
static unsigned
bucket_of_size(slu_time n)
{
	const unsigned i = n <= 1 ? 0 : 64 - (unsigned)__builtin_clzll((uint64_t)n - 1);

	return i < BOUNDS ? i : BOUNDS;
}

static unsigned
bucket_of(const struct metrics *m, unsigned row, slu_time v)
{
	return m->rows[row].kind == METRIC_SIZES ? bucket_of_size(v) : bucket_of_time(v);
}

static struct metric_cell *
cell_at(const struct metrics *m, unsigned row, unsigned series)
{
	assert(row < m->n_rows && series < m->n_series);
	return &m->cells[(size_t)series * m->n_rows + row];
}

static bool
is_metric_name(const char *s)
{
	for (const char *p = s; *p; p++) {
		const bool letter = (*p >= 'a' && *p <= 'z') ||
				    (*p >= 'A' && *p <= 'Z') || *p == '_' ||
				    *p == ':';
		const bool digit = *p >= '0' && *p <= '9';

		if (!letter && (!digit || p == s))
			return false;
	}
	return true;
}

static unsigned
count_histograms(const struct metrics *m)
{
	unsigned n = 0;

	for (unsigned row = 0; row < m->n_rows; row++) {
		assert(m->rows[row].name[0] && is_metric_name(m->rows[row].name));
		n += is_histogram(&m->rows[row]);
	}
	return n;
}

static int
alloc_cells(struct metrics *m)
{
	const size_t series_size = m->n_rows * sizeof(struct metric_cell) +
				   count_histograms(m) * sizeof(struct histogram);
	struct histogram *hist;
	size_t size;

	if (__builtin_mul_overflow(series_size, m->n_series, &size))
		return SLU_ENOMEM;
	m->cells = mem_aligned(CACHE_LINE, size);
	if (!m->cells)
		return SLU_ENOMEM;
	memset((void *)m->cells, 0, size);

	hist = (void *)&m->cells[(size_t)m->n_series * m->n_rows];
	for (unsigned series = 0; series < m->n_series; series++)
		for (unsigned row = 0; row < m->n_rows; row++)
			if (is_histogram(&m->rows[row]))
				cell_at(m, row, series)->hist = hist++;
	return 0;
}

int
metrics_init(struct metrics *m, const char *prefix, const struct metric *rows,
	     unsigned n_rows, const char *label, unsigned n_series)
{
	assert(label || n_series == 1);
	*m = (struct metrics){
		.rows = rows,
		.n_rows = n_rows,
		.label = label,
		.n_series = n_series,
	};
	if (strlen(prefix) >= sizeof m->prefix || !is_metric_name(prefix))
		return SLU_EINVAL;
	memcpy(m->prefix, prefix, strlen(prefix) + 1);

	m->labels = mem_array(n_series, sizeof *m->labels);
	if (!m->labels || alloc_cells(m)) {
		metrics_release(m);
		return SLU_ENOMEM;
	}
	return 0;
}

void
metrics_release(struct metrics *m)
{
	for (unsigned i = 0; m->labels && i < m->n_series; i++)
		mem_free(m->labels[i]);
	mem_free(m->labels);
	mem_free(m->cells);
	*m = (struct metrics){ 0 };
}

/* Label values escape backslash, quote and newline; help texts do not escape the quote. */
static void
put_escaped(struct buf *out, const char *s, bool quote)
{
	for (; *s; s++) {
		if (*s == '\n')
			buf_puts(out, "\\n");
		else if (*s == '\\' || (*s == '"' && quote))
			buf_printf(out, "\\%c", *s);
		else
			buf_putc(out, *s);
	}
}

int
metrics_labels(struct metrics *m, unsigned series, const char *labels)
{
	char *copy = mem_strdup(labels);

	assert(series < m->n_series);
	if (!copy)
		return SLU_ENOMEM;
	mem_free(m->labels[series]);
	m->labels[series] = copy;
	return 0;
}

int
metrics_name(struct metrics *m, unsigned series, const char *name)
{
	struct buf text;
	int rc;

	buf_init(&text, METRICS_TEXT_MAX);
	buf_printf(&text, "%s=\"", m->label);
	put_escaped(&text, name, true);
	buf_puts(&text, "\"");
	rc = text.failed ? SLU_ENOMEM : metrics_labels(m, series, buf_str(&text));
	buf_release(&text);
	return rc;
}

void
metrics_add(struct metrics *m, unsigned row, unsigned series, uint64_t n)
{
	struct metric_cell *c = cell_at(m, row, series);

	assert(!c->hist);
	atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

void
metrics_set(struct metrics *m, unsigned row, unsigned series, int64_t value)
{
	struct metric_cell *c = cell_at(m, row, series);

	assert(!c->hist);
	atomic_store_explicit(&c->value, (uint64_t)value, memory_order_relaxed);
}

void
metrics_observe(struct metrics *m, unsigned row, unsigned series, slu_time t)
{
	struct metric_cell *c = cell_at(m, row, series);

	assert(c->hist);
	t = t < 0 ? 0 : t;
	atomic_fetch_add_explicit(&c->hist->buckets[bucket_of(m, row, t)], 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&c->value, (uint64_t)t, memory_order_relaxed);
}

/* A plain load and store; atomic only for readers. */
static void
add_own(_Atomic uint64_t *p, uint64_t n)
{
	const uint64_t v = atomic_load_explicit(p, memory_order_relaxed);

	atomic_store_explicit(p, v + n, memory_order_relaxed);
}

void
metrics_add_own(struct metrics *m, unsigned row, unsigned series, uint64_t n)
{
	struct metric_cell *c = cell_at(m, row, series);

	assert(!c->hist);
	add_own(&c->value, n);
}

void
metrics_observe_own(struct metrics *m, unsigned row, unsigned series, slu_time t)
{
	struct metric_cell *c = cell_at(m, row, series);

	assert(c->hist);
	t = t < 0 ? 0 : t;
	add_own(&c->hist->buckets[bucket_of(m, row, t)], 1);
	add_own(&c->value, (uint64_t)t);
}

int64_t
metrics_get(const struct metrics *m, unsigned row, unsigned series)
{
	const struct metric_cell *c = cell_at(m, row, series);
	uint64_t n = 0;

	if (!c->hist)
		return (int64_t)atomic_load_explicit(&c->value, memory_order_relaxed);
	for (unsigned i = 0; i < BUCKETS; i++)
		n += atomic_load_explicit(&c->hist->buckets[i], memory_order_relaxed);
	return (int64_t)n;
}

static void
merge_cell(struct metric_cell *c, const struct metric_cell *from)
{
	atomic_fetch_add_explicit(&c->value,
				  atomic_load_explicit(&from->value, memory_order_relaxed),
				  memory_order_relaxed);
	for (unsigned i = 0; c->hist && i < BUCKETS; i++)
		atomic_fetch_add_explicit(&c->hist->buckets[i],
					  atomic_load_explicit(&from->hist->buckets[i],
							       memory_order_relaxed),
					  memory_order_relaxed);
}

void
metrics_merge(struct metrics *m, const struct metrics *from)
{
	assert(m->rows == from->rows && m->n_series == from->n_series);
	for (unsigned series = 0; series < m->n_series; series++)
		for (unsigned row = 0; row < m->n_rows; row++)
			merge_cell(cell_at(m, row, series), cell_at(from, row, series));
}

static void
put_label(const struct metrics *m, unsigned series, struct buf *out)
{
	if (m->labels[series])
		buf_puts(out, m->labels[series]);
	else
		buf_printf(out, "%s=\"%u\"", m->label, series);
}

/* name, suffix and labels: sluice_exec_run_seconds_bucket{shard="0",le="0.1"} */
static void
put_sample(const struct metrics *m, unsigned row, unsigned series,
	   const char *suffix, const char *le, struct buf *out)
{
	buf_printf(out, "%s%s%s", m->prefix, m->rows[row].name, suffix);
	if (!m->label && !le)
		return;
	buf_putc(out, '{');
	if (m->label)
		put_label(m, series, out);
	if (le)
		buf_printf(out, "%sle=\"%s\"", m->label ? "," : "", le);
	buf_putc(out, '}');
}

/* The bound of a bucket as text. */
static const char *
bound_text(const struct metric *row, unsigned i, char text[static 24])
{
	if (row->kind == METRIC_HISTOGRAM || i == BOUNDS)
		return bounds[i].text;
	(void)snprintf(text, 24, "%u", 1u << i); /* always fits */
	return text;
}

static void
write_sum(const struct metrics *m, unsigned row, unsigned series, uint64_t sum,
	  struct buf *out)
{
	put_sample(m, row, series, "_sum", NULL, out);
	if (m->rows[row].kind == METRIC_SIZES)
		buf_printf(out, " %" PRIu64 "\n", sum);
	else
		buf_printf(out, " %" PRIu64 ".%09" PRIu64 "\n", sum / SLU_SEC, sum % SLU_SEC);
}

static void
write_histogram(const struct metrics *m, unsigned row, unsigned series,
		struct buf *out)
{
	const struct metric_cell *c = cell_at(m, row, series);
	const uint64_t sum = atomic_load_explicit(&c->value, memory_order_relaxed);
	uint64_t n = 0;
	char text[24];

	for (unsigned i = 0; i < BUCKETS; i++) {
		n += atomic_load_explicit(&c->hist->buckets[i], memory_order_relaxed);
		put_sample(m, row, series, "_bucket", bound_text(&m->rows[row], i, text), out);
		buf_printf(out, " %" PRIu64 "\n", n);
	}
	write_sum(m, row, series, sum, out);
	put_sample(m, row, series, "_count", NULL, out);
	buf_printf(out, " %" PRIu64 "\n", n);
}

static void
write_series(const struct metrics *m, unsigned row, unsigned series, struct buf *out)
{
	const int64_t value = metrics_get(m, row, series);

	if (is_histogram(&m->rows[row])) {
		write_histogram(m, row, series, out);
		return;
	}
	put_sample(m, row, series, "", NULL, out);
	if (m->rows[row].kind == METRIC_COUNTER)
		buf_printf(out, " %" PRIu64 "\n", (uint64_t)value);
	else
		buf_printf(out, " %" PRId64 "\n", value);
}

static void
write_row(const struct metrics *const *sets, unsigned n, unsigned row, struct buf *out)
{
	const struct metric *r = &sets[0]->rows[row];

	buf_printf(out, "# HELP %s%s ", sets[0]->prefix, r->name);
	put_escaped(out, r->help, false);
	buf_printf(out, "\n# TYPE %s%s %s\n", sets[0]->prefix, r->name, kind_names[r->kind]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned series = 0; series < sets[i]->n_series; series++)
			if (!sets[i]->quiet || metrics_get(sets[i], row, series))
				write_series(sets[i], row, series, out);
}

void
metrics_write_all(const struct metrics *const *sets, unsigned n, struct buf *out)
{
	for (unsigned row = 0; n > 0 && row < sets[0]->n_rows; row++)
		write_row(sets, n, row, out);
}

void
metrics_write(const struct metrics *m, struct buf *out)
{
	metrics_write_all(&m, 1, out);
}

int
metrics_text(const struct metrics *m, char **text)
{
	struct buf out;

	buf_init(&out, METRICS_TEXT_MAX);
	metrics_write(m, &out);
	buf_putc(&out, 0);
	if (out.failed) {
		buf_release(&out);
		return SLU_ENOMEM;
	}
	*text = out.p; /* owned by the caller now */
	return 0;
}
