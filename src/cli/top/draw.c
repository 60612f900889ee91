#include "cli/lib/escape.h"
#include "cli/top/top.h"

#include "base/json/json_out.h"
#include "base/parse.h"
#include "cli/lib/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum {
	SPARK = 16, /* width of a trend in the table */
	CELL = 32,
	COLUMN_QUEUE = 1, /* columns; see heads below */
	COLUMN_DEAD = 6,
	OWNERS_MAX = 1 << 20 /* bytes of their lines */
};

/* --- sparklines ----------------------------------------------------------------- */

static void
put_spark(const struct top *t, const struct top_queue *q, unsigned width, struct buf *out)
{
	static const char *const blocks[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					      "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char *const plain[] = { ".", ":", "-", "=", "+", "*", "#", "@" };
	const unsigned from = q->n_history > width ? q->n_history - width : 0;
	uint64_t most = 1;

	for (unsigned i = from; i < q->n_history; i++)
		most = q->history[i] > most ? q->history[i] : most;
	for (unsigned i = from; i < q->n_history; i++) {
		const unsigned level = (unsigned)((double)q->history[i] * 7 / (double)most);

		buf_puts(out, t->utf8 ? blocks[level] : plain[level]);
	}
}

/* --- the table ------------------------------------------------------------------ */

static const char *
age(int64_t ms, char out[static DURATION_TEXT])
{
	const slu_time rounded = ms > 10000 ? ms - ms % 1000 : ms;

	return ms < 0 ? "-" : format_duration(rounded * SLU_MS, out, DURATION_TEXT);
}

static void
add_rate(const struct top *t, struct text_table *table, double rate)
{
	if (!t->has_rates)
		table_cell(table, "-");
	else
		table_cell(table, rate > 0 && rate < 10 ? "%.1f" : "%.0f", rate);
}

static void
add_row(const struct top *t, struct text_table *table, const struct top_queue *q)
{
	char text[DURATION_TEXT];
	struct buf spark;

	buf_init(&spark, 1024);
	table_cell(table, "%s", q->space_shown);
	table_cell(table, "%s%s%s", q->shown, q->paused ? " (paused)" : "", q->draining ? " (draining)" : "");
	for (unsigned i = 0; i < TOP_COUNTS; i++)
		table_cell(table, "%" PRIu64, q->counts[i]);
	for (unsigned i = RATE_IN; i <= RATE_FAILED; i++)
		add_rate(t, table, q->rates[i]);
	table_cell(table, "%s", age(q->oldest, text));
	put_spark(t, q, SPARK, &spark);
	table_text(table, buf_slice(&spark));
	buf_release(&spark);
}

static void
make_table(const struct top *t, struct text_table *table, size_t from, size_t to)
{
	static const char *const heads[] = { "NAMESPACE", "QUEUE", "READY", "DELAYED", "LEASED",
					     "HELD", "DEAD", "IN/S", "OUT/S", "DONE/S",
					     "FAIL/S", "OLDEST", "DEPTH" };

	table_init(table, heads, COUNT(heads), 0xffc);
	for (size_t i = from; i < to; i++)
		add_row(t, table, &t->queues[i]);
}

static void
print_store(const struct top *t)
{
	char store[NODEHEALTH_TEXT];
	struct buf owners;

	buf_init(&owners, OWNERS_MAX);
	shardowners_text(&t->owners, &owners);
	printf("store: %s\n%s", nodehealth_text(&t->nodes, store), buf_str(&owners));
	buf_release(&owners);
}

void
top_print(const struct top *t)
{
	struct text_table table;

	make_table(t, &table, 0, t->n);
	(void)table_print(&table, stdout, session_colours(stdout)); /* without memory there is no table */
	table_release(&table);
	if (t->nodes.living)
		print_store(t);
}

static void
put_json(const struct top_queue *q, struct json_out *w)
{
	static const char *const rates[TOP_RATES] = { "in_per_s", "out_per_s", "done_per_s", "failed_per_s", "died_per_s" };
	char text[CELL];

	json_out_object(w, NULL);
	json_out_str(w, "namespace", slice_of(q->space));
	json_out_str(w, "topic", slice_of(q->name)); /* the name that older scripts read */
	json_out_str(w, "queue", slice_of(q->name));
	for (unsigned i = 0; i < TOP_COUNTS; i++)
		json_out_u64(w, top_counts[i], q->counts[i]);
	json_out_bool(w, "paused", q->paused);
	if (q->oldest >= 0)
		json_out_i64(w, "oldest_ready_ms", q->oldest);
	for (unsigned i = 0; i < TOP_RATES; i++) {
		(void)snprintf(text, sizeof text, "%.3f", q->rates[i]);
		json_out_raw(w, rates[i], slice_of(text));
	}
	json_out_close(w);
}

void
top_print_json(const struct top *t)
{
	struct json_out w;
	struct buf line;

	buf_init(&line, 64 * 1024);
	for (size_t i = 0; i < t->n; i++) {
		buf_clear(&line);
		json_out_init(&w, &line);
		put_json(&t->queues[i], &w);
		puts(buf_str(&line));
	}
	buf_release(&line);
}

/* --- the screen ----------------------------------------------------------------- */

/* A range of characters with a colour. */
struct paint {
	unsigned from, to;
	const char *colour; /* NULL = none */
};

static unsigned
width_of(struct slice line)
{
	unsigned width = 0;

	for (size_t i = 0; i < line.n; i++)
		width += ((unsigned char)line.p[i] & 0xc0) != 0x80;
	return width;
}

/* Draws a line and clears the rest. A line that does not fit is cut and marked. */
static void
put_line(const struct top *t, struct buf *out, unsigned columns, struct slice line,
	 const struct paint *paints, unsigned n)
{
	const bool cut = width_of(line) > columns;
	unsigned at = 0;

	for (size_t i = 0; i < line.n; i++) {
		const bool begins = ((unsigned char)line.p[i] & 0xc0) != 0x80;

		if (begins && cut && at + 1 == columns)
			break;
		for (unsigned k = 0; k < n && begins; k++)
			if (paints[k].colour && (at == paints[k].from || at == paints[k].to))
				buf_puts(out, at == paints[k].from ? paints[k].colour : "\033[39m");
		buf_putc(out, line.p[i]);
		at += begins;
	}
	buf_puts(out, n ? "\033[39m" : "");
	if (cut)
		buf_puts(out, t->utf8 ? "\u2026" : ">");
	buf_puts(out, "\033[K\r\n");
}

static void
put_text(const struct top *t, struct buf *out, unsigned columns, const char *fmt, ...) SLU_PRINTF(4, 5);

static void
put_text(const struct top *t, struct buf *out, unsigned columns, const char *fmt, ...)
{
	char line[512];
	struct buf shown;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap); /* cut is fine */
	va_end(ap);
	buf_init(&shown, ESCAPE_MAX * sizeof line);
	escape_put(&shown, slice_of(line), false);
	put_line(t, out, columns, buf_slice(&shown), NULL, 0);
	buf_release(&shown);
}

