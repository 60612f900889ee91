/*
 * Locks, their documents, and changing one under its lock: against real servers.
 */
#include "served.h"

#include <sluice/panic.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct test_server srv;

static struct slu_client *
start(const char *engine)
{
	served_start(&srv, 1, engine);
	return served_client(&srv);
}

static struct slu_lease
acquire(struct slu_client *c, const char *key)
{
	struct slu_lease l;

	FINE(slu_lock_acquire(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = key, .ttl = 20 * SLU_SEC }, &l, NULL, &err));
	return l;
}

static void
put(struct slu_client *c, struct slu_lease *l, const char *text)
{
	FINE(slu_state_put(c, l, text, strlen(text), NULL, NULL, &err));
}

TEST(a_key_has_one_holder_and_tokens_rise)
{
	struct slu_client *c = start("memory");
	struct slu_lease one = acquire(c, "jobs/nightly"), two, seen;
	struct slu_err why;

	CHECK_STR("jobs/nightly", one.key);
	CHECK_STR("test", one.space);
	CHECK(one.id[0] && one.txn[0] && one.owner[0] && one.until > 0);
	CHECK_EQ(SLU_EBUSY, slu_lock_acquire(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = "jobs/nightly" }, &two, NULL, &why));
	CHECK(why.retry_after > 0);
	FINE(slu_lock_keep(c, &one, 25 * SLU_SEC, NULL, &err));
	FINE(slu_lock_describe(c, "jobs/nightly", &seen, NULL, &err));
	CHECK_STR(one.owner, seen.owner);
	FINE(slu_lock_release(c, &one, SLU_COMMIT, NULL, &err));
	two = acquire(c, "jobs/nightly");
	CHECK(two.token > one.token);
	CHECK(strcmp(one.owner, two.owner) != 0);
	CHECK_EQ(SLU_ELEASE, slu_lock_keep(c, &one, 0, NULL, NULL));
	FINE(slu_lock_release(c, &one, SLU_COMMIT, NULL, &err));
	FINE(slu_lock_keep(c, &two, 0, NULL, &err));
	CHECK_EQ(SLU_EEXISTS, slu_lock_acquire(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = "jobs/nightly", .if_absent = true, .wait = SLU_SEC },
					       &one, NULL, NULL));
	FINE(slu_lock_acquire(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .ttl = SLU_SEC }, &one, NULL, &err));
	CHECK(one.key[0]);
	slu_client_free(c);
}

TEST(others_see_a_change_when_it_is_committed)
{
	struct slu_client *c = start("memory");
	struct slu_lease l = acquire(c, "doc");
	struct slu_state s;

	FINE(slu_state_get(c, &l, &s, NULL, &err));
	CHECK(!s.text);
	put(c, &l, "{\"n\":1}");
	CHECK_EQ(1, l.version);
	FINE(slu_state_get(c, &l, &s, NULL, &err));
	CHECK_STR("{\"n\":1}", s.text);
	CHECK_STR(l.etag, s.etag);
	slu_free(s.text);
	FINE(slu_state_peek(c, "doc", &s, NULL, &err));
	CHECK(!s.text);
	FINE(slu_lock_release(c, &l, SLU_COMMIT, NULL, &err));
	FINE(slu_state_peek(c, "doc", &s, NULL, &err));
	CHECK_STR("{\"n\":1}", s.text);
	CHECK_EQ(1, s.version);
	slu_free(s.text);
	l = acquire(c, "doc");
	put(c, &l, "2");
	FINE(slu_lock_release(c, &l, SLU_ROLLBACK, NULL, &err));
	l = acquire(c, "doc");
	FINE(slu_state_remove(c, &l, NULL, NULL, &err));
	FINE(slu_state_get(c, &l, &s, NULL, &err));
	CHECK(!s.text);
	FINE(slu_lock_release(c, &l, SLU_COMMIT, NULL, &err));
	FINE(slu_state_peek(c, "doc", &s, NULL, &err));
	CHECK(!s.text);
	slu_client_free(c);
}

