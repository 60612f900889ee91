/*
 * test_auth.c - tokens over time: rotation, reload, and what is remembered of them.
 */
#include "token_fixture.h"

#include "auth/auth.h"
#include "fakeclock.h"

#include <pthread.h>

static _Thread_local enum refusal why;
static struct fakeclock fake;

static void
write_file(const char *path, struct slice text)
{
	FILE *const f = fopen(path, "we");

	CHECK(f && fwrite(text.p, 1, text.n, f) == text.n && fclose(f) == 0);
}

static int
reload(struct auth *a, const struct auth_conf *conf, struct slu_err *err)
{
	const int rc = auth_prepare(a, conf, err);

	if (!rc)
		auth_commit(a);
	return rc;
}

/* A key pair whose public half is in the file. */
static void
new_key(struct key *k, const char *path)
{
	struct buf pem;

	fx_key(k, NULL, JWT_ES256, "");
	buf_init(&pem, KEY_FILE_MAX);
	CHECK_EQ(0, mint_public(k, &pem, NULL));
	write_file(path, buf_slice(&pem));
	buf_release(&pem);
}

static struct slice
token_until(const struct key *k, slu_time end)
{
	char claims[128];

	(void)snprintf(claims, sizeof claims, "{\"sub\":\"alice\",\"exp\":%lld,\"scope\":\"pay:read\"}",
		       (long long)(end / SLU_SEC));
	return fx_token(k, "{\"alg\":\"ES256\"}", claims);
}

static char *one[] = { (char *)"ES256:one.pem" };
static char *two[] = { (char *)"ES256:two.pem" };
static char *both[] = { (char *)"ES256:one.pem", (char *)"ES256:two.pem" };

static struct auth *a;

static void
stop(void)
{
	auth_close(a);
	fx_end();
}

FIXTURE(NULL, stop);

static void
start(char *const *keys, unsigned n)
{
	const struct auth_conf conf = { .keys = keys, .n_keys = n };
	struct slu_err err = { 0 };

	fakeclock_init(&fake, SLU_SEC, NOW);
	CHECK_EQ(0, auth_open(&a, &conf, 2, &fake.clock, &err), err.text);
}

/* 0, and whose it is; or the code. */
static int
check(struct slice token, struct identity **out)
{
	struct identity *id = NULL;
	const int rc = auth_check(a, 0, token, &id, &why, NULL);

	if (out)
		*out = id;
	identity_unref(id); /* the cache has it */
	return rc;
}

TEST(a_good_token_is_remembered_by_its_thread)
{
	struct identity *first, *second, *other;
	struct slice token;
	static struct key k;

	new_key(&k, "one.pem");
	start(one, 1);
	token = token_until(&k, NOW + SLU_HOUR);
	CHECK_EQ(0, check(token, &first));
	CHECK_EQ(0, check(token, &second));
	CHECK(first == second);
	CHECK(slice_eq(SLICE("alice"), first->name));
	CHECK_EQ(0, auth_check(a, 1, token, &other, &why, NULL));
	CHECK(other != first);
	identity_unref(other);
}

TEST(what_is_remembered_ends_when_the_token_ends)
{
	struct slice token;
	static struct key k;

	new_key(&k, "one.pem");
	start(one, 1);
	token = token_until(&k, NOW + 60 * SLU_SEC);
	CHECK_EQ(0, check(token, NULL));
	fakeclock_advance(&fake, 59 * SLU_SEC);
	CHECK_EQ(0, check(token, NULL));
	fakeclock_advance(&fake, SLU_SEC);
	CHECK_EQ(SLU_EAUTH, check(token, NULL));
}