/* Owners take a third of the screen at most. Returns how many lines were drawn. */
static unsigned
put_store(const struct top *t, unsigned rows, unsigned columns, struct buf *out)
{
	char store[NODEHEALTH_TEXT];
	struct slice rest, line;
	struct buf owners;
	unsigned n = 1;

	put_text(t, out, columns, "store       %s", nodehealth_text(&t->nodes, store));
	buf_init(&owners, OWNERS_MAX);
	shardowners_text(&t->owners, &owners);
	for (rest = buf_slice(&owners); rest.n > 0 && n <= rows / 3; n++) {
		(void)slice_cut(&rest, '\n', &line);
		put_line(t, out, columns, line, NULL, 0);
	}
	buf_release(&owners);
	return n;
}

/* Returns how many lines were drawn. */
static unsigned
put_head(const struct top *t, unsigned rows, unsigned columns, struct buf *out)
{
	uint64_t live = 0, dead = 0;
	double rates[TOP_RATES] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		const struct top_queue *q = &t->queues[i];

		live += top_depth(q);
		dead += q->counts[TOP_DEAD];
		for (int r = 0; r < TOP_RATES; r++)
			rates[r] += q->rates[r];
	}
	if (t->err.code)
		put_text(t, out, columns, "sluice top  %s  %s", t->s.shown,
			 t->err.text);
	else
		put_text(t, out, columns,
			 "sluice top  %s%s%s  %zu queues  %" PRIu64 " messages  %" PRIu64
			 " dead  in %.0f/s  out %.0f/s  done %.0f/s  failed %.0f/s",
			 t->s.shown, *t->missing.text ? "  incomplete: no answer from shard " : "", t->missing.text, t->n, live, dead, rates[RATE_IN],
			 rates[RATE_OUT], rates[RATE_DONE], rates[RATE_FAILED]);
	return 1 + (t->nodes.living ? put_store(t, rows, columns, out) : 0);
}

/* The first queue to draw, so that the selected one is visible. */
static size_t
first_shown(const struct top *t, size_t fit)
{
	return t->selected >= fit ? t->selected - fit + 1 : 0;
}

/* Colours a row: yellow if the queue is paused or drained, red if it has dead letters. */
static struct paint
paint_column(const struct text_table *table, unsigned column, const char *colour)
{
	struct paint p = { .colour = colour };

	for (unsigned i = 0; i < column; i++)
		p.from += table->width[i] + 2;
	p.to = p.from + table->width[column];
	return p;
}

static void
choose_paints(const struct top *t, const struct text_table *table, const struct top_queue *q,
	      struct paint out[static 2])
{
	out[0] = paint_column(table, COLUMN_QUEUE, t->colours && (q->paused || q->draining) ? "\033[33m" : NULL);
	out[1] = paint_column(table, COLUMN_DEAD, t->colours && q->counts[TOP_DEAD] ? "\033[31m" : NULL);
}

