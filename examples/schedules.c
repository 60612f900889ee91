/*
 * schedules.c - messages that begin by themselves, in a queue inside your program.
 *
 *      schedules            in memory
 *      schedules FOLDER     on disk: the schedules go on when you run it again
 */
#include <sluice/schedule.h>

#include <stdio.h>

static int
make(struct slu_broker *b, struct slu_err *err)
{
	const struct slu_put poll = { SLU_OPTIONS_INIT(struct slu_put), .queue = "jobs", .payload = "poll", .size = 4 };
	const struct slu_put report = { SLU_OPTIONS_INIT(struct slu_put), .queue = "jobs", .payload = "report", .size = 6, .priority = 5 };
	const struct slu_schedule often = {
		SLU_OPTIONS_INIT(struct slu_schedule),
		.name = "often",
		.when = "@every 1s",
		.overlap = "skip", /* not while the one before is still there */
		.put = &poll,
	};
	const struct slu_schedule nightly = {
		SLU_OPTIONS_INIT(struct slu_schedule),
		.name = "nightly",
		.when = "0 2 * * mon-fri",
		.missed = "all:3", /* the program may be closed at that time */
		.put = &report,
	};
	int rc;

	rc = slu_schedule_set(b, &often, err);
	return rc ? rc : slu_schedule_set(b, &nightly, err);
}

/* One message each: of a tick, and of a run. */
static int
work(struct slu_broker *b, unsigned n, struct slu_err *err)
{
	const struct slu_claim_options patient = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_message m;
	size_t found;
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		rc = slu_claim(b, "jobs", &patient, &m, 1, &found, err);
		if (rc)
			break;
		printf("%.*s\n", (int)m.size, (const char *)m.payload);
		rc = slu_ack(b, &m, NULL, 0, err);
		slu_message_release(&m);
	}
	return rc;
}

static int
show(struct slu_broker *b, struct slu_err *err)
{
	struct slu_schedule_info one, rows[10];
	uint64_t cursor = 0;
	size_t n;
	int rc;

	do {
		rc = slu_schedule_list(b, &cursor, rows, 10, &n, err);
		for (size_t i = 0; i < n && !rc; i++)
			printf("%s: %s, fired %llu times\n", rows[i].name, rows[i].when, (unsigned long long)rows[i].fired);
	} while (cursor && !rc);
	if (!rc)
		rc = slu_schedule_get(b, "nightly", &one, err);
	if (!rc)
		printf("nightly: %s\n", one.last[0].outcome); /* run: by hand */
	return rc;
}

int
main(int argc, char **argv)
{
	struct slu_broker *b = NULL;
	struct slu_err err = { 0 };
	int rc;

	rc = slu_open(&b, argc > 1 ? argv[1] : NULL, NULL, &err);
	if (!rc)
		rc = make(b, &err);
	if (!rc)
		rc = slu_schedule_run(b, "nightly", NULL, &err); /* now, and not at 2 o'clock */
	if (!rc)
		rc = work(b, 3, &err);
	if (!rc)
		rc = slu_schedule_pause(b, "often", true, &err);
	if (!rc)
		rc = show(b, &err);
	if (!rc)
		rc = slu_schedule_delete(b, "nightly", &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	slu_close(b);
	return rc != 0;
}
