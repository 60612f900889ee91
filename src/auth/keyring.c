#include "auth/keyring.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

struct keyring *
keyring_new(void)
{
	return mem_zalloc(sizeof(struct keyring));
}

void
keyring_free(struct keyring *r)
{
	for (unsigned i = 0; r && i < r->n; i++)
		key_release(&r->keys[i]);
	mem_free(r);
}

struct key *
keyring_next(struct keyring *r, struct slu_err *err)
{
	if (r->n < KEYRING_MAX)
		return &r->keys[r->n];
	slu_fail(err, SLU_EINVAL, "more than %d keys", KEYRING_MAX);
	return NULL;
}

/* --- files ----------------------------------------------------------------------- */

void
secret_free(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->size);
	buf_release(b);
}

/* Room for all of it is set aside at once: a buffer that grew would leave copies. */
static int
read_all(int fd, size_t max, struct buf *out)
{
	ssize_t n = 1;

	buf_init(out, max + 1);
	out->p = mem_alloc(max + 2);
	if (!out->p)
		return ENOMEM;
	out->size = max + 2;
	while (n > 0 && out->n <= max) {
		n = read(fd, out->p + out->n, max + 1 - out->n);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			out->n += (size_t)n;
	}
	if (n < 0)
		return errno;
	return out->n > max ? EFBIG : 0;
}

int
secret_read(const char *path, size_t max, struct buf *out, struct slu_err *err)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	buf_init(out, max);
	if (fd < 0)
		return slu_fail(err, SLU_EDOWN, "%s: %m", path);
	rc = read_all(fd, max, out);
	if (!is_stdin)
		close(fd);
	if (!rc)
		return 0;
	secret_free(out);
	errno = rc;
	if (rc == EFBIG)
		return slu_fail(err, SLU_EINVAL, "%s: larger than %zu bytes", path, max);
	return slu_fail(err, rc == ENOMEM ? SLU_ENOMEM : SLU_EDOWN, "%s: %m", path);
}

/* ALG, or KID@ALG. */
static void
take_front(struct slice front, struct slice *kid, enum jwt_alg *alg)
{
	const char *const at = memchr(front.p, '@', front.n);
	const size_t n = at ? (size_t)(at - front.p) : 0;
	const size_t skip = at ? n + 1 : 0;

	*kid = (struct slice){ front.p, n };
	*alg = jwt_alg_of((struct slice){ front.p + skip, front.n - skip });
}

/* Splits [KID@]ALG:FILE; *file points into spec. Returns SLU_EINVAL. */
static int
split_spec(const char *spec, struct slice *kid, enum jwt_alg *alg, const char **file,
	   struct slu_err *err)
{
	const size_t n = strcspn(spec, ":");

	take_front((struct slice){ spec, n }, kid, alg);
	*file = spec + n + (spec[n] == ':');
	if (*alg != JWT_NO_ALG && spec[n] == ':' && **file)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"expected [KID@]ALG:FILE with one of HS256, HS384, HS512, RS256, ES256, "
			"EdDSA, not %s",
			spec);
}

static int
add(struct keyring *r, struct slice kid, enum jwt_alg alg, struct slice text,
    struct slu_err *err)
{
	struct key *const k = keyring_next(r, err);
	int rc = k ? key_name(k, kid, err) : SLU_EINVAL;

	if (rc)
		return rc;
	rc = key_is_secret(alg) ? key_secret(k, alg, text, err)
				: key_pem(k, alg, text, false, err);
	r->n += rc == 0;
	return rc;
}

int
keyring_add_file(struct keyring *r, const char *spec, struct slu_err *err)
{
	const char *path;
	enum jwt_alg alg;
	struct slu_err why;
	struct slice kid;
	struct buf text;
	int rc;

	rc = split_spec(spec, &kid, &alg, &path, err);
	if (rc)
		return rc;
	rc = secret_read(path, KEY_FILE_MAX, &text, err);
	if (rc)
		return rc;
	rc = add(r, kid, alg, buf_slice(&text), &why);
	secret_free(&text);
	return rc ? slu_fail(err, rc, "%s: %s", path, why.text) : 0;
}

int
keyring_add_jwks_file(struct keyring *r, const char *path, struct slu_err *err)
{
	struct slu_err why;
	struct buf text;
	int rc;

	rc = secret_read(path, KEYRING_JWKS_MAX, &text, err);
	if (rc)
		return rc;
	rc = keyring_add_jwks(r, buf_slice(&text), &why);
	secret_free(&text);
	return rc ? slu_fail(err, rc, "%s: %s", path, why.text) : 0;
}

int
keyring_add_secret(struct keyring *r, const char *name, const char *secret,
		   struct slu_err *err)
{
	struct slu_err why;
	const int rc = add(r, (struct slice){ 0 }, JWT_HS256, slice_of(secret), &why);

	return rc ? slu_fail(err, rc, "%s: %s", name, why.text) : 0;
}

/* --- verify ---------------------------------------------------------------------- */

static bool
is_named(const struct key *k, struct slice kid)
{
	return slice_eq(slice_of(k->kid), kid);
}

/* The name of the keys that a token is to be checked with. */
static struct slice
choose(const struct keyring *r, const struct jwt *t)
{
	for (unsigned i = 0; i < r->n; i++)
		if (is_named(&r->keys[i], t->kid))
			return t->kid;
	return (struct slice){ "", 0 };
}

int
keyring_verify(const struct keyring *r, const struct jwt *t, struct slu_err *err)
{
	const struct slice kid = choose(r, t);
	unsigned tries = 0;

	for (unsigned i = 0; i < r->n && tries < KEYRING_TRIES; i++) {
		const struct key *const k = &r->keys[i];

		if (k->alg != t->alg || (t->kid.n > 0 && !is_named(k, kid)))
			continue;
		tries++;
		if (key_verify(k, t->signing, t->signature))
			return 0;
	}
	return slu_fail(err, SLU_EAUTH, "the token is not signed by an accepted key");
}
