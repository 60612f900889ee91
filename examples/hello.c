/*
 * hello.c - the first program: tasks of one key run in order, one at a time;
 * different keys run side by side. Close runs what is queued, then frees.
 */
#include <sluice/executor.h>

#include <stdio.h>

static int
greet(struct slu_run *run, void *arg)
{
	printf("%s: %s\n", run->key, (const char *)arg);
	return 0; /* anything else: failed, try again later */
}

int
main(void)
{
	struct slu_task hello = { SLU_OPTIONS_INIT(struct slu_task), .run = greet, .arg = (void *)"hello" };
	struct slu_task goodbye = { SLU_OPTIONS_INIT(struct slu_task), .run = greet, .arg = (void *)"goodbye" };
	struct slu_executor *ex;
	struct slu_err err;
	int rc;

	rc = slu_executor_start(&ex, NULL, &err);
	if (rc)
		goto out;
	rc = slu_executor_submit(ex, "alice", &hello, NULL, NULL, &err);
	if (!rc)
		rc = slu_executor_submit(ex, "bob", &hello, NULL, NULL, &err);
	if (!rc)
		rc = slu_executor_submit(ex, "alice", &goodbye, NULL, NULL, &err);
	slu_executor_close(ex); /* all three have run */
out:
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
