/*
 * test_keyring.c - keys out of files and key sets, and which of them a token is checked
 * with.
 */
#include "token_fixture.h"

FIXTURE(fx_start, fx_end);

static const struct jwt_rules any = { .leeway = 10 * SLU_SEC };

#define CLAIMS "{\"exp\":1800000001}"

static void
write_file(const char *path, struct slice text)
{
	FILE *const f = fopen(path, "we");

	CHECK(f && fwrite(text.p, 1, text.n, f) == text.n && fclose(f) == 0);
}

static int
verify_kid(const struct keyring *r, const struct key *k, const char *kid)
{
	struct jwt_claims c;
	char header[128];

	if (kid)
		(void)snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"%s\"}", jwt_alg_name(k->alg), kid);
	else
		(void)snprintf(header, sizeof header, "{\"alg\":\"%s\"}", jwt_alg_name(k->alg));
	return fx_verify(r, fx_token(k, header, CLAIMS), &any, &c, NULL);
}

/* --- which key -------------------------------------------------------------------- */

TEST(the_kid_chooses_among_keys_that_have_names)
{
	static struct key old, new;

	fx_key(&old, ring, JWT_HS256, "2025");
	fx_key(&new, ring, JWT_HS256, "2026");
	CHECK_EQ(0, verify_kid(ring, &old, "2025"));
	CHECK_EQ(0, verify_kid(ring, &new, "2026"));
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &old, "2026"), "another's name");
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &old, "2027"), "nobody's name");
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &old, "202"), "a part of a name");
	CHECK_EQ(0, verify_kid(ring, &old, NULL), "no name: all are tried");
	CHECK_EQ(0, verify_kid(ring, &new, NULL));
}

TEST(a_key_without_a_name_serves_any_kid_that_no_key_has)
{
	static struct key named, bare;

	fx_key(&named, ring, JWT_ES256, "a");
	fx_key(&bare, ring, JWT_ES256, "");
	CHECK_EQ(0, verify_kid(ring, &bare, "whatever"));
	CHECK_EQ(0, verify_kid(ring, &bare, NULL));
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &bare, "a"));
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &named, "whatever"));
}

TEST(a_token_costs_a_bounded_number_of_tries)
{
	static struct key k[KEYRING_TRIES + 1];

	EACH(i, k)
		fx_key(&k[i], ring, JWT_HS256, "");
	CHECK_EQ(0, verify_kid(ring, &k[KEYRING_TRIES - 1], NULL));
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &k[KEYRING_TRIES], NULL));
}

TEST(an_empty_ring_refuses_every_token)
{
	static struct key k;

	fx_key(&k, NULL, JWT_HS256, "");
	CHECK_EQ(SLU_EAUTH, verify_kid(ring, &k, NULL));
}

/* --- files ------------------------------------------------------------------------ */

TEST(keys_are_read_from_files)
{
	static const enum jwt_alg algs[] = { JWT_HS384, JWT_RS256, JWT_ES256, JWT_EDDSA };

	EACH(i, algs) {
		struct keyring *const r = keyring_new();
		struct slu_err err = { 0 };
		struct key k = { 0 };
		struct buf text;
		char spec[64];

		buf_init(&text, KEY_FILE_MAX);
		CHECK_EQ(0, mint_key(algs[i], &text, NULL));
		if (key_is_secret(algs[i])) {
			CHECK_EQ(0, key_secret(&k, algs[i], buf_slice(&text), NULL));
		} else {
			CHECK_EQ(0, key_pem(&k, algs[i], buf_slice(&text), true, NULL));
			buf_clear(&text);
			CHECK_EQ(0, mint_public(&k, &text, NULL));
		}
		write_file("key", buf_slice(&text));
		(void)snprintf(spec, sizeof spec, "a:b@%s:key", jwt_alg_name(algs[i]));
		CHECK_EQ(SLU_EINVAL, keyring_add_file(r, spec, &err), "a colon ends the algorithm");
		(void)snprintf(spec, sizeof spec, "mine@%s:key", jwt_alg_name(algs[i]));
		CHECK_EQ(0, keyring_add_file(r, spec, &err), err.text);
		CHECK_EQ(0, verify_kid(r, &k, "mine"));
		key_release(&k);
		buf_release(&text);
		keyring_free(r);
	}
}

