#include "test.h"

#include "base/log.h"
#include "fakeclock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOON (1763208000 * SLU_SEC + 123 * SLU_MS) /* 2025-11-15T12:00:00.123Z */

struct caught {
	char text[64 * 1024];
	size_t n;
	size_t longest;
	int lines;
};

static void
catch_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct caught *c = arg;

	(void)level;
	CHECK(n > 0 && line[n - 1] == '\n');
	CHECK(c->n + n < sizeof c->text);
	memcpy(c->text + c->n, line, n);
	c->n += n;
	c->text[c->n] = 0;
	c->longest = n > c->longest ? n : c->longest;
	c->lines++;
}

static struct {
	struct caught caught;
	struct fakeclock clock;
	struct slu_log *log;
} b;

static void
bench_release(void)
{
	slu_log_free(b.log);
	fakeclock_release(&b.clock);
	b.log = NULL;
}

FIXTURE(NULL, bench_release);

/* Replaces the log that was there. */
static void
bench_init(enum slu_log_level level, enum slu_log_format format)
{
	bench_release();
	memset(&b, 0, sizeof b);
	fakeclock_init(&b.clock, 0, NOON);
	b.log = slu_log_new(level, format, catch_line, &b.caught);
	CHECK(b.log);
	log_set_clock(b.log, &b.clock.clock);
}

TEST(a_line_is_logfmt_with_time_level_event_and_fields)
{
	bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
	log_warn(b.log, "backlog", F_U64("depth", UINT64_MAX), F_STR("queue", "mail"),
		 F_I64("off", INT64_MIN), F_BOOL("full", true), F_BOOL("held", false),
		 F_TIME("age", 125 * SLU_MS));
	CHECK_STR("time=2025-11-15T12:00:00.123Z level=warn event=backlog "
		  "depth=18446744073709551615 queue=mail off=-9223372036854775808 "
		  "full=true held=false age=0.125\n",
		  b.caught.text);
}

TEST(a_line_is_json_with_the_same_parts)
{
	bench_init(SLU_LOG_DEBUG, SLU_LOG_JSON);
	log_error(b.log, "lost it", F_U64("depth", 900), F_STR("queue", "mail"),
		  F_BOOL("full", true), F_TIME("age", 2 * SLU_SEC));
	CHECK_STR("{\"time\":\"2025-11-15T12:00:00.123Z\",\"level\":\"error\","
		  "\"event\":\"lost it\",\"depth\":900,\"queue\":\"mail\","
		  "\"full\":true,\"age\":2}\n",
		  b.caught.text);
}

TEST(an_event_needs_no_fields_and_a_field_without_text_is_left_out)
{
	bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
	log_info(b.log, "started");
	log_info(b.log, "next", F_STR("none", NULL), F_I64("n", 1));
	CHECK_STR("time=2025-11-15T12:00:00.123Z level=info event=started\n"
		  "time=2025-11-15T12:00:00.123Z level=info event=next n=1\n",
		  b.caught.text);
}

TEST(seconds_are_exact_and_short)
{
	static const struct {
		slu_time t;
		const char *want;
	} cases[] = {
		{ 0, "t=0\n" },
		{ 1, "t=0.000000001\n" },
		{ -1, "t=-0.000000001\n" },
		{ 100 * SLU_SEC, "t=100\n" },
		{ -1500 * SLU_MS, "t=-1.5\n" },
		{ INT64_MIN, "t=-9223372036.854775808\n" },
	};

	EACH(i, cases) {
		bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
		log_info(b.log, "x", F_TIME("t", cases[i].t));
		CHECK_CONTAINS(cases[i].want, b.caught.text);
	}
}

