#include "auth/auth.h"

#include "auth/aws_keys.h"
#include "auth/codeq_token.h"
#include "auth/keyring.h"
#include "auth/sigv4.h"
#include "auth/token_cache.h"
#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>

/* AUTH-1: never changed once made. */
struct rules {
	_Atomic unsigned refs;
	struct keyring *keys;
	struct aws_keys aws;
	char *audience, *issuer;
	struct jwt_rules jwt;
	bool codeq;
};

struct auth {
	struct clock *clock;
	unsigned threads;

	/* Shared, under mtx; the number may be read without it. */
	pthread_mutex_t mtx;
	struct rules *rules;
	_Atomic uint64_t generation;
	_Atomic bool on;

	struct rules *next; /* of the reloading thread */

	struct sigv4_cache *signing; /* one for each thread */

	struct token_cache caches[]; /* each its thread's */
};

/* --- rules ----------------------------------------------------------------------- */

static void
rules_unref(struct rules *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	keyring_free(r->keys);
	aws_keys_release(&r->aws);
	mem_free(r->audience);
	mem_free(r->issuer);
	mem_free(r);
}

bool
auth_conf_has_keys(const struct auth_conf *conf)
{
	return conf->n_keys > 0 || conf->jwks || conf->secret || conf->aws_keys;
}

static int
load_keys(struct keyring *keys, const struct auth_conf *conf, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < conf->n_keys && !rc; i++)
		rc = keyring_add_file(keys, conf->keys[i], err);
	if (!rc && conf->jwks)
		rc = keyring_add_jwks_file(keys, conf->jwks, err);
	if (!rc && conf->secret)
		rc = keyring_add_secret(keys, "auth.secret", conf->secret, err);
	return rc;
}

static int
load_aws_keys(struct aws_keys *keys, const char *file, struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct buf text;
	int rc;

	rc = secret_read(file, AWS_KEYS_FILE, &text, err);
	if (!rc && aws_keys_parse(keys, buf_slice(&text), &why))
		rc = slu_fail(err, why.code, "auth.aws_keys %s: %s", file, why.text);
	secret_free(&text);
	return rc;
}

static char *
copy(const char *text, struct slice *out, bool *failed)
{
	char *const p = text ? mem_strdup(text) : NULL;

	*failed |= text && !p;
	*out = p ? slice_of(p) : (struct slice){ 0 };
	return p;
}

static int
rules_new(struct rules **out, const struct auth_conf *conf, struct slu_err *err)
{
	struct rules *const r = mem_zalloc(sizeof *r);
	bool failed = false;
	int rc;

	if (!r)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	atomic_init(&r->refs, 1);
	r->keys = keyring_new();
	r->jwt.leeway = conf->leeway;
	r->jwt.max_age = conf->max_age;
	r->codeq = conf->codeq;
	r->audience = copy(conf->audience, &r->jwt.audience, &failed);
	r->issuer = copy(conf->issuer, &r->jwt.issuer, &failed);
	if (!r->keys || failed)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	else
		rc = load_keys(r->keys, conf, err);
	if (!rc && conf->aws_keys)
		rc = load_aws_keys(&r->aws, conf->aws_keys, err);
	if (rc)
		rules_unref(r);
	else
		*out = r;
	return rc;
}

int
auth_conf_check(const struct auth_conf *conf, struct slu_err *err)
{
	struct rules *r = NULL;
	const int rc = rules_new(&r, conf, err);

	rules_unref(r);
	return rc;
}

static struct rules *
rules_now(struct auth *a, uint64_t *generation)
{
	struct rules *r;

	pthread_mutex_lock(&a->mtx);
	r = a->rules;
	atomic_fetch_add(&r->refs, 1);
	*generation = atomic_load(&a->generation);
	pthread_mutex_unlock(&a->mtx);
	return r;
}

/* --- open, reload, close --------------------------------------------------------- */

int
auth_open(struct auth **out, const struct auth_conf *conf, unsigned threads,
	  struct clock *clock, struct slu_err *err)
{
	struct auth *const a = mem_zalloc(sizeof *a + threads * sizeof a->caches[0]);
	int rc = 0;

	if (!a)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	pthread_mutex_init(&a->mtx, NULL); /* cannot fail for want of anything */
	a->clock = clock;
	a->threads = threads;
	for (unsigned i = 0; i < threads && !rc; i++)
		rc = hash_key_init(&a->caches[i].key, err);
	a->signing = mem_array(threads, sizeof *a->signing);
	if (!rc && !a->signing)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc)
		rc = rules_new(&a->rules, conf, err);
	atomic_init(&a->on, auth_conf_has_keys(conf));
	if (rc)
		auth_close(a);
	else
		*out = a;
	return rc;
}

void
auth_close(struct auth *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->threads; i++)
		token_cache_flush(&a->caches[i]);
	if (a->signing)
		OPENSSL_cleanse(a->signing, a->threads * sizeof *a->signing);
	mem_free(a->signing);
	rules_unref(a->rules);
	rules_unref(a->next);
	pthread_mutex_destroy(&a->mtx);
	mem_free(a);
}