TEST(a_change_may_depend_on_what_was_there)
{
	struct slu_client *c = start("memory");
	struct slu_lease l = acquire(c, "doc");
	struct slu_state_if only = { SLU_OPTIONS_INIT(struct slu_state_if), .has_version = true, .version = 7 };

	put(c, &l, "1");
	CHECK_EQ(SLU_ECONFLICT, slu_state_put(c, &l, "2", 1, &only, NULL, NULL));
	only = (struct slu_state_if){ SLU_OPTIONS_INIT(struct slu_state_if), .etag = "nonsense" };
	CHECK_EQ(SLU_ECONFLICT, slu_state_remove(c, &l, &only, NULL, NULL));
	only.etag = l.etag;
	FINE(slu_state_put(c, &l, "2", 1, &only, NULL, &err));
	CHECK_EQ(SLU_EINVAL, slu_state_put(c, &l, "{", 1, NULL, NULL, NULL));
	slu_client_free(c);
}

/* Any path of the API, with a lease. */
TEST(a_lease_goes_along_with_any_call)
{
	struct slu_client *c = start("memory");
	struct slu_lease l = acquire(c, "doc");
	const struct slu_request r = {
		SLU_OPTIONS_INIT(struct slu_request),
		.method = "POST",
		.path = "/v1/update?namespace=test&key=doc",
		.body = "{\"a\":1}",
		.size = 7,
		.lease = &l,
	};
	struct slu_answer a;

	FINE(slu_client_call(c, &r, &a, NULL, &err));
	CHECK_CONTAINS("new_version", a.body);
	slu_free(a.body);
	slu_client_free(c);
}

/* --- change under a lock --------------------------------------------------------- */

static int
add_one(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg, struct slu_err *err)
{
	char text[32];
	const int n = snprintf(text, sizeof text, "%d", s->text ? atoi(s->text) + 1 : 1);

	(void)arg;
	return slu_state_put(c, l, text, (size_t)n, NULL, NULL, err);
}

static void *
add_many(void *arg)
{
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "count", .wait = SLU_NEVER };

	for (int i = 0; i < 10; i++)
		FINE(slu_lock_update(arg, &what, add_one, NULL, NULL, &err));
	return NULL;
}

static void
check_count(struct slu_client *c, const char *want)
{
	struct slu_state s;

	FINE(slu_state_peek(c, "count", &s, NULL, &err));
	CHECK_STR(want, s.text ? s.text : "none");
	slu_free(s.text);
}

TEST(updates_of_many_threads_are_one_after_the_other)
{
	struct slu_client *c = start("memory");
	pthread_t threads[4];

	EACH(i, threads)
		CHECK(pthread_create(&threads[i], NULL, add_many, c) == 0);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	check_count(c, "40");
	slu_client_free(c);
}

static int
add_and_fail(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg, struct slu_err *err)
{
	const int rc = add_one(c, l, s, arg, err);

	if (arg)
		slu_panic("enough of this");
	return rc ? rc : slu_fail(err, SLU_EFAILED, "not today");
}

TEST(an_update_that_fails_or_panics_changes_nothing)
{
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "count", .wait = SLU_SEC };
	struct slu_client *c = start("memory");
	struct slu_err why;

	FINE(slu_lock_update(c, &what, add_one, NULL, NULL, &err));
	CHECK_EQ(SLU_EFAILED, slu_lock_update(c, &what, add_and_fail, NULL, NULL, &why));
	CHECK_STR("not today", why.text);
	CHECK_EQ(SLU_EPANIC, slu_lock_update(c, &what, add_and_fail, c, NULL, &why));
	CHECK_CONTAINS("enough of this", why.text);
	FINE(slu_lock_update(c, &what, add_one, NULL, NULL, &err)); /* free at once */
	check_count(c, "2");
	slu_client_free(c);
}

