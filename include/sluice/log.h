/*
 * log.h - the log of the library.
 *
 * A line is an event with fields: time, level, event, then name=value pairs, as logfmt
 * or JSON. Control characters and quotes in values are escaped, so no input can forge a
 * line. Every config struct has a `log`; NULL: warnings and errors go to stderr as
 * logfmt.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

enum slu_log_level {
	SLU_LOG_DEBUG,
	SLU_LOG_INFO,
	SLU_LOG_WARN,
	SLU_LOG_ERROR,
	SLU_LOG_OFF
};

enum slu_log_format {
	SLU_LOG_LOGFMT,
	SLU_LOG_JSON
};

/* Gets one line with its newline, borrowed for the call. Thread: any that uses the library, but
 * never two at once. Must not call the library. */
typedef void slu_log_fn(void *arg, enum slu_log_level level, const char *line,
			size_t n);

struct slu_log;

/* Makes a log that calls write(arg, ...), or writes to stderr if write is NULL. Returns NULL if
 * memory is out. Free it after all objects that use it. */
SLU_API struct slu_log *slu_log_new(enum slu_log_level level,
				    enum slu_log_format format, slu_log_fn *write,
				    void *arg);
SLU_API void slu_log_free(struct slu_log *log);

/* Takes effect at once, from any thread. */
SLU_API void slu_log_set_level(struct slu_log *log, enum slu_log_level level);

SLU_END_DECLS

#endif
