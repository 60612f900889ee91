/*
 * test_jwt.c - fault 33: which tokens are good, and which are not. MQ-34.
 */
#include "token_fixture.h"

FIXTURE(fx_start, fx_end);

#define GOOD "{\"sub\":\"alice\",\"exp\":1800000060,\"scope\":\"pay:read\"}"

static const struct jwt_rules any = { .leeway = 10 * SLU_SEC };

/* --- vectors of the RFCs ---------------------------------------------------------- */

#define JOE                                                                           \
	"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9" \
	"pc19yb290Ijp0cnVlfQ"

static const struct {
	const char *label, *jwks, *token;
} vectors[] = {
	{ "RFC 7515, A.1: HS256",
	  "{\"keys\":[{\"kty\":\"oct\",\"alg\":\"HS256\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-"
	  "EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow\"}]}",
	  "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." JOE
	  ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" },
	{ "RFC 7515, A.2: RS256",
	  "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmf"
	  "HQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7O"
	  "Mg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh"
	  "9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\",\"e\":"
	  "\"AQAB\"}]}",
	  "eyJhbGciOiJSUzI1NiJ9." JOE
	  ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5juj"
	  "Gbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K"
	  "0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6L"
	  "bgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw" },
	{ "RFC 7515, A.3: ES256",
	  "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
	  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}",
	  "eyJhbGciOiJFUzI1NiJ9." JOE
	  ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q" },
	{ "RFC 8037, A.4: EdDSA",
	  "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}",
	  "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AI"
	  "bQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg" },
};

TEST(vectors_of_the_rfcs_are_verified)
{
	static char room[JWT_ROOM], changed[2048];

	EACH(i, vectors) {
		struct keyring *const r = keyring_new();
		const struct slice token = slice_of(vectors[i].token);
		struct jwt t;

		CHECK_EQ(0, keyring_add_jwks(r, slice_of(vectors[i].jwks), NULL), vectors[i].label);
		CHECK_EQ(0, jwt_split(&t, token, room, NULL), vectors[i].label);
		CHECK_EQ(0, keyring_verify(r, &t, NULL), vectors[i].label);
		memcpy(changed, token.p, token.n);
		changed[token.n - 40] ^= 1; /* of the signature */
		if (!jwt_split(&t, (struct slice){ changed, token.n }, room, NULL))
			CHECK_EQ(SLU_EAUTH, keyring_verify(r, &t, NULL), vectors[i].label);
		memcpy(changed, token.p, token.n);
		changed[strcspn(token.p, ".") + 5] ^= 2; /* of the claims */
		CHECK_EQ(0, jwt_split(&t, (struct slice){ changed, token.n }, room, NULL));
		CHECK_EQ(SLU_EAUTH, keyring_verify(r, &t, NULL), vectors[i].label);
		keyring_free(r);
	}
}

static const enum jwt_alg algs[] = { JWT_HS256, JWT_HS384, JWT_HS512,
				     JWT_RS256, JWT_ES256, JWT_EDDSA };

TEST(what_is_minted_is_verified_by_its_own_key_alone)
{
	EACH(i, algs) {
		const struct mint m = { .sub = "alice", .scope = "pay:read shop:*", .now = NOW, .ttl = SLU_HOUR };
		struct keyring *const mine = keyring_new(), *const other = keyring_new();
		static struct key k, not_mine;
		struct jwt_claims c;
		struct buf token;

		fx_key(&k, mine, algs[i], "");
		fx_key(&not_mine, other, algs[i], "");
		buf_init(&token, JWT_MAX);
		CHECK_EQ(0, mint_token(&m, &k, &token, NULL));
		CHECK_EQ(0, fx_verify(mine, buf_slice(&token), &any, &c, NULL), jwt_alg_name(algs[i]));
		CHECK(slice_eq(SLICE("alice"), c.sub));
		CHECK_EQ(2, c.grants.n);
		CHECK_EQ(NOW + SLU_HOUR, c.exp);
		CHECK_EQ(SLU_EAUTH, fx_verify(other, buf_slice(&token), &any, &c, NULL));
		buf_release(&token);
		keyring_free(mine);
		keyring_free(other);
	}
}

/* --- the algorithm is the key's --------------------------------------------------- */

TEST(no_algorithm_is_no_signature)
{
	static const char *const headers[] = {
		"{\"alg\":\"none\"}", "{\"alg\":\"None\"}", "{\"alg\":\"NONE\"}", "{\"alg\":\"\"}",
		"{\"alg\":null}", "{}", "{\"alg\":\"hs256\"}", "{\"alg\":\"RS512\"}", "{\"alg\":256}",
		"{\"alg\":[\"HS256\"]}", "{\"alg\":\"HS256\\u0000\"}"
	};
	struct jwt_claims c;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	CHECK_EQ(0, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", GOOD), &any, &c, NULL));
	EACH(i, headers) {
		CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(NULL, headers[i], GOOD), &any, &c, NULL), headers[i]);
		CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(&k, headers[i], GOOD), &any, &c, NULL), headers[i]);
	}
	CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(NULL, "{\"alg\":\"HS256\"}", GOOD), &any, &c, NULL));
}

