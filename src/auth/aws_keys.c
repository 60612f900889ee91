#include "auth/aws_keys.h"

#include "auth/sigv4.h"
#include "base/mem.h"

#include <openssl/crypto.h>

static struct slice
next_word(struct slice *line)
{
	struct slice word = slice_trim(*line, " \t\r");
	size_t n = 0;

	while (n < word.n && word.p[n] != ' ' && word.p[n] != '\t')
		n++;
	*line = word;
	slice_skip(line, n);
	word.n = n;
	return word;
}

const struct aws_key *
aws_keys_find(const struct aws_keys *k, struct slice key)
{
	for (unsigned i = 0; i < k->n; i++)
		if (slice_eq(k->items[i].key, key))
			return &k->items[i];
	return NULL;
}

/* All scopes, with commas between. Returns false if one is not a scope, or without one. */
static bool
take_scopes(struct grants *g, struct slice scopes)
{
	struct slice scope;

	while (scopes.n > 0) {
		(void)slice_cut(&scopes, ',', &scope); /* the last one has no comma */
		if (!grants_add_scope(g, scope))
			return false;
	}
	return g->n > 0 && !g->too_many;
}

/* The texts of errors name no secret. */
static int
take_line(struct aws_keys *k, struct slice line, unsigned number, struct slu_err *err)
{
	const struct slice key = next_word(&line), secret = next_word(&line), scopes = next_word(&line);
	struct grants g = { 0 };

	if (key.n == 0 || key.p[0] == '#')
		return 0;
	if (k->n == AWS_KEYS_MAX)
		return slu_fail(err, SLU_EINVAL, "line %u: more than %d keys", number, AWS_KEYS_MAX);
	if (scopes.n == 0 || slice_trim(line, " \t\r").n > 0)
		return slu_fail(err, SLU_EINVAL, "line %u: expected ACCESS_KEY SECRET SCOPES", number);
	if (key.n > SIGV4_KEY_MAX || memchr(key.p, '/', key.n) || aws_keys_find(k, key))
		return slu_fail(err, SLU_EINVAL, "line %u: expected another access key, without /", number);
	if (secret.n > AWS_SECRET_MAX)
		return slu_fail(err, SLU_EINVAL, "line %u: expected a secret of at most %d bytes", number, AWS_SECRET_MAX);
	if (!take_scopes(&g, scopes))
		return slu_fail(err, SLU_EINVAL, "line %u: invalid scopes; expected namespace:right,...", number);
	k->items[k->n] = (struct aws_key){ key, secret, identity_new(key, &g) };
	if (!k->items[k->n].who)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	k->n++;
	return 0;
}

int
aws_keys_parse(struct aws_keys *k, struct slice text, struct slu_err *err)
{
	struct slice rest, line;
	int rc = 0;

	*k = (struct aws_keys){ .text = mem_alloc(text.n + 1), .text_n = text.n };
	k->items = mem_array(AWS_KEYS_MAX, sizeof *k->items);
	if (!k->text || !k->items)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	else if (text.n)
		memcpy(k->text, text.p, text.n);
	rest = (struct slice){ k->text, text.n };
	for (unsigned number = 1; rest.n > 0 && !rc; number++) {
		(void)slice_cut(&rest, '\n', &line); /* the last line may have no end */
		rc = take_line(k, line, number, err);
	}
	if (!rc && k->n == 0)
		rc = slu_fail(err, SLU_EINVAL, "no key; expected lines of ACCESS_KEY SECRET SCOPES");
	if (rc)
		aws_keys_release(k);
	return rc;
}

void
aws_keys_release(struct aws_keys *k)
{
	for (unsigned i = 0; k->items && i < k->n; i++)
		identity_unref(k->items[i].who);
	mem_free(k->items);
	if (k->text)
		OPENSSL_cleanse(k->text, k->text_n);
	mem_free(k->text);
	*k = (struct aws_keys){ 0 };
}
