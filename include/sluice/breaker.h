/*
 * breaker.h - stop calling what is down, look now and then whether it is back.
 *
 *                 `failures` in a row
 *      CLOSED ───────────────────────────> OPEN <──────────────┐
 *        ^      calls pass                   │ calls denied     │ a probe fails
 *        │                                   │ cool-down over   │
 *        │         all probes succeed        v                  │
 *        └────────────────────────────── HALF_OPEN ─────────────┘
 *                                        `probes` calls pass
 *
 * One set holds a breaker per destination ("platform"). Ask before each outbound
 * call, report after it. A rate-limited answer is a failure like any other; a
 * success while closed forgets earlier failures. A probe that is never reported is
 * given up after another cool-down, so a crashed caller cannot keep it for ever.
 *
 * Calls that were let through before it opened may be reported late. While it is open
 * their reports do not count. While it is half open a failure opens it again, whichever
 * call it is from; a success counts once all calls from before are reported or given up.
 *
 *         struct slu_breaker *b = slu_breaker_get(set, "mail");
 *         slu_time again;
 *
 *         if (slu_breaker_allow(b, &again))
 *                 return put_off(again);
 *         slu_breaker_report(b, send_mail() == 0);
 *
 * All functions are safe from any thread.
 */
#ifndef SLUICE_BREAKER_H
#define SLUICE_BREAKER_H

#include <sluice/err.h>
#include <sluice/log.h>

SLU_BEGIN_DECLS

struct slu_breakers;
struct slu_breaker;

enum slu_breaker_state {
	SLU_BREAKER_CLOSED,
	SLU_BREAKER_OPEN,
	SLU_BREAKER_HALF_OPEN
};

struct slu_breaker_config {
	size_t struct_size;             /* SLU_OPTIONS_INIT */
	uint32_t failures;              /* in a row, then it opens; 0: 5 */
	slu_time open_cooldown;         /* 0: 30 s */
	uint32_t half_open_probe_count; /* calls let through to try; 0: 1 */
	uint32_t jitter_percent;        /* up to this much longer a cool-down, so that many
					 * processes do not probe at once; 0: none, at most 100 */
	const char *metrics_namespace;  /* "sluice": sluice_breaker_state_gauge{platform=...} */
	struct slu_log *log;
};

SLU_API int slu_breakers_new(struct slu_breakers **out,
			     const struct slu_breaker_config *config,
			     struct slu_err *err);
SLU_API void slu_breakers_free(struct slu_breakers *set);

/* The breaker of a destination (1..64 bytes), made on first use, valid as long as
 * the set. NULL when memory is out or the name is not valid. */
SLU_API struct slu_breaker *slu_breaker_get(struct slu_breakers *set, const char *name);

/* 0: go ahead, and report how it went. SLU_EDOWN: do not call; *retry_in (may be
 * NULL) is how long until it is worth asking again. SLU_EINVAL: b is NULL, as
 * slu_breaker_get returns when memory is out. */
SLU_API int slu_breaker_allow(struct slu_breaker *b, slu_time *retry_in);
SLU_API void slu_breaker_report(struct slu_breaker *b, bool ok);

/* As of the last allow or report: an open breaker whose cool-down is over is open
 * until somebody asks. NULL is closed. */
SLU_API enum slu_breaker_state slu_breaker_state(struct slu_breaker *b);

/* *text: breaker_state_gauge{platform="..."} 0 closed, 1 open, 2 half open, and
 * breaker_denied_total. Free it with slu_free. */
SLU_API int slu_breakers_metrics(struct slu_breakers *set, char **text);

SLU_END_DECLS

#endif
