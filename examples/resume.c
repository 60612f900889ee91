/*
 * resume.c - long work that goes on where it was: a worker stores how far it has come, and dies; the next one begins there.
 *
 *      resume            in memory
 *      resume FOLDER     on disk: also after kill -9
 */
#include <sluice/sluice.h>

#include <stdio.h>

enum {
	ROWS = 1000,
	STEP = 250 /* rows between two checkpoints */
};

/* Imports rows from the last checkpoint on, at most so many, as a worker that dies then. Sets *row to the next one. */
static int
import(struct slu_broker *b, struct slu_message *m, unsigned most, unsigned *row, struct slu_err *err)
{
	char checkpoint[32];
	int rc = 0;

	*row = 0;
	(void)sscanf(m->checkpoint, "{\"row\":%u}", row); /* "": from the beginning */
	printf("attempt %u begins at row %u\n", m->attempts, *row);
	for (unsigned i = 0; i < most && *row < ROWS && !rc; i++) {
		*row += 1; /* here a row is imported */
		(void)snprintf(checkpoint, sizeof checkpoint, "{\"row\":%u}", *row);
		if (*row % STEP == 0)
			rc = slu_checkpoint(b, m, SLU_MIN, checkpoint, err); /* and a minute more */
	}
	return rc;
}

/* A worker that is alive for so many rows. */
static int
work(struct slu_broker *b, unsigned most, unsigned *row, struct slu_err *err)
{
	const struct slu_nack_options died = { SLU_OPTIONS_INIT(struct slu_nack_options), .error = "died", .has_delay = true };
	struct slu_message m;
	size_t n;
	int rc;

	rc = slu_claim(b, "imports", NULL, &m, 1, &n, err);
	if (rc || n == 0)
		return rc ? rc : SLU_ENOTFOUND;
	rc = import(b, &m, most, row, err);
	if (!rc)
		rc = *row == ROWS ? slu_ack(b, &m, NULL, 0, err) : slu_nack(b, &m, &died, err);
	slu_message_release(&m);
	return rc;
}

int
main(int argc, char **argv)
{
	struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put), .payload = "rows.csv", .size = 8 };
	struct slu_broker *b = NULL;
	struct slu_err err = { 0 };
	unsigned row = 0;
	int rc;

	rc = slu_open(&b, argc > 1 ? argv[1] : NULL, NULL, &err);
	if (!rc)
		rc = slu_enqueue(b, "imports", &put, 1, &err);
	if (!rc)
		rc = work(b, 600, &row, &err);
	if (!rc)
		rc = work(b, 500, &row, &err); /* from row 500: all rows */
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	slu_close(b);
	return rc != 0 || row != ROWS;
}
