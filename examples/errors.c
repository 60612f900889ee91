/*
 * errors.c - one row says everything about a failure: its C name, its name and
 * status on the wire, whether to try again, what a person reads.
 */
#include <sluice/err.h>

#include <stdio.h>
#include <string.h>

/* A function of your own can fail as those of the library do: err may be NULL. */
static int
read_age(const char *text, int *age, struct slu_err *err)
{
	if (sscanf(text, "%d", age) != 1)
		return slu_fail(err, SLU_EINVAL, "\"%s\" is no age", text);
	return 0;
}

int
main(void)
{
	static const char *const hints[] = { "no", "yes", "with an idempotency key" };
	struct slu_err err;
	int age;

	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++) {
		const struct slu_err_row *row = slu_err_row(code);

		printf("%-15s %d %-16s %s; again: %s\n", row->c_name, row->flat_status,
		       row->flat_name, row->text, hints[row->retry]);
	}
	if (read_age("forty", &age, &err) != SLU_EINVAL)
		return 1;
	printf("%s: %s\n", slu_err_row(err.code)->c_name, err.text);
	printf("built with %s, runs with %s\n", SLU_VERSION_TEXT, slu_version());
	return strcmp(slu_err_row(-1)->c_name, "SLU_?") != 0; /* never NULL */
}
