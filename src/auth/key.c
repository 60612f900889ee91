#include "auth/key.h"

#include "base/mem.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

enum kind {
	KIND_HMAC,
	KIND_RSA,
	KIND_EC,
	KIND_ED
};

enum {
	ES256_HALF = 32, /* bytes of r, and of s */
	ES256_PAIR = 2 * ES256_HALF,
	DIGEST_MAX = 64,
	RSA_MAX_BYTES = 2048
};

static const struct row {
	enum kind kind;
	const char *digest;
	size_t least; /* bytes of a secret, or of what the key works with */
} rows[JWT_N_ALGS] = {
#define X(alg, text, kind, digest, least) [JWT_##alg] = { KIND_##kind, digest, least },
	JWT_ALGS(X)
#undef X
};

/* What OpenSSL calls the keys of a kind, and what a person does. */
static const struct {
	const char *type;
	const char *says;
} kinds[] = {
	[KIND_HMAC] = { "", "a secret" },
	[KIND_RSA] = { "RSA", "an RSA key of 2048 to 16384 bits" },
	[KIND_EC] = { "EC", "an EC key on P-256" },
	[KIND_ED] = { "ED25519", "an Ed25519 key" },
};

bool
key_is_secret(enum jwt_alg alg)
{
	return alg != JWT_NO_ALG && rows[alg].kind == KIND_HMAC;
}

void
key_release(struct key *k)
{
	EVP_PKEY_free(k->pkey);
	if (k->secret)
		OPENSSL_cleanse(k->secret, k->n_secret);
	mem_free(k->secret);
	*k = (struct key){ 0 };
}

int
key_name(struct key *k, struct slice kid, struct slu_err *err)
{
	if (kid.n > JWT_KID_MAX)
		return slu_fail(err, SLU_EINVAL, "kid: expected at most %d bytes", JWT_KID_MAX);
	if (kid.n > 0)
		memcpy(k->kid, kid.p, kid.n);
	k->kid[kid.n] = '\0';
	return 0;
}

int
key_secret(struct key *k, enum jwt_alg alg, struct slice secret, struct slu_err *err)
{
	if (secret.n > 1 && memcmp(secret.p + secret.n - 2, "\r\n", 2) == 0)
		secret.n -= 2;
	else if (secret.n > 0 && secret.p[secret.n - 1] == '\n')
		secret.n--;
	return key_secret_bytes(k, alg, secret, err);
}

int
key_secret_bytes(struct key *k, enum jwt_alg alg, struct slice secret, struct slu_err *err)
{
	if (secret.n < rows[alg].least)
		return slu_fail(err, SLU_EINVAL,
				"the secret has %zu bytes, %s needs at least %zu; `sluice token "
				"--new-key --alg %s` prints one",
				secret.n, jwt_alg_name(alg), rows[alg].least, jwt_alg_name(alg));
	k->alg = alg;
	k->secret = mem_alloc(secret.n);
	if (!k->secret)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	memcpy(k->secret, secret.p, secret.n);
	k->n_secret = secret.n;
	return 0;
}

/* --- pairs of keys --------------------------------------------------------------- */

static bool
is_for(EVP_PKEY *pkey, enum jwt_alg alg)
{
	const enum kind kind = rows[alg].kind;
	char curve[64];
	size_t n;

	if (kind == KIND_HMAC || !EVP_PKEY_is_a(pkey, kinds[kind].type))
		return false;
	if (kind == KIND_RSA) {
		const int bytes = EVP_PKEY_get_size(pkey);

		return bytes >= (int)rows[alg].least && bytes <= RSA_MAX_BYTES;
	}
	if (kind == KIND_EC)
		return EVP_PKEY_get_group_name(pkey, curve, sizeof curve, &n) == 1 &&
		       strcmp(curve, "prime256v1") == 0;
	return true;
}

int
key_take(struct key *k, enum jwt_alg alg, EVP_PKEY *pkey, struct slu_err *err)
{
	ERR_clear_error();
	if (!pkey || !is_for(pkey, alg)) {
		EVP_PKEY_free(pkey);
		return slu_fail(err, SLU_EINVAL, "expected %s, for %s",
				kinds[rows[alg].kind].says, jwt_alg_name(alg));
	}
	k->alg = alg;
	k->pkey = pkey;
	return 0;
}

/* A key with a password fails: there is no terminal. */
static char no_password[] = "";

static EVP_PKEY *
read_certificate(BIO *in)
{
	X509 *const x = PEM_read_bio_X509(in, NULL, NULL, no_password);
	EVP_PKEY *const pkey = x ? X509_get_pubkey(x) : NULL;

	X509_free(x);
	return pkey;
}

static EVP_PKEY *
read_pem(struct slice pem, bool private_key)
{
	BIO *const in = BIO_new_mem_buf(pem.p, (int)pem.n);
	EVP_PKEY *pkey = NULL;

	if (!in)
		return NULL;
	if (private_key)
		pkey = PEM_read_bio_PrivateKey(in, NULL, NULL, no_password);
	else
		pkey = PEM_read_bio_PUBKEY(in, NULL, NULL, no_password);
	if (!pkey && !private_key && BIO_reset(in) == 1)
		pkey = read_certificate(in);
	BIO_free(in);
	return pkey;
}