/* The classic: the public key is known to all, and used as the secret of an HMAC. */
TEST(a_public_key_is_not_taken_for_a_secret)
{
	EACH(i, algs) {
		struct keyring *const r = keyring_new();
		static struct key pair;
		struct key forged = { 0 };
		struct jwt_claims c;
		struct buf pem;

		if (key_is_secret(algs[i])) {
			keyring_free(r);
			continue;
		}
		fx_key(&pair, r, algs[i], "");
		buf_init(&pem, KEY_FILE_MAX);
		CHECK_EQ(0, mint_public(&pair, &pem, NULL));
		for (enum jwt_alg hs = JWT_HS256; hs <= JWT_HS512; hs++) {
			char header[64];

			(void)snprintf(header, sizeof header, "{\"alg\":\"%s\"}", jwt_alg_name(hs));
			CHECK_EQ(0, key_secret_bytes(&forged, hs, buf_slice(&pem), NULL));
			CHECK_EQ(SLU_EAUTH, fx_verify(r, fx_token(&forged, header, GOOD), &any, &c, NULL), header);
			key_release(&forged);
		}
		buf_release(&pem);
		keyring_free(r);
	}
}

/* Signed well, by a key that is ours, and said to be something else. */
TEST(a_token_cannot_choose_the_algorithm_of_a_key)
{
	EACH(i, algs) {
		struct keyring *const r = keyring_new();
		struct jwt_claims c;
		static struct key k;

		fx_key(&k, r, algs[i], "");
		EACH(j, algs) {
			char header[64];

			(void)snprintf(header, sizeof header, "{\"alg\":\"%s\"}", jwt_alg_name(algs[j]));
			CHECK_EQ(i == j ? 0 : SLU_EAUTH,
				 fx_verify(r, fx_token(&k, header, GOOD), &any, &c, NULL), header);
		}
		keyring_free(r);
	}
}

/* --- form ------------------------------------------------------------------------- */

TEST(headers_are_read_strictly_and_name_no_keys)
{
	static const struct {
		const char *header;
		bool good;
	} cases[] = {
		{ "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"cty\":\"x\"}", true },
		{ "{\"alg\":\"HS256\",\"jku\":\"http://127.0.0.1:1/\",\"x5u\":\"file:///etc/passwd\"}", true },
		{ "{\"alg\":\"HS256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"AA\"},\"x5c\":[\"AA\"]}", true },
		{ "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", false },
		{ "{\"alg\":\"HS256\",\"crit\":[]}", false },
		{ "{\"alg\":\"HS256\",\"b64\":false,\"crit\":[\"b64\"]}", false },
		{ "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", false },
		{ "{\"alg\":\"HS256\",\"\\u0061lg\":\"none\"}", false },
		{ "{\"alg\":\"HS256\",\"kid\":7}", false },
		{ "{\"alg\":\"HS256\"} x", false },
		{ "{\"alg\":\"HS256\"", false },
		{ "[\"HS256\"]", false },
		{ "{\"alg\":\"HS256\",\"x\":[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]}", false },
		{ "{\"alg\":\"HS256\",\"kid\":\"../../../dev/null\"}", true }, /* a name, no path */
		{ "{\"alg\":\"HS256\",\"kid\":\"' OR 1=1 --\"}", true },
	};
	struct jwt_claims c;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	EACH(i, cases)
		CHECK_EQ(cases[i].good ? 0 : SLU_EAUTH,
			 fx_verify(ring, fx_token(&k, cases[i].header, GOOD), &any, &c, NULL), cases[i].header);
}

