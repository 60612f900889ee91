/*
 * jwks.c - keys out of a JSON Web Key Set, RFC 7517 and RFC 7518, section 6.
 *
 *      kty   members   algorithm
 *      oct   k         named by `alg`, which is required
 *      RSA   n, e      RS256
 *      EC    x, y      ES256, crv P-256
 *      OKP   x         EdDSA, crv Ed25519
 *
 * A set often has keys of other types, algorithms and curves, or for encryption. These are
 * ignored. An invalid key of a known type is an error: otherwise it would be missing later.
 */
#include "auth/keyring.h"

#include "base/base64.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

enum {
	POINT = 32,        /* bytes of a coordinate, and of an Ed25519 key */
	NUMBER_MAX = 4096, /* of a member, decoded; more than any key has */
	JWKS_DEPTH = 8
};

struct jwk {
	struct slice kty, kid, use, alg, crv, k, n, e, x, y, key_ops;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct jwk, kty, .required = true),
	JSON_FIELDS(text, struct jwk, kid, use, alg, crv, k, n, e, x),
	JSON_FIELD(text, struct jwk, y),
	JSON_FIELD(raw, struct jwk, key_ops),
};

/* --- members ---------------------------------------------------------------------- */

struct jwk_number {
	unsigned char p[NUMBER_MAX];
	size_t n;
};

/* want: the number of bytes; 0: any number above 0. */
static int
decode(struct slice text, const char *name, size_t want, struct jwk_number *out,
       struct slu_err *err)
{
	if (text.n == 0)
		return slu_fail(err, SLU_EINVAL, "%s: is missing", name);
	if (base64url_room(text.n) > NUMBER_MAX ||
	    base64url_decode(text, (char *)out->p, &out->n, NULL))
		return slu_fail(err, SLU_EINVAL, "%s: expected base64url", name);
	if (want && out->n != want)
		return slu_fail(err, SLU_EINVAL, "%s: expected %zu bytes, it has %zu", name, want,
				out->n);
	return 0;
}

/* Builds a key from the parameters; NULL if they are invalid. */
static EVP_PKEY *
build(const char *type, OSSL_PARAM_BLD *bld)
{
	EVP_PKEY_CTX *const ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *const params = OSSL_PARAM_BLD_to_param(bld);
	EVP_PKEY *pkey = NULL;

	if (ctx && params && EVP_PKEY_fromdata_init(ctx) == 1)
		(void)EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params); /* NULL then */
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

/* --- types ------------------------------------------------------------------------ */

static int
add_secret(struct key *key, enum jwt_alg alg, const struct jwk *j, struct slu_err *err)
{
	struct jwk_number k = { .n = 0 };
	int rc;

	rc = decode(j->k, "k", 0, &k, err);
	if (!rc)
		rc = key_secret_bytes(key, alg, (struct slice){ (const char *)k.p, k.n }, err);
	OPENSSL_cleanse(&k, sizeof k);
	return rc;
}

static int
add_rsa(struct key *key, enum jwt_alg alg, const struct jwk *j, struct slu_err *err)
{
	OSSL_PARAM_BLD *const bld = OSSL_PARAM_BLD_new();
	EVP_PKEY *pkey = NULL;
	struct jwk_number n = { .n = 0 }, e = { .n = 0 };
	BIGNUM *bn = NULL, *be = NULL;
	int rc;

	rc = decode(j->n, "n", 0, &n, err);
	if (!rc)
		rc = decode(j->e, "e", 0, &e, err);
	if (!rc) {
		bn = BN_bin2bn(n.p, (int)n.n, NULL);
		be = BN_bin2bn(e.p, (int)e.n, NULL);
		if (bld && bn && be &&
		    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, bn) == 1 &&
		    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, be) == 1)
			pkey = build("RSA", bld);
		rc = key_take(key, alg, pkey, err);
	}
	BN_free(bn);
	BN_free(be);
	OSSL_PARAM_BLD_free(bld);
	return rc;
}

static int
add_ec(struct key *key, enum jwt_alg alg, const struct jwk *j, struct slu_err *err)
{
	OSSL_PARAM_BLD *const bld = OSSL_PARAM_BLD_new();
	unsigned char point[1 + 2 * POINT] = { 4 }; /* not compressed */
	EVP_PKEY *pkey = NULL;
	struct jwk_number x = { .n = 0 }, y = { .n = 0 };
	int rc;

	rc = decode(j->x, "x", POINT, &x, err);
	if (!rc)
		rc = decode(j->y, "y", POINT, &y, err);
	if (!rc) {
		memcpy(point + 1, x.p, POINT);
		memcpy(point + 1 + POINT, y.p, POINT);
		if (bld &&
		    OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME,
						    "prime256v1", 0) == 1 &&
		    OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point,
						     sizeof point) == 1)
			pkey = build("EC", bld);
		rc = key_take(key, alg, pkey, err);
	}
	OSSL_PARAM_BLD_free(bld);
	return rc;
}