int
key_pem(struct key *k, enum jwt_alg alg, struct slice pem, bool private_key,
	struct slu_err *err)
{
	EVP_PKEY *const pkey = pem.n <= KEY_FILE_MAX ? read_pem(pem, private_key) : NULL;

	ERR_clear_error();
	if (!pkey)
		return slu_fail(err, SLU_EINVAL, "expected %s as PEM: -----BEGIN %s KEY-----",
				kinds[rows[alg].kind].says, private_key ? "PRIVATE" : "PUBLIC");
	return key_take(k, alg, pkey, err);
}

/* --- r and s, as a pair or as DER -------------------------------------------------- */

/* Writes DER to *out, to be freed by OpenSSL. Its length, or less than 1. */
static int
pair_to_der(struct slice pair, unsigned char **out)
{
	const unsigned char *const p = (const unsigned char *)pair.p;
	ECDSA_SIG *const sig = ECDSA_SIG_new();
	BIGNUM *const r = BN_bin2bn(p, ES256_HALF, NULL);
	BIGNUM *const s = BN_bin2bn(p + ES256_HALF, ES256_HALF, NULL);
	int n = 0;

	if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1) {
		n = i2d_ECDSA_SIG(sig, out);
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(sig);
	return n;
}

static bool
der_to_pair(const unsigned char *der, size_t n, unsigned char out[static ES256_PAIR])
{
	ECDSA_SIG *const sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
	const bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, ES256_HALF) > 0 &&
			BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + ES256_HALF, ES256_HALF) > 0;

	ECDSA_SIG_free(sig);
	return ok;
}

/* --- verify ------------------------------------------------------------------------ */

/* How many bytes, or 0. */
static size_t
mac(const struct key *k, struct slice text, unsigned char out[static DIGEST_MAX])
{
	size_t n = 0;

	if (!EVP_Q_mac(NULL, "HMAC", NULL, rows[k->alg].digest, NULL, k->secret, k->n_secret,
		       (const unsigned char *)text.p, text.n, out, DIGEST_MAX, &n))
		return 0;
	return n;
}

static bool
verify_secret(const struct key *k, struct slice text, struct slice signature)
{
	unsigned char want[DIGEST_MAX];
	const size_t n = mac(k, text, want);
	const bool good = n > 0 && n == signature.n &&
			  CRYPTO_memcmp(want, signature.p, n) == 0;

	OPENSSL_cleanse(want, sizeof want);
	return good;
}

static bool
verify_digest(const struct key *k, struct slice text, const unsigned char *sig, size_t n)
{
	EVP_MD_CTX *const ctx = EVP_MD_CTX_new();
	const bool good =
		ctx &&
		EVP_DigestVerifyInit_ex(ctx, NULL, rows[k->alg].digest, NULL, NULL, k->pkey,
					NULL) == 1 &&
		EVP_DigestVerify(ctx, sig, n, (const unsigned char *)text.p, text.n) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good;
}

static bool
verify_ec(const struct key *k, struct slice text, struct slice signature)
{
	unsigned char *der = NULL;
	bool good = false;
	int n;

	if (signature.n != ES256_PAIR)
		return false;
	n = pair_to_der(signature, &der);
	if (n > 0)
		good = verify_digest(k, text, der, (size_t)n);
	OPENSSL_free(der);
	return good;
}

bool
key_verify(const struct key *k, struct slice text, struct slice signature)
{
	if (signature.n == 0 || signature.n > KEY_SIGNATURE_MAX)
		return false;
	if (!k->pkey)
		return verify_secret(k, text, signature);
	if (rows[k->alg].kind == KIND_EC)
		return verify_ec(k, text, signature);
	return verify_digest(k, text, (const unsigned char *)signature.p, signature.n);
}

/* --- sign -------------------------------------------------------------------------- */

static bool
sign_digest(const struct key *k, struct slice text, unsigned char *out, size_t *n)
{
	EVP_MD_CTX *const ctx = EVP_MD_CTX_new();
	const bool good =
		ctx &&
		EVP_DigestSignInit_ex(ctx, NULL, rows[k->alg].digest, NULL, NULL, k->pkey,
				      NULL) == 1 &&
		EVP_DigestSign(ctx, out, n, (const unsigned char *)text.p, text.n) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good;
}

int
key_sign(const struct key *k, struct slice text, struct buf *out, struct slu_err *err)
{
	unsigned char sig[KEY_SIGNATURE_MAX], pair[ES256_PAIR];
	size_t n = sizeof sig;

	if (!k->pkey)
		n = mac(k, text, sig);
	else if (!sign_digest(k, text, sig, &n))
		n = 0;
	if (n == 0)
		return slu_fail(err, SLU_EDOWN, "cannot sign with this key");
	if (rows[k->alg].kind != KIND_EC) {
		buf_put(out, sig, n);
		return 0;
	}
	if (!der_to_pair(sig, n, pair))
		return slu_fail(err, SLU_EDOWN, "cannot sign with this key");
	buf_put(out, pair, sizeof pair);
	return 0;
}
