#include <sluice/err.h>

#include <stdarg.h>
#include <stdio.h>

static const struct slu_err_row rows[SLU_CODE_END - SLU_CODE_BASE] = {
	[0] = { "SLU_OK", "ok", 200, "ok", 200, SLU_RETRY_NO, "ok" },
#define X(name, number, flat, flat_status, lockd, lockd_status, retry, text) \
	[SLU_##name - SLU_CODE_BASE] = { "SLU_" #name, flat, flat_status,    \
					 lockd, lockd_status,                \
					 SLU_RETRY_##retry, text },
	SLU_ERRORS(X)
#undef X
};

/* Two rows with one number, or a number that no row has, would be a hole in the table. */
enum {
#define X(...) +1
	N_ROWS = 0 SLU_ERRORS(X)
#undef X
};
_Static_assert(N_ROWS == SLU_CODE_END - SLU_CODE_BASE - 1, "the numbers follow each other");

static const struct slu_err_row unknown_row = {
	"SLU_?", "internal", 500, "internal_error", 500, SLU_RETRY_NO, "unknown error"
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
