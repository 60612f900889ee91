/*
 * ordered_writes.c - operations on objects, in order per object.
 *
 * The object's id is the key. So an object needs no lock: add, delete and put of
 * one object never overlap and run in the order of the calls. await is the barrier
 * of a key: after it, everything submitted before it can be read.
 */
#include <sluice/executor.h>

#include <stdio.h>
#include <string.h>

struct note {
	const char *id;
	int entries;
	char context[32];
};

static int
add_entry(struct slu_run *run, void *arg)
{
	(void)run;
	((struct note *)arg)->entries++;
	return 0;
}

static int
delete_entry(struct slu_run *run, void *arg)
{
	struct note *note = arg;

	if (note->entries == 0) /* cannot happen: the add came first */
		return slu_fail(&run->err, SLU_EPERMANENT, "%s is empty", run->key);
	note->entries--;
	return 0;
}

static int
put_context(struct slu_run *run, void *arg)
{
	struct note *note = arg;

	snprintf(note->context, sizeof note->context, "%.16s: %d left", run->key, note->entries);
	return 0;
}

/* Four writes, then wait until this note, and only this one, is up to date. */
static int
write_note(struct slu_executor *ex, struct note *note, struct slu_err *err)
{
	static slu_task_fn *const writes[] = { add_entry, add_entry, delete_entry, put_context };
	int rc = 0;

	for (int i = 0; i < 4 && !rc; i++)
		rc = slu_executor_submit(ex, note->id,
					 &(struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), .run = writes[i], .arg = note },
					 NULL, NULL, err);
	return rc ? rc : slu_executor_await(ex, note->id, 5 * SLU_SEC, err);
}

int
main(void)
{
	struct note note = { .id = "note-1" };
	struct slu_executor *ex;
	struct slu_err err;
	int rc;

	rc = slu_executor_start(&ex, NULL, &err);
	if (rc)
		goto out;
	rc = write_note(ex, &note, &err);
	puts(note.context); /* no lock, no race: await has returned */
	slu_executor_close(ex);
out:
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc || strcmp(note.context, "note-1: 1 left") != 0;
}