TEST(claims_are_read_strictly)
{
	static const struct {
		const char *claims;
		bool good;
	} cases[] = {
		{ "{\"exp\":1800000001}", true },
		{ "{\"exp\":1800000001.5,\"nbf\":0}", true },
		{ "{\"exp\":18e8,\"nbf\":1.7e9}", true }, /* within the leeway */
		{ "{\"exp\":1e300}", true },
		{ "{\"sub\":\"a\"}", false }, /* no end */
		{ "{\"exp\":null}", false },
		{ "{\"exp\":\"1800000001\"}", false },
		{ "{\"exp\":-1}", false },
		{ "{\"exp\":1e999}", false },
		{ "{\"exp\":1799999989}", false }, /* over */
		{ "{\"exp\":0}", false },
		{ "{\"exp\":1800000001,\"nbf\":1800000009}", true },
		{ "{\"exp\":1800000099,\"nbf\":1800000011}", false },
		{ "{\"exp\":1800000001,\"exp\":1900000000}", false },
		{ "{\"exp\":1800000001,\"\\u0065xp\":1900000000}", false },
		{ "{\"exp\":1800000001,\"scope\":\"a:read\",\"scope\":\"*:*\"}", false },
		{ "{\"exp\":1800000001,\"sub\":\"a\",\"sub\":\"root\"}", false },
		{ "{\"exp\":1800000001,\"scope\":[\"a:read\"]}", false },
		{ "{\"exp\":1800000001,\"scopes\":\"a:read\"}", false },
		{ "{\"exp\":1800000001,\"scopes\":[\"a:read\",7]}", false },
		{ "{\"exp\":1800000001,\"sub\":\"a\\u0000b\"}", false },
		{ "{\"exp\":1800000001}{}", false },
		{ "{\"exp\":1800000001,}", false },
		{ "[]", false },
		{ "\xff", false },
	};
	struct jwt_claims c;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	EACH(i, cases)
		CHECK_EQ(cases[i].good ? 0 : SLU_EAUTH,
			 fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", cases[i].claims), &any, &c, NULL),
			 cases[i].claims);
}

TEST(size_and_depth_have_bounds)
{
	static char claims[2 * JWT_MAX];
	struct jwt_claims c;
	static struct key k;
	size_t n;

	fx_key(&k, ring, JWT_HS256, "");
	(void)snprintf(claims, sizeof claims, "{\"exp\":1800000001,\"x\":\"%0*d\"}", 5900, 0);
	CHECK_EQ(0, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &any, &c, NULL));
	(void)snprintf(claims, sizeof claims, "{\"exp\":1800000001,\"x\":\"%0*d\"}", 6200, 0);
	CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &any, &c, NULL));
	n = (size_t)snprintf(claims, sizeof claims, "{\"exp\":1800000001,\"x\":");
	memset(claims + n, '[', 2000);
	memset(claims + n + 2000, ']', 2000);
	(void)snprintf(claims + n + 4000, sizeof claims - n - 4000, "}");
	CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &any, &c, NULL));
	n = (size_t)snprintf(claims, sizeof claims, "{\"exp\":1800000001,\"scope\":\"");
	for (unsigned i = 0; i <= GRANTS_MAX; i++)
		n += (size_t)snprintf(claims + n, sizeof claims - n, "n%u:read ", i);
	(void)snprintf(claims + n, sizeof claims - n, "\"}");
	CHECK_EQ(SLU_EAUTH, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &any, &c, NULL));
}

/* A token that was cut, grown or spelled otherwise is another token. */
TEST(every_cut_and_every_other_spelling_is_refused)
{
	static char text[TOKEN_TEXT];
	static const char *const ends[] = { "=", "==", "A", ".", " ", "\n", "." };
	static const char *const forms[] = { "", ".", "..", "...", "a.b.c", "e30.e30.", "..AA",
					     "eyJhbGciOiJIUzI1NiJ9", "Bearer x" };
	struct jwt_claims c;
	struct slice token;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	token = fx_token(&k, "{\"alg\":\"HS256\"}", GOOD);
	CHECK_EQ(0, fx_verify(ring, token, &any, &c, NULL));
	for (size_t n = 0; n < token.n; n++)
		CHECK_EQ(SLU_EAUTH, fx_verify(ring, (struct slice){ token.p, n }, &any, &c, NULL));
	EACH(i, ends) {
		const int n = snprintf(text, sizeof text, "%s%s", token.p, ends[i]);

		CHECK_EQ(SLU_EAUTH, fx_verify(ring, (struct slice){ text, (size_t)n }, &any, &c, NULL), ends[i]);
	}
	EACH(i, forms)
		CHECK_EQ(SLU_EAUTH, fx_verify(ring, slice_of(forms[i]), &any, &c, NULL), forms[i]);
	for (size_t i = 0; i < token.n; i++) {
		memcpy(text, token.p, token.n);
		text[i] = text[i] == 'A' ? 'B' : 'A';
		CHECK_EQ(SLU_EAUTH, fx_verify(ring, (struct slice){ text, token.n }, &any, &c, NULL));
	}
}

/* --- audience and issuer ---------------------------------------------------------- */