static void
put_table(const struct top *t, unsigned columns, size_t fit, struct buf *out)
{
	const size_t from = first_shown(t, fit);
	const size_t to = from + fit < t->n_shown ? from + fit : t->n_shown;
	struct text_table table;
	size_t row = 0;
	struct paint paints[2] = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	make_table(t, &table, from, to);
	(void)table_print(&table, f, false); /* without memory there is no table */
	(void)fclose(f);                     /* writing to memory cannot fail */
	for (const char *p = text; p && *p; row++) {
		const size_t n = strcspn(p, "\n");
		const bool marked = row == 0 || from + row - 1 == t->selected;

		if (row > 0)
			choose_paints(t, &table, &t->queues[from + row - 1], paints);
		buf_puts(out, marked ? (row == 0 ? "\033[1m" : "\033[7m") : "");
		put_line(t, out, columns, (struct slice){ p, n }, paints, row > 0 && t->colours ? 2 : 0);
		buf_puts(out, marked ? "\033[0m" : "");
		p += n + (p[n] == '\n');
	}
	table_release(&table);
	free(text);
}

static void
put_one(const struct top *t, unsigned columns, struct buf *out)
{
	static const char *const totals[TOP_RATES] = { "accepted", "delivered", "finished", "failed", "died" };
	const struct top_queue *q = &t->queues[t->selected];
	char text[DURATION_TEXT];
	struct buf spark;

	buf_init(&spark, 4096);
	put_spark(t, q, TOP_HISTORY, &spark);
	put_text(t, out, columns, " ");
	put_text(t, out, columns, "queue      %s in namespace %s%s%s", q->shown, q->space_shown,
		 q->paused ? ", paused" : "", q->draining ? ", draining" : "");
	put_text(t, out, columns, "ready      %" PRIu64 ", the oldest for %s", q->counts[TOP_READY],
		 age(q->oldest, text));
	for (unsigned i = TOP_DELAYED; i < TOP_COUNTS; i++)
		put_text(t, out, columns, "%-11s%" PRIu64, top_counts[i], q->counts[i]);
	for (unsigned i = 0; i < TOP_RATES; i++)
		put_text(t, out, columns, "%-11s%" PRIu64 ", %.1f/s", totals[i], q->totals[i], q->rates[i]);
	put_text(t, out, columns, "depth      %s", buf_str(&spark));
	buf_release(&spark);
}

static void
put_sorts(const struct top *t, unsigned columns, struct buf *out)
{
	char line[256];
	int n;

	n = snprintf(line, sizeof line, "sort by");
	for (unsigned i = 0; i < top_n_orders && n < (int)sizeof line; i++)
		n += snprintf(line + n, sizeof line - (size_t)n, " %s%c:%s%s", i == t->order ? "[" : "",
			      top_orders[i].key, top_orders[i].name, i == t->order ? "]" : "");
	put_text(t, out, columns, "%s%s%s%s  / filter  p pause  x redrive  ? help  q quit",
		 t->filter[0] ? "filter " : "", t->filter, t->filter[0] ? "  " : "", line);
}

/* The last line: a note, a question, or the keys. */
static void
put_keys(const struct top *t, unsigned columns, struct buf *out)
{
	char line[256];

	if (t->input == TOP_FILTER)
		put_text(t, out, columns, "filter: %s_  enter keep  esc all", t->filter);
	else if (t->input == TOP_ANSWER)
		put_text(t, out, columns, "%s", top_question(t, line, sizeof line));
	else if (t->note[0])
		put_text(t, out, columns, "%s", t->note);
	else if (t->inside)
		put_text(t, out, columns, "esc back  p %s  x redrive  ? help  q quit",
			 t->queues[t->selected].paused || t->queues[t->selected].draining ? "resume" : "pause");
	else
		put_sorts(t, columns, out);
}

static void
put_help(const struct top *t, unsigned columns, struct buf *out)
{
	static const char *const lines[] = {
		" ",
		"r d a i o f n   sort by ready, dead, age, in, done, failures, name",
		"R               reverse the order",
		"/               filter by a text in namespace/queue; esc: all queues",
		"arrows, j k     select a queue",
		"enter, right    open the queue",
		"esc, left       back",
		"p               pause or resume the selected queue",
		"x               redrive its dead letters",
		"?               this list; any key closes it",
		"q, Ctrl-C       quit",
	};

	for (size_t i = 0; i < COUNT(lines); i++)
		put_text(t, out, columns, "%s", lines[i]);
}

void
top_draw(const struct top *t, unsigned rows, unsigned columns, struct buf *out)
{
	unsigned heads = 3; /* keys, column heads, last line */
	size_t fit;

	buf_clear(out);
	buf_puts(out, "\033[H");
	heads += put_head(t, rows, columns, out);
	fit = rows > heads ? rows - heads : 1;
	put_keys(t, columns, out);
	if (t->input == TOP_HELP)
		put_help(t, columns, out);
	else if (t->n_shown == 0)
		put_text(t, out, columns, t->n ? "no queue matches" : "no queues yet");
	else if (t->inside)
		put_one(t, columns, out);
	else
		put_table(t, columns, fit, out);
	buf_puts(out, "\033[J");
}
