/*
 * log.c - log lines.
 *
 * A line is built in a buffer on the stack, without a lock, and written at once. A field that
 * does not fit is removed with all after it; LOG_TAIL bytes stay free for cut=true and the end
 * of the line.
 *
 * A value contains printable ASCII and valid UTF-8 that neither moves the cursor of a terminal
 * nor changes the direction of text. Everything else is escaped, in both formats: \n \r \t \"
 * \\ and \uXXXX. A byte that is not UTF-8 becomes \ufffd.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	LOG_TAIL = 16 /* bytes for cut=true and the end of a line */
};

/* The separators of a format. */
struct style {
	const char *first; /* before the first name */
	const char *next;  /* before every other one */
	const char *value; /* between a name and its value */
	const char *close;
	bool quote_all;
};

static const struct style styles[] = {
	[SLU_LOG_LOGFMT] = { "", " ", "=", "\n", false },
	[SLU_LOG_JSON] = { "{\"", ",\"", "\":", "}\n", true },
};

static const char *const level_names[] = {
	[SLU_LOG_DEBUG] = "debug",
	[SLU_LOG_INFO] = "info",
	[SLU_LOG_WARN] = "warn",
	[SLU_LOG_ERROR] = "error",
};

struct slu_log {
	_Atomic int level; /* shared, as is */
	enum slu_log_format format;
	struct clock *clock;
	slu_log_fn *write;
	void *arg;
	pthread_mutex_t mtx; /* one call of write at a time */
};

struct log_line {
	const struct style *style;
	size_t n;
	bool full; /* a field did not fit; further puts do nothing */
	char text[LOG_LINE_MAX];
};

static void
put(struct log_line *l, const char *p, size_t n)
{
	if (l->full || n > sizeof l->text - LOG_TAIL - l->n) {
		l->full = true;
		return;
	}
	memcpy(l->text + l->n, p, n);
	l->n += n;
}

static void
put_str(struct log_line *l, const char *s)
{
	put(l, s, strlen(s));
}

static void
put_name(struct log_line *l, const char *name)
{
	put_str(l, l->n ? l->style->next : l->style->first);
	put_str(l, name);
	put_str(l, l->style->value);
}

/* Reads the character at s, which ends with a NUL. Returns its length; 0 if the bytes are not UTF-8:
 * cut, overlong, a surrogate, or beyond U+10FFFF. */
static size_t
utf8_read(const unsigned char *s, uint32_t *code)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const size_t n = s[0] < 0x80       ? 1
			 : s[0] >> 5 == 6  ? 2
			 : s[0] >> 4 == 14 ? 3
			 : s[0] >> 3 == 30 ? 4
					   : 0;

	if (n == 0)
		return 0;
	*code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < lowest[n] || *code > 0x10ffff || *code >> 11 == 0xd800 >> 11)
		return 0;
	return n;
}

/* C0 and C1 control characters (U+009B starts an escape sequence), line separators, and marks that
 * change the direction of text. */
static bool
is_harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||
	       (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

static void
put_escape(struct log_line *l, uint32_t code)
{
	static const char shorts[] = "\n\r\t\"\\";
	static const char letters[] = "nrt\"\\";
	const char *found = code && code < 0x80 ? strchr(shorts, (int)code) : NULL;
	char text[8];

	if (found)
		snprintf(text, sizeof text, "\\%c", letters[found - shorts]);
	else
		snprintf(text, sizeof text, "\\u%04x", code & 0xffffu);
	put_str(l, text);
}

static void
put_quoted(struct log_line *l, const char *s)
{
	put_str(l, "\"");
	while (*s && !l->full) {
		uint32_t code;
		const size_t n = utf8_read((const unsigned char *)s, &code);

		if (n == 0)
			put_escape(l, 0xfffd);
		else if (is_harmful(code) || code == '"' || code == '\\')
			put_escape(l, code);
		else
			put(l, s, n);
		s += n ? n : 1;
	}
	put_str(l, "\"");
}

/* Returns whether a value needs no quotes in logfmt. */
static bool
is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f || *s == '"' || *s == '=' || *s == '\\')
			return false;
	return true;
}

static void
put_value(struct log_line *l, const char *s)
{
	if (l->style->quote_all || !is_plain(s))
		put_quoted(l, s);
	else
		put_str(l, s);
}

/* 1500000000 is 1.5: exact, and independent of the locale. */
static void
put_seconds(struct log_line *l, slu_time t)
{
	const uint64_t ns = t < 0 ? -(uint64_t)t : (uint64_t)t;
	char text[32];
	int n = snprintf(text, sizeof text, "%s%" PRIu64 ".%09" PRIu64,
			 t < 0 ? "-" : "", ns / SLU_SEC, ns % SLU_SEC);

	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	put(l, text, (size_t)n);
}

