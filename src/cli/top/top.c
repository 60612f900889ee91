/*
 * top.c - `sluice top`: shows the queues of a server live.
 */
#include "cli/top/top.h"

#include "base/clock.h"
#include "cli/top/terminal.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	SCREEN_MAX = 1 << 20,
	BACKSPACE = 127
};

/* --- once ----------------------------------------------------------------------- */

/* Takes two samples, because a rate is the difference between them. */
static int
show_once(struct top *t, struct slu_err *err)
{
	const slu_time d = t->interval;

	top_sample(t);
	if (!t->err.code) {
		(void)nanosleep(&(struct timespec){ d / SLU_SEC, d % SLU_SEC }, NULL);
		top_sample(t);
	}
	if (t->err.code)
		return slu_fail(err, t->err.code, "%s", t->err.text);
	top_sort(t);
	missing_warn(&t->missing, &t->s);
	if (t->s.json)
		top_print_json(t);
	else
		top_print(t);
	return 0;
}

/* --- live ----------------------------------------------------------------------- */

static void
choose_order(struct top *t, int key)
{
	for (unsigned i = 0; i < top_n_orders; i++)
		if (top_orders[i].key == key)
			t->order = i;
	t->reverse = key == 'R' ? !t->reverse : t->reverse;
}

/* Edits the filter. Enter keeps it, esc removes it. */
static void
take_filter_key(struct top *t, int key)
{
	const size_t n = strlen(t->filter);

	if (key == KEY_ENTER || key == KEY_ESCAPE)
		t->input = TOP_KEYS;
	if (key == KEY_ESCAPE)
		t->filter[0] = '\0';
	else if ((key == BACKSPACE || key == '\b') && n > 0)
		t->filter[n - 1] = '\0';
	else if (key > ' ' && key < BACKSPACE && n + 1 < sizeof t->filter)
		t->filter[n] = (char)key, t->filter[n + 1] = '\0';
}

static void
take_answer(struct top *t, int key)
{
	t->input = TOP_KEYS;
	if (key == 'y' || key == 'Y')
		t->act.agreed = true;
	else
		t->act.kind = ACT_NONE;
}

static void
go_back(struct top *t)
{
	if (!t->inside)
		t->filter[0] = '\0';
	t->inside = false;
}

static void
take_command(struct top *t, int key)
{
	if (key == KEY_ESCAPE || key == KEY_LEFT || key == 'b')
		go_back(t);
	else if ((key == KEY_ENTER || key == KEY_RIGHT) && t->n_shown > 0)
		t->inside = true;
	else if ((key == KEY_DOWN || key == 'j') && t->selected + 1 < t->n_shown)
		top_choose(t, t->selected + 1);
	else if ((key == KEY_UP || key == 'k') && t->selected > 0 && t->n_shown > 0)
		top_choose(t, t->selected - 1);
	else if (key == '/' && !t->inside)
		t->input = TOP_FILTER;
	else if (key == '?')
		t->input = TOP_HELP;
	else if ((key == 'p' || key == 'x') && t->act.kind == ACT_NONE)
		top_propose(t, key == 'x');
	else
		choose_order(t, key);
}

/* Handles a key. Returns false if the user quits. */
static bool
take_key(struct top *t, int key)
{
	if (key == KEY_NONE || key == KEY_RESIZED)
		return true;
	t->note[0] = '\0';
	if (key == KEY_STOP || (key == 'q' && t->input != TOP_FILTER && t->input != TOP_ANSWER))
		return false;
	if (t->input == TOP_FILTER)
		take_filter_key(t, key);
	else if (t->input == TOP_ANSWER)
		take_answer(t, key);
	else if (t->input == TOP_HELP)
		t->input = TOP_KEYS;
	else
		take_command(t, key);
	return true;
}

static void
show(struct top *t, const struct terminal *terminal, struct buf *screen)
{
	ssize_t n;

	top_sort(t);
	top_draw(t, terminal->rows, terminal->columns, screen);
	n = write(STDOUT_FILENO, screen->p, screen->n);
	(void)n; /* the next screen follows soon */
}

static void
show_live(struct top *t, struct terminal *terminal)
{
	slu_time next = 0;
	struct buf screen;
	int key = KEY_NONE;

	buf_init(&screen, SCREEN_MAX);
	t->s.query.cancel_fd = terminal->signals;
	do {
		slu_time now = clock_mono(&clock_system);

		if (t->act.kind != ACT_NONE && t->act.agreed) {
			top_step(t);
			next = now; /* show the effect */
		}
		if (now >= next) {
			top_sample(t);
			now = clock_mono(&clock_system);
			next = now + t->interval;
		}
		show(t, terminal, &screen);
		key = terminal_wait(terminal, t->act.agreed && t->act.kind ? 0 : (int)((next - now) / SLU_MS) + 1);
	} while (take_key(t, key));
	buf_release(&screen);
}

/* --- the command ---------------------------------------------------------------- */

static bool
speaks_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct top *const t = (void *)s;
	struct terminal terminal;
	int rc = 0;

	t->utf8 = speaks_utf8();
	t->colours = session_colours(stdout);
	t->all = t->all || !t->s.has_space;
	t->interval = t->interval < 10 * SLU_MS ? 10 * SLU_MS : t->interval;
	if (t->once || t->s.json || !terminal_open(&terminal)) {
		rc = show_once(t, err);
	} else {
		show_live(t, &terminal);
		terminal_close(&terminal);
	}
	top_release(t);
	return rc;
}

const struct command cli_top = {
	.name = "top",
	.group = "Queues",
	.summary = "watch the queues live",
	.usage = "[options]",
	.text = "Shows the queues live: messages by state, rates per second, the age of the oldest\n"
		"message, failures, and the trend of the depth. Keys sort and filter, the arrows select,\n"
		"enter opens a queue, p pauses or resumes it, x redrives its dead letters; ? lists the\n"
		"keys. If stdout is not a terminal, prints one table and exits. A server that shares a store\n"
		"with others has a line about its shards, the nodes that live and what the store has not\n"
		"confirmed.\n",
	.examples = "  sluice top\n  sluice top --namespace payments --interval 5s\n"
		    "  sluice top --once\n  sluice top --once --json | jq 'select(.failed_per_s > 0)'\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "-n, --namespace NAMESPACE", ARG_TEXT, AT(top, s.space), "only this namespace (SLUICE_NAMESPACE, all)" },
		 { "-a, --all", ARG_FLAG, AT(top, all), "all namespaces, even if SLUICE_NAMESPACE is set" },
		 { "--interval", ARG_TIME, AT(top, interval), "interval between samples (1s)" },
		 { "--once", ARG_FLAG, AT(top, once), "print one table and exit" }),
	CLI_STATE(struct top, .s.impatient = true, .interval = SLU_SEC),
	.run = run,
};
