/*
 * breaker.h - circuit breakers: stop calls to a service that fails, and probe it from time
 * to time.
 *
 *                 `failures` in a row
 *      CLOSED ───────────────────────────> OPEN <──────────────┐
 *        ^      calls pass                   │ calls denied     │ a probe fails
 *        │                                   │ cool-down over   │
 *        │         all probes succeed        v                  │
 *        └────────────────────────────── HALF_OPEN ─────────────┘
 *                                        `probes` calls pass
 *
 * A set has one breaker for each destination ("platform"). Call slu_breaker_allow before each
 * outbound call and slu_breaker_report after it. Report a rate-limited answer as a failure. A
 * success while the breaker is closed clears earlier failures. A probe without a report is
 * given up after another cool-down, so a crashed caller cannot block the breaker.
 *
 * Calls from before the breaker opened may report late. While it is open their reports do not
 * count. While it is half open, any failure opens it again; a success counts when all calls
 * from before have reported or were given up.
 *
 *         struct slu_breaker *b = slu_breaker_get(set, "mail");
 *         slu_time again;
 *
 *         if (slu_breaker_allow(b, &again))
 *                 return put_off(again);
 *         slu_breaker_report(b, send_mail() == 0);
 *
 * Any thread may call these functions.
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
	uint32_t failures;              /* in a row that open it; 0: 5 */
	slu_time open_cooldown;         /* how long it stays open; 0: 30 s */
	uint32_t half_open_probe_count; /* probes; 0: 1 */
	uint32_t jitter_percent;        /* random extra time of a cool-down, so that processes do not
					 * probe at once; 0: none, at most 100 */
	const char *metrics_namespace;  /* "sluice": sluice_breaker_state_gauge{platform=...} */
	struct slu_log *log;
};

SLU_API int slu_breakers_new(struct slu_breakers **out,
			     const struct slu_breaker_config *config,
			     struct slu_err *err);
SLU_API void slu_breakers_free(struct slu_breakers *set);

/* The breaker of a destination (1..64 bytes), made on first use and valid as long as the set.
 * Returns NULL if memory is out or the name is not valid. */
SLU_API struct slu_breaker *slu_breaker_get(struct slu_breakers *set, const char *name);

/* Returns 0 if the call may go ahead; report its outcome. Returns SLU_EDOWN if it may not; *retry_in
 * (may be NULL) is the time until the next try. Returns SLU_EINVAL if b is NULL. */
SLU_API int slu_breaker_allow(struct slu_breaker *b, slu_time *retry_in);
SLU_API void slu_breaker_report(struct slu_breaker *b, bool ok);

/* The state after the last allow or report: an open breaker whose cool-down has ended stays open
 * until the next allow. b NULL: closed. */
SLU_API enum slu_breaker_state slu_breaker_state(struct slu_breaker *b);

/* *text: breaker_state_gauge{platform="..."} 0 closed, 1 open, 2 half open, and
 * breaker_denied_total. Free it with slu_free. */
SLU_API int slu_breakers_metrics(struct slu_breakers *set, char **text);

SLU_END_DECLS

#endif