TEST(audience_and_issuer_are_checked_where_they_are_configured)
{
	static const struct {
		const char *audience, *issuer, *more;
		bool good;
	} cases[] = {
		{ "", "", "", true },
		{ "", "", ",\"aud\":\"other\",\"iss\":\"other\"", true },
		{ "sluice", "", ",\"aud\":\"sluice\"", true },
		{ "sluice", "", ",\"aud\":[\"a\",\"sluice\"]", true },
		{ "sluice", "", "", false },
		{ "sluice", "", ",\"aud\":\"other\"", false },
		{ "sluice", "", ",\"aud\":\"sluice2\"", false },
		{ "sluice", "", ",\"aud\":\"Sluice\"", false },
		{ "sluice", "", ",\"aud\":[]", false },
		{ "sluice", "", ",\"aud\":[\"a\",{}]", false },
		{ "sluice", "", ",\"aud\":[1,2,3,4,5,6,7,8,9]", false },
		{ "", "me", ",\"iss\":\"me\"", true },
		{ "", "me", ",\"iss\":\"you\"", false },
		{ "", "me", "", false },
		{ "", "me", ",\"iss\":[\"me\"]", false },
		{ "sluice", "me", ",\"aud\":\"sluice\",\"iss\":\"me\"", true },
		{ "sluice", "me", ",\"aud\":\"me\",\"iss\":\"sluice\"", false },
	};
	struct jwt_claims c;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	EACH(i, cases) {
		const struct jwt_rules rules = { .audience = slice_of(cases[i].audience),
						 .issuer = slice_of(cases[i].issuer) };
		char claims[256];

		(void)snprintf(claims, sizeof claims, "{\"exp\":1800000001%s}", cases[i].more);
		CHECK_EQ(cases[i].good ? 0 : SLU_EAUTH,
			 fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &rules, &c, NULL),
			 claims);
	}
}

TEST(scopes_come_as_a_text_or_as_an_array)
{
	static const struct {
		const char *more;
		unsigned n;
	} cases[] = {
		{ ",\"scope\":\"pay:read openid pay:write\"", 2 },
		{ ",\"scopes\":[\"pay:read\",\"openid\",\"*:*\"]", 2 },
		{ ",\"scope\":\"pay:read\",\"scopes\":[\"shop:read\"]", 2 },
		{ ",\"scope\":\"\"", 0 },
		{ ",\"scope\":\"pay\\u003aread\"", 1 },
		{ ",\"scopes\":[\"pay:read shop:read\"]", 0 }, /* one scope a text */
		{ ",\"scope\":null", 0 },
		{ "", 0 },
	};
	struct jwt_claims c;
	static struct key k;

	fx_key(&k, ring, JWT_HS256, "");
	EACH(i, cases) {
		char claims[256];

		(void)snprintf(claims, sizeof claims, "{\"exp\":1800000001%s}", cases[i].more);
		CHECK_EQ(0, fx_verify(ring, fx_token(&k, "{\"alg\":\"HS256\"}", claims), &any, &c, NULL), claims);
		CHECK_EQ(cases[i].n, c.grants.n, claims);
	}
}

TEST(a_token_may_not_live_longer_than_the_rules_say)
{
	static const struct {
		const char *label;
		slu_time max_age, iat, exp; /* iat, exp: after NOW */
		enum refusal want;
	} cases[] = {
		{ "no bound", 0, 0, 10000 * SLU_HOUR, REFUSAL_NONE },
		{ "as long as it may", SLU_HOUR, -SLU_HOUR / 2, SLU_HOUR / 2, REFUSAL_NONE },
		{ "clocks that differ", SLU_HOUR, 5 * SLU_SEC, SLU_HOUR + 5 * SLU_SEC, REFUSAL_NONE },
		{ "too long", SLU_HOUR, -SLU_HOUR / 2, SLU_HOUR, REFUSAL_LIFETIME },
		{ "issued long ago", SLU_HOUR, -100 * SLU_HOUR, SLU_MIN, REFUSAL_LIFETIME },
		{ "issued in the future", SLU_HOUR, 99 * SLU_HOUR, 100 * SLU_HOUR, REFUSAL_LIFETIME },
		{ "no iat, soon over", SLU_HOUR, INT64_MIN, SLU_HOUR, REFUSAL_NONE },
		{ "no iat, too long", SLU_HOUR, INT64_MIN, 2 * SLU_HOUR, REFUSAL_LIFETIME },
		{ "no iat, for ever", SLU_HOUR, INT64_MIN, SLU_NEVER - 1 - NOW, REFUSAL_LIFETIME },
	};

	EACH(i, cases) {
		const struct jwt_rules rules = { .leeway = 10 * SLU_SEC, .max_age = cases[i].max_age };
		const struct jwt_claims c = {
			.iat = cases[i].iat == INT64_MIN ? 0 : NOW + cases[i].iat,
			.exp = NOW + cases[i].exp,
		};
		struct slu_err err = { 0 };

		CHECK_EQ(cases[i].want, jwt_judge(&c, &rules, NOW), cases[i].label);
		CHECK_EQ(cases[i].want == REFUSAL_NONE ? 0 : SLU_EAUTH, jwt_check(&c, &rules, NOW, &err));
		if (cases[i].want != REFUSAL_NONE)
			CHECK_CONTAINS("auth.max_age", err.text);
	}
}
