/*
 * err.c - the error table, and the version of the library (sluice/api.h).
 */
#include <sluice/err.h>

#include <stdarg.h>
#include <stdio.h>

static const struct slu_err_row rows[SLU_CODE_END - SLU_CODE_BASE] = {
	[0] = { "SLU_OK", "ok", 200, "ok", 200, SLU_RETRY_NO, "ok" },
#define X(name, number, flat, status, retry, text) \
	[SLU_##name - SLU_CODE_BASE] = { "SLU_" #name, flat, status, flat, status, SLU_RETRY_##retry, text },
	SLU_ERRORS(X)
#undef X
};

/* Every number has exactly one row. */
enum {
#define X(...) +1
	N_ROWS = 0 SLU_ERRORS(X)
#undef X
};
_Static_assert(N_ROWS == SLU_CODE_END - SLU_CODE_BASE - 1, "the numbers follow each other");

static const struct slu_err_row unknown_row = {
	"SLU_?", "internal", 500, "internal", 500, SLU_RETRY_NO, "unknown error"
};

const struct slu_err_row *
slu_err_row(int code)
{
	if (code == SLU_OK)
		return &rows[0];
	if (code <= SLU_CODE_BASE || code >= SLU_CODE_END)
		return &unknown_row;
	return &rows[code - SLU_CODE_BASE];
}

#undef slu_fail /* tools/analyzer.h */

int
slu_fail(struct slu_err *err, enum slu_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return (int)code;
	*err = (struct slu_err){ .code = code };
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof err->text, fmt, ap); /* cut is fine */
	va_end(ap);
	return (int)code;
}

const char *
slu_version(void)
{
	return SLUICE_VERSION;
}