bool
auth_is_on(const struct auth *a)
{
	return atomic_load_explicit(&a->on, memory_order_relaxed);
}

int
auth_prepare(struct auth *a, const struct auth_conf *conf, struct slu_err *err)
{
	auth_abandon(a);
	if (auth_is_on(a) && !auth_conf_has_keys(conf))
		return slu_fail(err, SLU_EINVAL,
				"auth.keys, auth.jwks, auth.secret, auth.aws_keys: the last key is gone; restart "
				"to serve without tokens");
	return rules_new(&a->next, conf, err);
}

void
auth_commit(struct auth *a)
{
	struct rules *const old = a->rules;

	if (!a->next)
		return;
	pthread_mutex_lock(&a->mtx);
	a->rules = a->next;
	a->next = NULL;
	atomic_fetch_add(&a->generation, 1);
	atomic_store(&a->on, a->rules->keys->n > 0 || a->rules->aws.n > 0);
	pthread_mutex_unlock(&a->mtx);
	rules_unref(old);
}

void
auth_abandon(struct auth *a)
{
	rules_unref(a->next);
	a->next = NULL;
}

/* --- check ----------------------------------------------------------------------- */

/* Where tokens are codeQ's, codeq:admin is its scope, and no right in a namespace `codeq`. */
static void
drop_codeq_scopes(struct grants *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		if (!slice_eq(g->items[i].pattern, SLICE("codeq")) || g->items[i].rights != RIGHT_ADMIN)
			g->items[n++] = g->items[i];
	g->n = n;
}

static struct identity *
identity_of(const struct rules *r, struct jwt_claims *c)
{
	struct identity *id;

	if (r->codeq)
		drop_codeq_scopes(&c->grants);
	id = identity_new(c->sub, &c->grants);
	if (!id || !r->codeq)
		return id;
	id->codeq = codeq_identity_new(c->sub, &c->codeq);
	if (id->codeq)
		return id;
	identity_unref(id);
	return NULL;
}

/* *until: when it ends. */
static int
verify(const struct rules *r, struct slice token, slu_time now, struct identity **out,
       slu_time *until, enum refusal *why, struct slu_err *err)
{
	char room[JWT_ROOM];
	struct jwt_claims claims;
	struct jwt t;
	int rc;

	rc = jwt_split(&t, token, room, err);
	if (!rc)
		rc = keyring_verify(r->keys, &t, err);
	if (!rc)
		rc = jwt_claims(&claims, &t, err);
	*why = rc ? REFUSAL_BAD_TOKEN : jwt_judge(&claims, &r->jwt, now);
	if (!rc)
		rc = jwt_check(&claims, &r->jwt, now, err);
	if (rc)
		return rc;
	*until = time_add(claims.exp, r->jwt.leeway);
	*out = identity_of(r, &claims);
	return *out ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

int
auth_check(struct auth *a, unsigned thread, struct slice token, struct identity **out,
	   enum refusal *why, struct slu_err *err)
{
	struct token_cache *const cache = &a->caches[thread];
	const slu_time now = clock_wall(a->clock);
	struct rules *rules;
	uint64_t generation;
	slu_time until;
	int rc;

	assert(thread < a->threads);
	if (cache->generation == atomic_load(&a->generation)) {
		*out = token_cache_find(cache, token, now);
		if (*out)
			return 0;
	}
	rules = rules_now(a, &generation);
	if (cache->generation != generation)
		token_cache_flush(cache);
	cache->generation = generation;
	rc = verify(rules, token, now, out, &until, why, err);
	rules_unref(rules);
	if (!rc)
		token_cache_put(cache, token, *out, until);
	return rc;
}

/* --- signatures -------------------------------------------------------------------- */

/* The key that Authorization names. */
static int
find_key(const struct rules *r, struct slice authorization, struct sigv4 *s, const struct aws_key **key, struct slu_err *err)
{
	const int rc = sigv4_parse(s, authorization, err);

	if (rc)
		return rc;
	*key = aws_keys_find(&r->aws, s->key);
	return *key ? 0 : slu_fail(err, SLU_EAUTH, "The security token included in the request is invalid: no such access key.");
}

int
auth_knows_key(struct auth *a, struct slice authorization, struct slu_err *err)
{
	uint64_t generation;
	struct rules *const r = rules_now(a, &generation);
	const struct aws_key *key;
	struct sigv4 s;
	const int rc = find_key(r, authorization, &s, &key, err);

	rules_unref(r);
	return rc;
}

int
auth_check_signature(struct auth *a, unsigned thread, struct slice authorization, const struct sigv4_request *q,
		     struct identity **out, struct slu_err *err)
{
	uint64_t generation;
	struct rules *const r = rules_now(a, &generation);
	const struct aws_key *key;
	struct sigv4 s;
	int rc;

	assert(thread < a->threads);
	rc = find_key(r, authorization, &s, &key, err);
	if (!rc)
		rc = sigv4_check(&s, q, key->secret, generation, clock_wall(a->clock), &a->signing[thread], err);
	if (!rc)
		*out = identity_ref(key->who);
	rules_unref(r);
	return rc;
}
