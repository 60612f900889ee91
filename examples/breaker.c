/*
 * breaker.c - a breaker stops calls to what is down: it opens after three failures
 * in a row, lets one probe through after the cool-down, and closes when that
 * succeeds.
 */
#include <sluice/breaker.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

static bool mail_is_up;
static int calls;

static void
sleep_for(slu_time t)
{
	thrd_sleep(&(struct timespec){ .tv_nsec = (long)(t + SLU_MS) }, NULL);
}

/* Ask before every call, report after it. */
static int
send_mail(struct slu_breaker *b)
{
	static const char *const states[] = { "closed", "open", "half open" };
	slu_time again;

	if (slu_breaker_allow(b, &again)) {
		printf("not called; ask again in %.0f ms\n", (double)again / SLU_MS);
		sleep_for(again);
		return SLU_EDOWN;
	}
	calls++;
	slu_breaker_report(b, mail_is_up);
	printf("called: %s; now %s\n", mail_is_up ? "works" : "fails",
	       states[slu_breaker_state(b)]);
	return mail_is_up ? 0 : SLU_EFAILED;
}

int
main(void)
{
	const struct slu_breaker_config config = {
		SLU_OPTIONS_INIT(struct slu_breaker_config),
		.failures = 3,
		.open_cooldown = 200 * SLU_MS,
		.jitter_percent = 10,
	};
	struct slu_breakers *set;
	struct slu_breaker *mail;
	struct slu_err err;
	char *text;
	int right = 0;

	if (slu_breakers_new(&set, &config, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	mail = slu_breaker_get(set, "mail"); /* one breaker a destination */
	for (int i = 0; mail && i < 3; i++)
		right += send_mail(mail) == SLU_EFAILED;
	mail_is_up = true;
	right += send_mail(mail) == SLU_EDOWN; /* open: nobody calls */
	right += send_mail(mail) == 0;         /* the probe, which closes it */
	right += slu_breaker_state(mail) == SLU_BREAKER_CLOSED;
	if (slu_breakers_metrics(set, &text) == 0) {
		right += strstr(text, "sluice_breaker_denied_total{platform=\"mail\"} 1\n") != NULL;
		slu_free(text);
	}
	slu_breakers_free(set);
	return !(right == 7 && calls == 4);
}
