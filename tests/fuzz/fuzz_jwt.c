/*
 * fuzz_jwt.c - a token is taken apart; what is left of it is inside, bounded, and the
 * same when it is read again. Half of the inputs are read as claims, or as keys,
 * that no signature would let through to their readers.
 *
 *      first byte   0 token   1 claims   2 key set   3 certificate names
 */
#include "fuzz.h"

#include "auth/cert.h"
#include "auth/keyring.h"
#include "base/base64.h"

#include <string.h>

static void
check_claims(const struct jwt_claims *c)
{
	const struct jwt_rules rules = { .leeway = SLU_SEC };

	FUZZ_CHECK(c->n_aud <= JWT_AUDIENCES && c->grants.n <= GRANTS_MAX);
	FUZZ_CHECK(c->exp >= 0 && c->nbf >= 0);
	(void)jwt_check(c, &rules, 1700000000 * SLU_SEC, NULL);
	for (unsigned i = 0; i < c->grants.n; i++)
		FUZZ_CHECK(c->grants.items[i].pattern.n > 0 && c->grants.items[i].rights != 0);
}

static void
try_token(struct slice token)
{
	static char room[JWT_ROOM];
	struct jwt_claims claims;
	struct jwt t;

	if (jwt_split(&t, token, room, NULL))
		return;
	FUZZ_CHECK(token.n <= JWT_MAX && t.alg > JWT_NO_ALG && t.alg < JWT_N_ALGS);
	FUZZ_CHECK(t.signing.p == token.p && t.signing.n < token.n);
	if (jwt_claims(&claims, &t, NULL) == 0)
		check_claims(&claims);
}

/* As if they had been signed. */
static void
try_claims(struct slice json)
{
	static const char header[] = "eyJhbGciOiJIUzI1NiJ9.";
	static char token[2 * JWT_MAX];
	size_t n = sizeof header - 1;

	if (json.n > JWT_MAX)
		return;
	memcpy(token, header, n);
	base64url_encode(json, token + n);
	n += base64url_text(json.n);
	memcpy(token + n, ".AA", 3);
	try_token((struct slice){ token, n + 3 });
}

static void
try_keys(struct slice json)
{
	struct keyring *const r = keyring_new();

	FUZZ_CHECK(r);
	if (keyring_add_jwks(r, json, NULL) == 0)
		FUZZ_CHECK(r->n > 0 && r->n <= KEYRING_MAX);
	keyring_free(r);
}

static void
try_certificate(struct slice text)
{
	struct cert_map map;
	struct identity *id;

	if (cert_map_parse(&map, text, NULL))
		map = (struct cert_map){ 0 };
	if (cert_identity(&id, SLICE("CN=a"), &text, 1, &map, NULL) == 0)
		identity_unref(id);
	cert_map_release(&map);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct slice) = { try_token, try_claims, try_keys,
						       try_certificate };

	if (size > 0)
		tries[data[0] % 4]((struct slice){ (const char *)data + 1, size - 1 });
	return 0;
}