static int
add_ed(struct key *key, enum jwt_alg alg, const struct jwk *j, struct slu_err *err)
{
	struct jwk_number x = { .n = 0 };
	const int rc = decode(j->x, "x", POINT, &x, err);

	if (rc)
		return rc;
	return key_take(key, alg,
			EVP_PKEY_new_raw_public_key_ex(NULL, "ED25519", NULL, x.p, x.n), err);
}

static const struct type {
	struct slice kty;
	struct slice crv; /* n 0: the type has no curve */
	enum jwt_alg alg; /* JWT_NO_ALG: a secret; its `alg` decides */
	int (*add)(struct key *key, enum jwt_alg alg, const struct jwk *j,
		   struct slu_err *err);
} types[] = {
	{ { "oct", 3 }, { NULL, 0 }, JWT_NO_ALG, add_secret },
	{ { "RSA", 3 }, { NULL, 0 }, JWT_RS256, add_rsa },
	{ { "EC", 2 }, { "P-256", 5 }, JWT_ES256, add_ec },
	{ { "OKP", 3 }, { "Ed25519", 7 }, JWT_EDDSA, add_ed },
};

/* Does the JSON of key_ops contain "verify"? */
static bool
may_verify(struct slice ops)
{
	return ops.n == 0 || memmem(ops.p, ops.n, "\"verify\"", 8) != NULL;
}

/* NULL: the server does not use this key. */
static const struct type *
type_of(const struct jwk *j, enum jwt_alg *alg)
{
	*alg = jwt_alg_of(j->alg);
	if ((j->use.n > 0 && !slice_eq(j->use, SLICE("sig"))) || !may_verify(j->key_ops))
		return NULL;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		const struct type *const t = &types[i];

		if (!slice_eq(t->kty, j->kty) || !slice_eq(t->crv, j->crv))
			continue;
		if (t->alg == JWT_NO_ALG)
			return key_is_secret(*alg) ? t : NULL;
		if (j->alg.n > 0 && *alg != t->alg)
			return NULL;
		*alg = t->alg;
		return t;
	}
	return NULL;
}

static int
add_jwk(struct keyring *r, const struct jwk *j, struct slu_err *err)
{
	enum jwt_alg alg;
	const struct type *const t = type_of(j, &alg);
	struct key *k;
	int rc;

	if (!t)
		return 0;
	k = keyring_next(r, err);
	rc = k ? key_name(k, j->kid, err) : SLU_EINVAL;
	if (!rc)
		rc = t->add(k, alg, j, err);
	r->n += rc == 0;
	return rc;
}

/* Reads the array of keys. The first invalid key ends it. */
static int
add_keys(struct keyring *r, struct json *in, struct slu_err *err)
{
	struct slu_err why = { 0 };
	unsigned at = 0;
	int rc = 0;

	json_array(in);
	while (json_element(in)) {
		struct jwk j = { 0 };

		json_fields(in, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &j);
		if (in->state != JSON_FAILED && !rc) {
			rc = add_jwk(r, &j, &why);
			at += rc == 0;
		}
	}
	return rc ? slu_fail(err, rc, "keys[%u]: %s", at, why.text) : 0;
}

int
keyring_add_jwks(struct keyring *r, struct slice json, struct slu_err *err)
{
	char *const room = mem_alloc(json.n + 1);
	const unsigned before = r->n;
	struct json_str name;
	struct json in;
	int rc = 0;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&in, json, JWKS_DEPTH);
	json_room(&in, room, json.n);
	json_object(&in);
	while (json_member(&in, &name))
		if (!rc && json_str_is(&name, SLICE("keys")))
			rc = add_keys(r, &in, err);
	if (json_end(&in, NULL) || (!rc && r->n == before))
		rc = slu_fail(err, SLU_EINVAL,
			      "expected {\"keys\":[...]} with a key for HS256, HS384, HS512, "
			      "RS256, ES256 or EdDSA");
	OPENSSL_cleanse(room, json.n);
	mem_free(room);
	return rc;
}
