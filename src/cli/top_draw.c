#include "cli/escape.h"
#include "cli/top.h"

#include "base/json_out.h"
#include "base/parse.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum {
	SPARK = 16, /* characters of a trend in the table */
	CELL = 32,
	COLUMN_QUEUE = 1, /* of the heads below */
	COLUMN_DEAD = 6
};

/* --- orders --------------------------------------------------------------------- */

static double
value_ready(const struct top_queue *q)
{
	return (double)q->ready;
}

static double
value_dead(const struct top_queue *q)
{
	return (double)q->dead;
}

static double
value_oldest(const struct top_queue *q)
{
	return (double)q->oldest;
}

static double
value_in(const struct top_queue *q)
{
	return q->rates[RATE_IN];
}

static double
value_done(const struct top_queue *q)
{
	return q->rates[RATE_DONE];
}

static double
value_failed(const struct top_queue *q)
{
	return q->rates[RATE_FAILED];
}

const struct top_order top_orders[] = {
	{ 'r', "ready", value_ready },
	{ 'd', "dead", value_dead },
	{ 'a', "age", value_oldest },
	{ 'i', "in", value_in },
	{ 'o', "done", value_done },
	{ 'f', "failures", value_failed },
	{ 'n', "name", NULL },
};

const unsigned top_n_orders = COUNT(top_orders);

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
add_rate(const struct top *t, struct table *table, double rate)
{
	if (!t->has_rates)
		table_cell(table, "-");
	else
		table_cell(table, rate > 0 && rate < 10 ? "%.1f" : "%.0f", rate);
}

static void
add_row(const struct top *t, struct table *table, const struct top_queue *q)
{
	char text[DURATION_TEXT];
	struct buf spark;

	buf_init(&spark, 1024);
	table_cell(table, "%s", q->space_shown);
	table_cell(table, "%s%s", q->shown, q->paused ? " (paused)" : "");
	table_cell(table, "%" PRIu64, q->ready);
	table_cell(table, "%" PRIu64, q->delayed);
	table_cell(table, "%" PRIu64, q->leased);
	table_cell(table, "%" PRIu64, q->held);
	table_cell(table, "%" PRIu64, q->dead);
	add_rate(t, table, q->rates[RATE_IN]);
	add_rate(t, table, q->rates[RATE_OUT]);
	add_rate(t, table, q->rates[RATE_DONE]);
	add_rate(t, table, q->rates[RATE_FAILED]);
	table_cell(table, "%s", age(q->oldest, text));
	put_spark(t, q, SPARK, &spark);
	table_text(table, buf_slice(&spark));
	buf_release(&spark);
}

static void
make_table(const struct top *t, struct table *table, size_t from, size_t to)
{
	static const char *const heads[] = { "NAMESPACE", "QUEUE", "READY", "DELAYED", "LEASED",
					     "HELD", "DEAD", "IN/S", "OUT/S", "DONE/S",
					     "FAIL/S", "OLDEST", "DEPTH" };

	table_init(table, heads, COUNT(heads), 0xffc);
	for (size_t i = from; i < to; i++)
		add_row(t, table, &t->queues[i]);
}

void
top_print(const struct top *t)
{
	struct table table;

	make_table(t, &table, 0, t->n);
	(void)table_print(&table, stdout, session_colours(stdout)); /* no memory: no table */
	table_release(&table);
}

static void
put_rate(struct json_out *w, const char *name, double rate)
{
	char text[CELL];

	(void)snprintf(text, sizeof text, "%.3f", rate);
	json_out_raw(w, name, slice_of(text));
}

static void
put_json(const struct top_queue *q, struct json_out *w)
{
	json_out_object(w, NULL);
	json_out_str(w, "namespace", slice_of(q->space));
	json_out_str(w, "topic", slice_of(q->name));
	json_out_u64(w, "ready", q->ready);
	json_out_u64(w, "delayed", q->delayed);
	json_out_u64(w, "leased", q->leased);
	json_out_u64(w, "held", q->held);
	json_out_u64(w, "dead", q->dead);
	json_out_bool(w, "paused", q->paused);
	if (q->oldest >= 0)
		json_out_i64(w, "oldest_ready_ms", q->oldest);
	put_rate(w, "in_per_s", q->rates[RATE_IN]);
	put_rate(w, "out_per_s", q->rates[RATE_OUT]);
	put_rate(w, "done_per_s", q->rates[RATE_DONE]);
	put_rate(w, "failed_per_s", q->rates[RATE_FAILED]);
	put_rate(w, "died_per_s", q->rates[RATE_DIED]);
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

/* Characters of a line that have a colour. */
struct paint {
	unsigned from, to;
	const char *colour; /* NULL: none */
};

static unsigned
width_of(struct slice line)
{
	unsigned width = 0;

	for (size_t i = 0; i < line.n; i++)
		width += ((unsigned char)line.p[i] & 0xc0) != 0x80;
	return width;
}

/* A line, and the rest of the terminal's empty. What does not fit is cut, and that is marked. */
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

static void
put_head(const struct top *t, unsigned columns, struct buf *out)
{
	uint64_t live = 0, dead = 0;
	double rates[TOP_RATES] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		const struct top_queue *q = &t->queues[i];

		live += q->ready + q->delayed + q->leased + q->held;
		dead += q->dead;
		for (int r = 0; r < TOP_RATES; r++)
			rates[r] += q->rates[r];
	}
	if (t->err.code)
		put_text(t, out, columns, "sluice top  %s  %s", t->s.shown,
			 t->err.text);
	else
		put_text(t, out, columns,
			 "sluice top  %s  %zu queues  %" PRIu64 " messages  %" PRIu64
			 " dead  in %.0f/s  out %.0f/s  done %.0f/s  failed %.0f/s",
			 t->s.shown, t->n, live, dead, rates[RATE_IN],
			 rates[RATE_OUT], rates[RATE_DONE], rates[RATE_FAILED]);
}