TEST(a_bad_token_is_not_remembered_as_good)
{
	static char text[TOKEN_TEXT];
	struct slice token;
	static struct key k;

	new_key(&k, "one.pem");
	start(one, 1);
	token = token_until(&k, NOW + 60 * SLU_SEC);
	CHECK_EQ(0, check(token, NULL));
	for (size_t i = 0; i < token.n; i++) {
		memcpy(text, token.p, token.n);
		text[i] ^= 1;
		CHECK_EQ(SLU_EAUTH, check((struct slice){ text, token.n }, NULL));
	}
	CHECK_EQ(SLU_EAUTH, check((struct slice){ token.p, token.n - 1 }, NULL));
	CHECK_EQ(SLU_EAUTH, check((struct slice){ "", 0 }, NULL));
	CHECK_EQ(0, check(token, NULL));
}

TEST(more_tokens_than_are_remembered_are_all_good)
{
	static struct key k;

	new_key(&k, "one.pem");
	start(one, 1);
	for (int round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2 * AUTH_CACHE; i++)
			CHECK_EQ(0, check(token_until(&k, NOW + (60 + i) * SLU_SEC), NULL));
}

/* --- rotation --------------------------------------------------------------------- */

TEST(keys_are_rotated_without_a_gap)
{
	const struct auth_conf with_both = { .keys = both, .n_keys = 2 };
	const struct auth_conf with_two = { .keys = two, .n_keys = 1 };
	struct slice from_one, from_two;
	static struct key k1, k2;

	new_key(&k1, "one.pem");
	new_key(&k2, "two.pem");
	start(one, 1);
	from_one = token_until(&k1, NOW + SLU_HOUR);
	from_two = token_until(&k2, NOW + SLU_HOUR);
	CHECK_EQ(0, check(from_one, NULL));
	CHECK_EQ(SLU_EAUTH, check(from_two, NULL));
	CHECK_EQ(0, reload(a, &with_both, NULL));
	CHECK_EQ(0, check(from_two, NULL));
	CHECK_EQ(0, check(from_one, NULL));
	CHECK_EQ(0, reload(a, &with_two, NULL));
	CHECK_EQ(SLU_EAUTH, check(from_one, NULL), "also what was remembered");
	CHECK_EQ(0, check(from_two, NULL));
}

TEST(a_reload_that_fails_keeps_what_was)
{
	const struct auth_conf same = { .keys = one, .n_keys = 1 };
	const struct auth_conf none = { 0 };
	struct slu_err err = { 0 };
	struct slice token;
	static struct key k;

	new_key(&k, "one.pem");
	start(one, 1);
	token = token_until(&k, NOW + SLU_HOUR);
	write_file("one.pem", SLICE("-----BEGIN nothing\n"));
	CHECK_EQ(SLU_EINVAL, reload(a, &same, &err));
	CHECK_CONTAINS("one.pem: expected an EC key", err.text);
	CHECK_EQ(0, check(token, NULL));
	CHECK_EQ(SLU_EINVAL, reload(a, &none, &err));
	CHECK_CONTAINS("the last key is gone", err.text);
	CHECK_EQ(0, check(token, NULL));
	CHECK(auth_is_on(a));
}

TEST(what_was_prepared_and_abandoned_has_no_effect)
{
	const struct auth_conf with_two = { .keys = two, .n_keys = 1 };
	static struct key k1, k2;

	new_key(&k1, "one.pem");
	new_key(&k2, "two.pem");
	start(one, 1);
	CHECK_EQ(0, auth_prepare(a, &with_two, NULL));
	CHECK_EQ(SLU_EAUTH, check(token_until(&k2, NOW + SLU_HOUR), NULL));
	auth_abandon(a);
	auth_commit(a);
	CHECK_EQ(0, check(token_until(&k1, NOW + SLU_HOUR), NULL));
	CHECK_EQ(SLU_EAUTH, check(token_until(&k2, NOW + SLU_HOUR), NULL));
}

TEST(keys_may_come_later)
{
	const struct auth_conf conf = { .keys = one, .n_keys = 1 };
	static struct key k;

	new_key(&k, "one.pem");
	start(NULL, 0);
	CHECK(!auth_is_on(a));
	CHECK_EQ(SLU_EAUTH, check(token_until(&k, NOW + SLU_HOUR), NULL));
	CHECK_EQ(0, reload(a, &conf, NULL));
	CHECK(auth_is_on(a));
	CHECK_EQ(0, check(token_until(&k, NOW + SLU_HOUR), NULL));
}