static void
put_field(struct log_line *l, const struct log_field *f)
{
	char number[24];

	put_name(l, f->name);
	switch (f->kind) {
	case LOG_STR:
		put_value(l, f->v.str);
		break;
	case LOG_I64:
		snprintf(number, sizeof number, "%" PRId64, f->v.i64);
		put_str(l, number);
		break;
	case LOG_U64:
		snprintf(number, sizeof number, "%" PRIu64, f->v.u64);
		put_str(l, number);
		break;
	case LOG_SECONDS:
		put_seconds(l, f->v.i64);
		break;
	case LOG_BOOL:
		put_str(l, f->v.i64 ? "true" : "false");
		break;
	case LOG_END:
		assert(false);
	}
}

/* RFC 3339 in UTC. */
static void
put_time(struct log_line *l, slu_time wall)
{
	const time_t seconds = wall < 0 ? 0 : wall / SLU_SEC;
	const int ms = wall < 0 ? 0 : (int)(wall % SLU_SEC / SLU_MS);
	struct tm tm;
	char text[64];

	gmtime_r(&seconds, &tm);
	snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
		 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
		 tm.tm_min, tm.tm_sec, ms);
	put_name(l, "time");
	put_value(l, text);
}

/* Puts the fields that fit; the first that does not fit ends the line. */
static void
put_fields(struct log_line *l, const struct log_field *fields)
{
	for (const struct log_field *f = fields; f->kind != LOG_END; f++) {
		const size_t start = l->n;

		if (f->kind == LOG_STR && !f->v.str)
			continue;
		put_field(l, f);
		if (l->full) {
			l->n = start;
			return;
		}
	}
}

/* Uses the reserved LOG_TAIL. */
static void
put_close(struct log_line *l)
{
	char tail[LOG_TAIL + 1];
	const struct style *s = l->style;
	const int n = snprintf(tail, sizeof tail, "%s%s%s%s%s",
			       l->full ? s->next : "", l->full ? "cut" : "",
			       l->full ? s->value : "", l->full ? "true" : "",
			       s->close);

	memcpy(l->text + l->n, tail, (size_t)n);
	l->n += (size_t)n;
}

/* One write for each line, so that lines of several processes do not mix. A failure has no effect:
 * there is no place to report it. */
static void
write_stderr(const char *p, size_t n)
{
	while (n > 0) {
		const ssize_t done = write(STDERR_FILENO, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		p += done;
		n -= (size_t)done;
	}
}

static void
hand_over(struct slu_log *log, enum slu_log_level level, const struct log_line *l)
{
	if (!log) {
		write_stderr(l->text, l->n);
		return;
	}
	pthread_mutex_lock(&log->mtx);
	if (log->write)
		log->write(log->arg, level, l->text, l->n);
	else
		write_stderr(l->text, l->n);
	pthread_mutex_unlock(&log->mtx);
}

enum slu_log_level
log_level(const struct slu_log *log)
{
	return (enum slu_log_level)atomic_load_explicit(&log->level, memory_order_relaxed);
}

bool
log_on(const struct slu_log *log, enum slu_log_level level)
{
	if (!log)
		return level >= SLU_LOG_WARN;
	return (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void
log_event(struct slu_log *log, enum slu_log_level level, const char *event,
	  const struct log_field *fields)
{
	const struct log_field head[] = {
		F_STR("level", level_names[level]),
		F_STR("event", event),
		{ .kind = LOG_END },
	};
	const int saved_errno = errno;
	struct log_line l;

	assert(level < SLU_LOG_OFF);
	l.style = &styles[log ? log->format : SLU_LOG_LOGFMT];
	l.n = 0;
	l.full = false;
	put_time(&l, clock_wall(log ? log->clock : &clock_system));
	put_fields(&l, head);
	put_fields(&l, fields);
	put_close(&l);
	hand_over(log, level, &l);
	errno = saved_errno; /* a caller may log before it reads errno */
}

void
log_set_clock(struct slu_log *log, struct clock *clock)
{
	log->clock = clock;
}

struct slu_log *
slu_log_new(enum slu_log_level level, enum slu_log_format format,
	    slu_log_fn *write, void *arg)
{
	struct slu_log *log = mem_zalloc(sizeof *log);

	if (!log)
		return NULL;
	if (pthread_mutex_init(&log->mtx, NULL)) {
		mem_free(log);
		return NULL;
	}
	atomic_init(&log->level, (int)level);
	log->format = format;
	log->clock = &clock_system;
	log->write = write;
	log->arg = arg;
	return log;
}

void
slu_log_free(struct slu_log *log)
{
	if (!log)
		return;
	pthread_mutex_destroy(&log->mtx);
	mem_free(log);
}

void
slu_log_set_level(struct slu_log *log, enum slu_log_level level)
{
	if (log)
		atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}