static int
add_slowly(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg, struct slu_err *why)
{
	struct slu_lease seen;
	const slu_time first = l->until;

	(void)arg;
	do
		FINE(slu_lock_describe(c, "count", &seen, NULL, &err));
	while (seen.until <= first + 2 * SLU_SEC); /* longer than the lease was */
	return add_one(c, l, s, arg, why);
}

TEST(the_lease_is_kept_alive_while_the_function_runs)
{
	struct slu_client *c = start("memory");

	FINE(slu_lock_update(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = "count", .ttl = 2 * SLU_SEC }, add_slowly, NULL, NULL, &err));
	check_count(c, "1");
	slu_client_free(c);
}

static int
lose_the_lease(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg, struct slu_err *why)
{
	const int rc = add_one(c, l, s, arg, why);

	FINE(slu_lock_release(c, l, SLU_ROLLBACK, NULL, &err)); /* as if its time had come */
	FINE(slu_lock_update(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = "count", .wait = SLU_NEVER }, add_one, NULL, NULL, &err));
	return rc;
}

TEST(an_update_whose_lease_was_lost_says_so)
{
	struct slu_client *c = start("memory");

	CHECK_EQ(SLU_ELEASE, slu_lock_update(c, &(struct slu_acquire){ SLU_OPTIONS_INIT(struct slu_acquire), .key = "count" }, lose_the_lease, NULL, NULL, NULL));
	check_count(c, "1");
	slu_client_free(c);
}

static int
restart_and_add(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg, struct slu_err *err)
{
	served_kill(&srv);
	served_again(&srv);
	return add_one(c, l, s, arg, err);
}

TEST(a_server_killed_during_an_update_loses_nothing)
{
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "count" };
	struct slu_client *c = start("log");

	FINE(slu_lock_update(c, &what, add_one, NULL, NULL, &err));
	FINE(slu_lock_update(c, &what, restart_and_add, NULL, NULL, &err));
	served_kill(&srv);
	served_again(&srv);
	check_count(c, "2");
	slu_client_free(c);
}

/* --- JSON into a struct ---------------------------------------------------------- */

struct order {
	char customer[8];
	int64_t amount;
	double rate;
	bool urgent;
	char items[16];
};

static const struct slu_json_field order_fields[] = {
	SLU_JSON_FIELD(struct order, customer, SLU_JSON_TEXT),
	SLU_JSON_FIELD(struct order, amount, SLU_JSON_INT),
	SLU_JSON_FIELD(struct order, rate, SLU_JSON_NUMBER),
	SLU_JSON_FIELD(struct order, urgent, SLU_JSON_BOOL),
	SLU_JSON_FIELD(struct order, items, SLU_JSON_RAW),
};

static int
decode(const char *text, struct order *o, struct slu_err *err)
{
	*o = (struct order){ .amount = -1 };
	return slu_json_decode(text, strlen(text), order_fields, COUNT(order_fields), o, err);
}

TEST(json_goes_into_a_struct)
{
	struct slu_err why;
	struct order o;

	FINE(decode("{\"customer\":\"\\u0041nna\",\"amount\":12,\"rate\":0.5,\"urgent\":true,\"items\":[1, 2],\"x\":{}}", &o, &err));
	CHECK_STR("Anna", o.customer);
	CHECK_EQ(12, o.amount);
	CHECK(o.rate == 0.5 && o.urgent);
	CHECK_STR("[1, 2]", o.items);
	FINE(decode("{}", &o, &err));
	CHECK_EQ(-1, o.amount);
	CHECK_EQ(SLU_EINVAL, decode("{\"customer\":\"12345678\"}", &o, &why));
	CHECK_CONTAINS("customer", why.text);
	CHECK_EQ(SLU_EINVAL, decode("{\"amount\":1.5}", &o, &why));
	CHECK_EQ(SLU_EINVAL, decode("{\"items\":[1,2,3,4,5,6,7,8]}", &o, &why));
	CHECK_EQ(SLU_EINVAL, decode("{\"amount\":1", &o, &why));
	CHECK_EQ(SLU_EINVAL, decode("[]", &o, &why));
}