static const struct {
	const char *label;
	const char *value;
	const char *logfmt;
	const char *json; /* between its quotes */
} escapes[] = {
	{ "plain", "mail-1.x/y", "mail-1.x/y", "mail-1.x/y" },
	{ "nothing", "", "\"\"", "" },
	{ "a space", "a b", "\"a b\"", "a b" },
	{ "an equals sign", "a=b", "\"a=b\"", "a=b" },
	{ "quote and backslash", "a\"b\\", "\"a\\\"b\\\\\"", "a\\\"b\\\\" },
	{ "a forged line", "x\nlevel=error", "\"x\\nlevel=error\"", "x\\nlevel=error" },
	{ "return and tab", "a\r\tb", "\"a\\r\\tb\"", "a\\r\\tb" },
	{ "a terminal escape", "\033[31m", "\"\\u001b[31m\"", "\\u001b[31m" },
	{ "delete", "\177", "\"\\u007f\"", "\\u007f" },
	{ "CSI in one character", "\302\2331m", "\"\\u009b1m\"", "\\u009b1m" },
	{ "bell and backspace", "\a\b", "\"\\u0007\\u0008\"", "\\u0007\\u0008" },
	{ "good UTF-8", "gr\303\274n \360\237\220\230", "\"gr\303\274n \360\237\220\230\"",
	  "gr\303\274n \360\237\220\230" },
	{ "the last character", "\364\217\277\277", "\"\364\217\277\277\"",
	  "\364\217\277\277" },
	{ "line separator", "\342\200\250", "\"\\u2028\"", "\\u2028" },
	{ "text turned round", "\342\200\256", "\"\\u202e\"", "\\u202e" },
	{ "isolate", "\342\201\246", "\"\\u2066\"", "\\u2066" },
	{ "a lone byte", "\377", "\"\\ufffd\"", "\\ufffd" },
	{ "a lone continuation", "\200x", "\"\\ufffdx\"", "\\ufffdx" },
	{ "cut short", "\303", "\"\\ufffd\"", "\\ufffd" },
	{ "cut short by a quote", "\342\200\"", "\"\\ufffd\\ufffd\\\"\"",
	  "\\ufffd\\ufffd\\\"" },
	{ "an overlong newline", "\300\212", "\"\\ufffd\\ufffd\"", "\\ufffd\\ufffd" },
	{ "an overlong slash", "\340\200\257", "\"\\ufffd\\ufffd\\ufffd\"",
	  "\\ufffd\\ufffd\\ufffd" },
	{ "a surrogate", "\355\240\200", "\"\\ufffd\\ufffd\\ufffd\"",
	  "\\ufffd\\ufffd\\ufffd" },
	{ "beyond U+10FFFF", "\364\220\200\200", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"",
	  "\\ufffd\\ufffd\\ufffd\\ufffd" },
};

TEST(no_value_can_forge_a_logfmt_line)
{
	EACH(i, escapes) {
		char want[200];

		bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
		log_info(b.log, escapes[i].value, F_STR("v", escapes[i].value));
		snprintf(want, sizeof want,
			 "time=2025-11-15T12:00:00.123Z level=info event=%s v=%s\n",
			 escapes[i].logfmt, escapes[i].logfmt);
		CHECK_STR(want, b.caught.text);
	}
}

TEST(no_value_can_forge_a_json_line)
{
	EACH(i, escapes) {
		char want[200];

		bench_init(SLU_LOG_DEBUG, SLU_LOG_JSON);
		log_info(b.log, escapes[i].value, F_STR("v", escapes[i].value));
		snprintf(want, sizeof want,
			 "{\"time\":\"2025-11-15T12:00:00.123Z\",\"level\":\"info\","
			 "\"event\":\"%s\",\"v\":\"%s\"}\n",
			 escapes[i].json, escapes[i].json);
		CHECK_STR(want, b.caught.text);
	}
}

TEST(random_bytes_stay_one_line_of_printable_text)
{
	uint64_t state = test_seed();

	for (int round = 0; round < 2000; round++) {
		char value[300];

		for (size_t i = 0; i < sizeof value; i++)
			value[i] = (char)(test_random(&state) % 255 + 1);
		value[sizeof value - 1] = 0;
		bench_init(SLU_LOG_DEBUG, round % 2 ? SLU_LOG_JSON : SLU_LOG_LOGFMT);
		log_info(b.log, "x", F_STR("v", value));
		CHECK_EQ(1, b.caught.lines);
		for (size_t i = 0; i + 1 < b.caught.n; i++)
			CHECK((unsigned char)b.caught.text[i] >= 0x20 &&
			      b.caught.text[i] != 0x7f);
	}
}

TEST(a_line_too_long_is_cut_at_a_field_and_says_so)
{
	static const struct {
		enum slu_log_format format;
		const char *end;
	} cases[] = {
		{ SLU_LOG_LOGFMT, " event=x a=1 cut=true\n" },
		{ SLU_LOG_JSON, ",\"event\":\"x\",\"a\":1,\"cut\":true}\n" },
	};
	char value[LOG_LINE_MAX + 1];

	memset(value, 'v', sizeof value);
	value[sizeof value - 1] = 0;
	EACH(i, cases) {
		bench_init(SLU_LOG_DEBUG, cases[i].format);
		log_info(b.log, "x", F_I64("a", 1), F_STR("big", value), F_I64("b", 2));
		CHECK_CONTAINS(cases[i].end, b.caught.text);
	}
}

TEST(lines_of_every_length_stay_within_the_limit)
{
	static const char ends[2][16] = { "cut=true\n", "\"cut\":true}\n" };
	int cut = 0, whole = 0;

	for (int n = LOG_LINE_MAX - 200; n < LOG_LINE_MAX + 10; n++) {
		char *value = malloc((size_t)n + 1);

		CHECK(value);
		memset(value, '\n', (size_t)n);
		memset(value, 'v', (size_t)n / 2 * 2);
		value[n] = 0;
		bench_init(SLU_LOG_DEBUG, n % 2 ? SLU_LOG_JSON : SLU_LOG_LOGFMT);
		log_info(b.log, "x", F_STR("big", value));
		CHECK(b.caught.longest <= LOG_LINE_MAX);
		if (strstr(b.caught.text, ends[n % 2]))
			cut++;
		else
			whole++;
		free(value);
	}
	CHECK(cut > 0 && whole > 0);
}