TEST(a_file_that_cannot_be_used_is_named_and_never_shown)
{
	static const struct {
		const char *spec, *says;
	} cases[] = {
		{ "HS256:short", "short: the secret has 11 bytes, HS256 needs at least 32" },
		{ "HS512:long", "long: the secret has 40 bytes, HS512 needs at least 64" },
		{ "RS256:long", "long: expected an RSA key" },
		{ "RS256:ec.pem", "ec.pem: expected an RSA key of 2048 to 16384 bits, for RS256" },
		{ "EdDSA:ec.pem", "expected an Ed25519 key" },
		{ "HS256:missing", "missing: No such file" },
		{ "HS256:.", ".: Is a directory" },
		{ "HS256:large", "large: larger than 65536 bytes" },
		{ "none:long", "expected [KID@]ALG:FILE" },
		{ "hs256:long", "expected [KID@]ALG:FILE" },
		{ "long", "expected [KID@]ALG:FILE" },
		{ "HS256:", "expected [KID@]ALG:FILE" },
	};
	static char large[KEY_FILE_MAX + 1];
	struct buf pem;
	static struct key ec;

	buf_init(&pem, KEY_FILE_MAX);
	fx_key(&ec, NULL, JWT_ES256, "");
	CHECK_EQ(0, mint_public(&ec, &pem, NULL));
	write_file("ec.pem", buf_slice(&pem));
	write_file("short", SLICE("hunter2-pet\n"));
	write_file("long", SLICE("hunter2-pet-hunter2-pet-hunter2-pet-abcd"));
	memset(large, 'x', sizeof large);
	write_file("large", (struct slice){ large, sizeof large });
	EACH(i, cases) {
		struct keyring *const r = keyring_new();
		struct slu_err err = { 0 };

		CHECK(keyring_add_file(r, cases[i].spec, &err) != 0);
		CHECK_CONTAINS(cases[i].says, err.text);
		CHECK(!strstr(err.text, "hunter2"));
		CHECK_EQ(0, r->n);
		keyring_free(r);
	}
	buf_release(&pem);
}

/* --- key sets --------------------------------------------------------------------- */

#define OCT32 "\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""

TEST(a_key_set_brings_what_is_for_us)
{
	static const struct {
		const char *label, *keys;
		unsigned n; /* 0: refused */
	} cases[] = {
		{ "a secret", "{\"kty\":\"oct\",\"alg\":\"HS256\"," OCT32 "}", 1 },
		{ "for signatures", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"use\":\"sig\"," OCT32 "}", 1 },
		{ "to verify", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"key_ops\":[\"sign\",\"verify\"]," OCT32 "}", 1 },
		{ "others beside it", "{\"kty\":\"XYZ\"},{\"kty\":\"oct\",\"alg\":\"HS256\"," OCT32 "},{\"kty\":\"EC\",\"crv\":\"P-521\"}", 1 },
		{ "for encryption", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"use\":\"enc\"," OCT32 "}", 0 },
		{ "to sign alone", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"key_ops\":[\"sign\"]," OCT32 "}", 0 },
		{ "a secret that names no algorithm", "{\"kty\":\"oct\"," OCT32 "}", 0 },
		{ "a secret for RS256", "{\"kty\":\"oct\",\"alg\":\"RS256\"," OCT32 "}", 0 },
		{ "a secret that is too short", "{\"kty\":\"oct\",\"alg\":\"HS512\"," OCT32 "}", 0 },
		{ "not base64", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"k\":\"====\"}", 0 },
		{ "an RSA key for RS512", "{\"kty\":\"RSA\",\"alg\":\"RS512\",\"n\":\"AA\",\"e\":\"AQAB\"}", 0 },
		{ "an RSA key of 24 bits", "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", 0 },
		{ "an RSA key without e", "{\"kty\":\"RSA\",\"n\":\"AQAB\"}", 0 },
		{ "a point that is not on the curve", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}", 0 },
		{ "a short Ed25519 key", "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}", 0 },
		{ "X25519", "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}", 0 },
		{ "no type", "{\"alg\":\"HS256\"}", 0 },
		{ "none", "", 0 },
		{ "no object", "7", 0 },
	};

	EACH(i, cases) {
		struct keyring *const r = keyring_new();
		static char json[2048];
		struct slu_err err = { 0 };
		int rc;

		(void)snprintf(json, sizeof json, "{\"x\":1,\"keys\":[%s]}", cases[i].keys);
		rc = keyring_add_jwks(r, slice_of(json), &err);
		CHECK_EQ(cases[i].n ? 0 : SLU_EINVAL, rc, cases[i].label);
		CHECK(!rc || *err.text);
		if (!rc)
			CHECK_EQ(cases[i].n, r->n, cases[i].label);
		keyring_free(r);
	}
}

TEST(a_key_set_has_a_bound)
{
	static char json[KEYRING_JWKS_MAX];
	size_t n = (size_t)snprintf(json, sizeof json, "{\"keys\":[");

	for (unsigned i = 0; i <= KEYRING_MAX; i++)
		n += (size_t)snprintf(json + n, sizeof json - n, "%s{\"kty\":\"oct\",\"alg\":\"HS256\"," OCT32 "}", i ? "," : "");
	n += (size_t)snprintf(json + n, sizeof json - n, "]}");
	CHECK_EQ(SLU_EINVAL, keyring_add_jwks(ring, (struct slice){ json, n }, NULL));
}

TORTURE(keys_survive_lack_of_memory)
{
	struct keyring *const r = keyring_new();
	int rc = 0;

	write_file("secret", SLICE("hunter2-pet-hunter2-pet-hunter2-pet-abcd\n"));
	if (!r)
		return;
	rc = keyring_add_file(r, "HS256:secret", NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	rc = keyring_add_jwks(r, SLICE("{\"keys\":[{\"kty\":\"oct\",\"alg\":\"HS256\"," OCT32 "}]}"), NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	keyring_free(r);
}
