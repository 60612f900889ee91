#include "cli/lib/credentials.h"

#include "auth/keyring.h"
#include "base/mem.h"

#include <stdlib.h>

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A token is one word of printable characters, as a header field allows. */
static int
take(const char *from, struct slice text, char **out, struct slu_err *err)
{
	while (text.n > 0 && is_space(text.p[text.n - 1]))
		text.n--;
	while (text.n > 0 && is_space(text.p[0]))
		text = (struct slice){ text.p + 1, text.n - 1 };
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] > '~')
			return slu_fail(err, SLU_EINVAL, "%s: invalid token; expected one word of letters, "
							 "digits, dots, - and _",
					from);
	if (text.n == 0)
		return slu_fail(err, SLU_EINVAL, "%s: invalid token: empty; expected one word", from);
	if (text.n > JWT_MAX)
		return slu_fail(err, SLU_EINVAL, "%s: token too long; expected at most %d bytes", from, JWT_MAX);
	*out = mem_zalloc(text.n + 1);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	memcpy(*out, text.p, text.n);
	return 0;
}

int
credentials_file(const char *file, char **out, struct slu_err *err)
{
	struct buf text;
	int rc;

	rc = secret_read(file, 2 * JWT_MAX, &text, err);
	if (rc)
		return rc;
	rc = take(file, buf_slice(&text), out, err);
	secret_free(&text);
	return rc;
}

int
credentials_token(const char *file, char **out, struct slu_err *err)
{
	const char *const token = getenv("SLUICE_TOKEN");
	const char *const token_file = getenv("SLUICE_TOKEN_FILE");

	*out = NULL;
	if (file)
		return credentials_file(file, out, err);
	if (token && *token)
		return take("SLUICE_TOKEN", slice_of(token), out, err);
	if (token_file && *token_file)
		return credentials_file(token_file, out, err);
	return 0;
}