/* Which of the queues fit, so that the selected one is among them. */
static size_t
first_shown(const struct top *t, size_t fit)
{
	return t->selected >= fit ? t->selected - fit + 1 : 0;
}

/* The cells of a column: yellow where the queue is paused, red where letters are dead. */
static struct paint
paint_column(const struct table *table, unsigned column, const char *colour)
{
	struct paint p = { .colour = colour };

	for (unsigned i = 0; i < column; i++)
		p.from += table->width[i] + 2;
	p.to = p.from + table->width[column];
	return p;
}

static void
choose_paints(const struct top *t, const struct table *table, const struct top_queue *q,
	      struct paint out[static 2])
{
	out[0] = paint_column(table, COLUMN_QUEUE, t->colours && q->paused ? "\033[33m" : NULL);
	out[1] = paint_column(table, COLUMN_DEAD, t->colours && q->dead ? "\033[31m" : NULL);
}

static void
put_table(const struct top *t, unsigned columns, size_t fit, struct buf *out)
{
	const size_t from = first_shown(t, fit);
	const size_t to = from + fit < t->n_shown ? from + fit : t->n_shown;
	struct table table;
	size_t row = 0;
	struct paint paints[2] = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	make_table(t, &table, from, to);
	(void)table_print(&table, f, false); /* no memory: no table */
	(void)fclose(f);                     /* to memory */
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
	const struct top_queue *q = &t->queues[t->selected];
	char text[DURATION_TEXT];
	struct buf spark;

	buf_init(&spark, 4096);
	put_spark(t, q, TOP_HISTORY, &spark);
	put_text(t, out, columns, " ");
	put_text(t, out, columns, "queue      %s in namespace %s%s", q->shown, q->space_shown,
		 q->paused ? ", paused" : "");
	put_text(t, out, columns, "ready      %" PRIu64 ", the oldest for %s", q->ready,
		 age(q->oldest, text));
	put_text(t, out, columns, "delayed    %" PRIu64, q->delayed);
	put_text(t, out, columns, "leased     %" PRIu64, q->leased);
	put_text(t, out, columns, "held       %" PRIu64, q->held);
	put_text(t, out, columns, "dead       %" PRIu64, q->dead);
	put_text(t, out, columns, "accepted   %" PRIu64 ", %.1f/s", q->totals[RATE_IN], q->rates[RATE_IN]);
	put_text(t, out, columns, "delivered  %" PRIu64 ", %.1f/s", q->totals[RATE_OUT], q->rates[RATE_OUT]);
	put_text(t, out, columns, "finished   %" PRIu64 ", %.1f/s", q->totals[RATE_DONE], q->rates[RATE_DONE]);
	put_text(t, out, columns, "failed     %" PRIu64 ", %.1f/s", q->totals[RATE_FAILED], q->rates[RATE_FAILED]);
	put_text(t, out, columns, "died       %" PRIu64 ", %.1f/s", q->totals[RATE_DIED], q->rates[RATE_DIED]);
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

/* What can be typed now, or what was to be said. */
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
			 t->queues[t->selected].paused ? "resume" : "pause");
	else
		put_sorts(t, columns, out);
}

static void
put_help(const struct top *t, unsigned columns, struct buf *out)
{
	static const char *const lines[] = {
		" ",
		"r d a i o f n   sort by ready, dead, age, in, done, failures, name",
		"R               the other way round",
		"/               show only queues with a text in namespace/queue; esc: all",
		"arrows, j k     select a queue",
		"enter, right    open it",
		"esc, left       back",
		"p               pause or resume the selected queue",
		"x               redrive its dead letters",
		"?               this list; any key leaves it",
		"q, Ctrl-C       quit",
	};

	for (size_t i = 0; i < COUNT(lines); i++)
		put_text(t, out, columns, "%s", lines[i]);
}

void
top_draw(const struct top *t, unsigned rows, unsigned columns, struct buf *out)
{
	const size_t fit = rows > 4 ? rows - 4 : 1; /* head, keys, heads of columns, a last line */

	buf_clear(out);
	buf_puts(out, "\033[H");
	put_head(t, columns, out);
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
