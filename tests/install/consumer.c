/*
 * A program outside of the tree, as a user writes it. Compiles as C and as C++;
 * test_install.py builds it with pkg-config alone.
 */
#include <sluice/err.h>
#include <sluice/log.h>

#include <stdio.h>
#include <string.h>

static int
check_err(void)
{
	struct slu_err err;

	if (slu_fail(&err, SLU_EQFULL, "no room for %d", 7) != SLU_EQFULL)
		return 1;
	if (strcmp(err.text, "no room for 7") != 0)
		return 1;
	return strcmp(slu_err_row(SLU_EQFULL)->c_name, "SLU_EQFULL") != 0;
}

static int
check_log(void)
{
	struct slu_log *log = slu_log_new(SLU_LOG_WARN, SLU_LOG_JSON, NULL, NULL);

	if (!log)
		return 1;
	slu_log_set_level(log, SLU_LOG_OFF);
	slu_log_free(log);
	return 0;
}

int
main(void)
{
	if (check_err() || check_log())
		return 1;
	puts("works");
	return 0;
}