TEST(an_event_too_long_is_cut_too)
{
	char event[2 * LOG_LINE_MAX];

	memset(event, 'e', sizeof event);
	event[sizeof event - 1] = 0;
	bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
	log_info(b.log, event, F_I64("a", 1));
	CHECK_STR("time=2025-11-15T12:00:00.123Z level=info cut=true\n", b.caught.text);
}

TEST(what_is_below_the_level_is_neither_written_nor_evaluated)
{
	int evaluated = 0;

	bench_init(SLU_LOG_WARN, SLU_LOG_LOGFMT);
	log_debug(b.log, "x", F_I64("n", ++evaluated));
	log_info(b.log, "x", F_I64("n", ++evaluated));
	CHECK_EQ(0, b.caught.lines);
	CHECK_EQ(0, evaluated);
	log_warn(b.log, "x", F_I64("n", ++evaluated));
	log_error(b.log, "x", F_I64("n", ++evaluated));
	CHECK_EQ(2, b.caught.lines);

	slu_log_set_level(b.log, SLU_LOG_OFF);
	log_error(b.log, "x");
	CHECK_EQ(2, b.caught.lines, "off is off");
	slu_log_set_level(b.log, SLU_LOG_DEBUG);
	log_debug(b.log, "x");
	CHECK_EQ(3, b.caught.lines, "a new level counts at once");
}

TEST(logging_keeps_errno)
{
	bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
	errno = ENOSPC;
	log_info(b.log, "x");
	log_debug(NULL, "x");
	CHECK_EQ(ENOSPC, errno);
}

TEST(a_clock_before_1970_gives_a_time_all_the_same)
{
	bench_init(SLU_LOG_DEBUG, SLU_LOG_LOGFMT);
	fakeclock_set_wall(&b.clock, -SLU_SEC);
	log_info(b.log, "x");
	CHECK_CONTAINS("time=1970-01-01T00:00:00.000Z ", b.caught.text);
}

/* Turn stderr into a file, run, and read what was written. */
static void
stderr_of(void (*run)(void), char *out, size_t size)
{
	const int fd = open("stderr", O_RDWR | O_CREAT | O_TRUNC, 0600);
	const int saved = dup(STDERR_FILENO);
	ssize_t n;

	CHECK(fd >= 0 && saved >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	run();
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	n = pread(fd, out, size - 1, 0);
	CHECK(n >= 0);
	out[n] = 0;
	close(fd);
	close(saved);
}

static void
log_to_no_log(void)
{
	log_debug(NULL, "a");
	log_info(NULL, "b");
	log_warn(NULL, "c", F_I64("n", 1));
	log_error(NULL, "d");
}

static void
log_to_stderr(void)
{
	struct slu_log *log = slu_log_new(SLU_LOG_INFO, SLU_LOG_JSON, NULL, NULL);

	CHECK(log);
	log_debug(log, "a");
	log_info(log, "b");
	slu_log_free(log);
}

TEST(without_a_log_warnings_and_worse_go_to_stderr)
{
	char text[1000];

	stderr_of(log_to_no_log, text, sizeof text);
	CHECK(!strstr(text, "event=a") && !strstr(text, "event=b"));
	CHECK_CONTAINS(" level=warn event=c n=1\ntime=", text);
	CHECK_CONTAINS(" level=error event=d\n", text);
	CHECK(strncmp(text, "time=20", 7) == 0);
}

TEST(a_log_without_a_function_writes_to_stderr)
{
	char text[1000];

	stderr_of(log_to_stderr, text, sizeof text);
	CHECK_CONTAINS(",\"level\":\"info\",\"event\":\"b\"}\n", text);
	CHECK(!strstr(text, "debug"));
}

struct counted {
	int inside; /* no lock, no atomic: the log must serialise */
	int lines;
};

static void
count_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct counted *c = arg;

	(void)level;
	CHECK(line[n - 1] == '\n');
	CHECK_EQ(0, c->inside++, "one call at a time");
	c->lines++;
	c->inside--;
}

static void *
log_much(void *arg)
{
	for (int i = 0; i < 2000; i++)
		log_info(arg, "x", F_I64("i", i));
	return NULL;
}

TEST(threads_write_one_at_a_time)
{
	struct counted counted = { 0 };
	struct slu_log *log = slu_log_new(SLU_LOG_INFO, SLU_LOG_LOGFMT, count_line,
					  &counted);
	pthread_t threads[4];

	CHECK(log);
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, log_much, log));
	for (int i = 0; i < 1000; i++) /* while they write */
		slu_log_set_level(log, SLU_LOG_INFO);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK_EQ(4 * 2000, counted.lines);
	slu_log_free(log);
}

TORTURE(a_log_that_gets_no_memory_is_null)
{
	struct slu_log *log = slu_log_new(SLU_LOG_INFO, SLU_LOG_LOGFMT, NULL, NULL);

	slu_log_free(log); /* NULL is fine */
}
