#include "auth/mint.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/json/json_out.h"
#include "base/mem.h"

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum {
	SECRET_BYTES = 64, /* enough for every algorithm */
	RSA_BITS = 3072
};

static void
put_base64url(struct buf *out, struct slice bytes)
{
	const size_t n = base64url_text(bytes.n);
	char *const text = mem_alloc(n + 1);

	if (text) {
		base64url_encode(bytes, text);
		buf_put(out, text, n);
	} else {
		out->failed = true;
	}
	mem_free(text);
}

/* --- tokens ---------------------------------------------------------------------- */

static void
out_text(struct json_out *w, const char *name, const char *text)
{
	if (text)
		json_out_str(w, name, slice_of(text));
}

static void
put_header(const struct key *k, struct buf *out)
{
	struct json_out w;

	json_out_open(&w, out);
	json_out_str(&w, "alg", slice_of(jwt_alg_name(k->alg)));
	json_out_str(&w, "typ", SLICE("JWT"));
	out_text(&w, "kid", *k->kid ? k->kid : NULL);
	json_out_close(&w);
}

static void
put_claims(const struct mint *m, struct buf *out)
{
	struct json_out w;

	json_out_open(&w, out);
	out_text(&w, "sub", m->sub);
	out_text(&w, "scope", m->scope);
	out_text(&w, "iss", m->issuer);
	out_text(&w, "aud", m->audience);
	json_out_i64(&w, "iat", m->now / SLU_SEC);
	json_out_i64(&w, "exp", (m->now + m->ttl) / SLU_SEC);
	json_out_close(&w);
}

int
mint_token(const struct mint *m, const struct key *k, struct buf *out, struct slu_err *err)
{
	const size_t begin = out->n;
	struct buf part;
	int rc;

	buf_init(&part, JWT_MAX);
	put_header(k, &part);
	put_base64url(out, buf_slice(&part));
	buf_putc(out, '.');
	out->failed |= part.failed;
	buf_clear(&part);
	put_claims(m, &part);
	put_base64url(out, buf_slice(&part));
	out->failed |= part.failed;
	buf_clear(&part);
	rc = out->failed ? slu_fail(err, SLU_ENOMEM, "out of memory")
			 : key_sign(k, (struct slice){ out->p + begin, out->n - begin }, &part, err);
	buf_putc(out, '.');
	put_base64url(out, buf_slice(&part));
	buf_release(&part);
	if (!rc && out->failed)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	return rc;
}

/* --- keys ------------------------------------------------------------------------ */

static int
new_secret(struct buf *out, struct slu_err *err)
{
	char bytes[SECRET_BYTES];
	const int rc = hash_random(bytes, sizeof bytes, err);

	if (rc)
		return rc;
	put_base64url(out, (struct slice){ bytes, sizeof bytes });
	buf_putc(out, '\n');
	OPENSSL_cleanse(bytes, sizeof bytes);
	return out->failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

static EVP_PKEY *
new_pair(enum jwt_alg alg)
{
	if (alg == JWT_RS256)
		return EVP_RSA_gen((unsigned)RSA_BITS);
	if (alg == JWT_ES256)
		return EVP_EC_gen("P-256");
	return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

/* What a PEM writer left in memory. */
static int
take_pem(BIO *mem, int ok, struct buf *out, struct slu_err *err)
{
	char *p = NULL;
	const long n = ok == 1 ? BIO_get_mem_data(mem, &p) : 0;

	if (n > 0)
		buf_put(out, p, (size_t)n);
	BIO_free(mem);
	if (n <= 0 || out->failed)
		return slu_fail(err, SLU_EDOWN, "cannot write the key as PEM");
	return 0;
}

int
mint_key(enum jwt_alg alg, struct buf *out, struct slu_err *err)
{
	BIO *mem;
	EVP_PKEY *pkey;
	int rc;

	if (key_is_secret(alg))
		return new_secret(out, err);
	mem = BIO_new(BIO_s_secmem());
	pkey = new_pair(alg);
	rc = take_pem(mem, mem && pkey ? PEM_write_bio_PKCS8PrivateKey(mem, pkey, NULL, NULL, 0, NULL, NULL) : 0,
		      out, err);
	EVP_PKEY_free(pkey);
	return rc;
}

int
mint_public(const struct key *k, struct buf *out, struct slu_err *err)
{
	BIO *const mem = BIO_new(BIO_s_mem());

	return take_pem(mem, mem && k->pkey ? PEM_write_bio_PUBKEY(mem, k->pkey) : 0, out, err);
}