TEST(a_secret_may_be_a_setting)
{
	const struct auth_conf conf = { .secret = "hunter2-pet-hunter2-pet-hunter2-pet", .audience = "sluice" };
	const struct auth_conf bad = { .secret = "hunter2" };
	static struct key k;
	struct slu_err err;

	fx_own(&k);
	fakeclock_init(&fake, SLU_SEC, NOW);
	CHECK_EQ(0, key_secret(&k, JWT_HS256, slice_of(conf.secret), NULL));
	CHECK_EQ(0, auth_open(&a, &conf, 1, &fake.clock, NULL));
	CHECK_EQ(0, check(fx_token(&k, "{\"alg\":\"HS256\"}", "{\"exp\":1800000001,\"aud\":\"sluice\"}"), NULL));
	CHECK_EQ(SLU_EAUTH, check(fx_token(&k, "{\"alg\":\"HS256\"}", "{\"exp\":1800000001}"), NULL));
	auth_close(a);
	a = NULL;
	CHECK_EQ(SLU_EINVAL, auth_open(&a, &bad, 1, &fake.clock, &err));
	CHECK_CONTAINS("auth.secret: the secret has 7 bytes", err.text);
	CHECK(!strstr(err.text, "hunter2"));
}

/* --- threads ---------------------------------------------------------------------- */

struct asker {
	struct auth *a;
	struct slice token;
	unsigned number;
	_Atomic bool *stop;
};

static void *
ask_on(void *arg)
{
	const struct asker *const asker = arg;

	while (!atomic_load(asker->stop)) {
		struct identity *id;

		CHECK_EQ(0, auth_check(asker->a, asker->number, asker->token, &id, &why, NULL));
		CHECK(identity_may(id, SLICE("pay"), RIGHT_READ));
		identity_unref(id);
	}
	return NULL;
}

TEST(threads_ask_while_keys_are_reloaded)
{
	const struct auth_conf with_both = { .keys = both, .n_keys = 2 };
	const struct auth_conf with_one = { .keys = one, .n_keys = 1 };
	_Atomic bool stop = false;
	struct asker askers[2];
	pthread_t threads[2];
	static struct key k1, k2;

	new_key(&k1, "one.pem");
	new_key(&k2, "two.pem");
	start(one, 1);
	EACH(i, threads) {
		askers[i] = (struct asker){ a, token_until(&k1, NOW + SLU_HOUR), (unsigned)i, &stop };
		CHECK_EQ(0, pthread_create(&threads[i], NULL, ask_on, &askers[i]));
	}
	for (int i = 0; i < 100; i++)
		CHECK_EQ(0, reload(a, i % 2 ? &with_one : &with_both, NULL));
	atomic_store(&stop, true);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
}

TORTURE(auth_survives_lack_of_memory)
{
	const struct auth_conf conf = { .secret = "hunter2-pet-hunter2-pet-hunter2-pet", .audience = "sluice", .issuer = "me" };
	struct identity *id = NULL;
	struct key k = { 0 };
	int rc;

	a = NULL;
	fakeclock_init(&fake, SLU_SEC, NOW);
	if (auth_open(&a, &conf, 1, &fake.clock, NULL) == 0 &&
	    key_secret(&k, JWT_HS256, slice_of(conf.secret), NULL) == 0) {
		struct buf token;

		buf_init(&token, JWT_MAX);
		if (mint_token(&(struct mint){ .audience = "sluice", .issuer = "me", .now = NOW, .ttl = SLU_HOUR }, &k, &token, NULL) == 0) {
			rc = auth_check(a, 0, buf_slice(&token), &id, &why, NULL);
			CHECK(rc == 0 || rc == SLU_ENOMEM);
			identity_unref(id);
			rc = reload(a, &conf, NULL);
			CHECK(rc == 0 || rc == SLU_ENOMEM);
		}
		buf_release(&token);
	}
	key_release(&k);
	auth_close(a);
}
