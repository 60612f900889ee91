/*
 * log.h - writing log lines: events with fields.
 *
 *         log_warn(log, "backlog", F_U64("depth", depth), F_STR("queue", name));
 *
 *         time=2026-11-15T06:00:00.123Z level=warn event=backlog depth=900 queue=mail
 *         {"time":"2026-11-15T06:00:00.123Z","level":"warn","event":"backlog","depth":900,...}
 *
 * If log is NULL, warnings and errors go to stderr. A line longer than LOG_LINE_MAX is
 * cut at a field and ends with cut=true. An event below the level costs a load and a
 * compare. include/sluice/log.h is the public part.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <sluice/log.h>

struct clock;

enum {
	LOG_LINE_MAX = 4096
};

enum log_kind {
	LOG_END,
	LOG_STR,
	LOG_I64,
	LOG_U64,
	LOG_SECONDS, /* a slu_time, written in seconds: 0.125 */
	LOG_BOOL
};

struct log_field {
	const char *name;
	enum log_kind kind;
	union {
		const char *str; /* NULL: no field */
		int64_t i64;
		uint64_t u64;
	} v;
};

#define F_STR(name, s)  ((struct log_field){ name, LOG_STR, { .str = (s) } })
#define F_I64(name, i)  ((struct log_field){ name, LOG_I64, { .i64 = (i) } })
#define F_U64(name, u)  ((struct log_field){ name, LOG_U64, { .u64 = (u) } })
#define F_TIME(name, t) ((struct log_field){ name, LOG_SECONDS, { .i64 = (t) } })
#define F_BOOL(name, b) ((struct log_field){ name, LOG_BOOL, { .i64 = (b) } })

/* Replaces clock_system. Call it before threads share the log. */
void log_set_clock(struct slu_log *log, struct clock *clock);

enum slu_log_level log_level(const struct slu_log *log);

/* Returns whether the log writes events of this level. */
bool log_on(const struct slu_log *log, enum slu_log_level level);

/* fields: the last one has the kind LOG_END. */
void log_event(struct slu_log *log, enum slu_log_level level, const char *event,
	       const struct log_field *fields);

/* clang-format off */
#define LOG_AT(log, level, event, ...)                                           \
	do {                                                                     \
		if (log_on(log, level))                                          \
			log_event(log, level, event,                             \
				  (const struct log_field[]){                    \
					  __VA_ARGS__ __VA_OPT__(,)              \
					  { .kind = LOG_END } });                \
	} while (0)
/* clang-format on */

#define log_debug(log, ...) LOG_AT(log, SLU_LOG_DEBUG, __VA_ARGS__)
#define log_info(log, ...)  LOG_AT(log, SLU_LOG_INFO, __VA_ARGS__)
#define log_warn(log, ...)  LOG_AT(log, SLU_LOG_WARN, __VA_ARGS__)
#define log_error(log, ...) LOG_AT(log, SLU_LOG_ERROR, __VA_ARGS__)

#endif
