/*
 * supplier_contract.h - what every supplier must do: SUPPLIER-1 to SUPPLIER-5 of core/supplier.h.
 *
 * For the suppliers that come with Sluice, and for anybody's own:
 *
 *         static int
 *         make(struct supplier **out, struct slu_err *err)
 *         {
 *                 return my_supplier_new(out, ..., err);
 *         }
 *
 *         TEST(my_supplier_keeps_the_contract)
 *         {
 *                 supplier_contract(make);
 *         }
 *
 * make is called several times and must make the same supplier each time.
 */
#ifndef TESTS_SUPPLIER_CONTRACT_H
#define TESTS_SUPPLIER_CONTRACT_H

#include "test.h"

#include "core/supplier.h"

#include <pthread.h>
#include <stdio.h>

typedef int supplier_maker(struct supplier **out, struct slu_err *err);

enum {
	CONTRACT_SPACES = 20,
	CONTRACT_QUEUES = 50,
	CONTRACT_NAMES = CONTRACT_SPACES * CONTRACT_QUEUES,
	CONTRACT_THREADS = 4
};

/* What a supplier says of many names: "" where it refuses. */
struct contract_answers {
	const struct supplier *supplier;
	char current[CONTRACT_NAMES][80];
};

static inline void
contract_ask(const struct supplier *s, unsigned i, char *out, size_t size)
{
	char space[32], queue[32];
	struct supplied one = { 0 }, all[SUPPLIED_MAX];
	struct slu_err err = { 0 };
	unsigned n = 0;
	int rc;

	(void)snprintf(space, sizeof space, "tenant-%u", i / CONTRACT_QUEUES);
	(void)snprintf(queue, sizeof queue, "%c-queue.%u", 'a' + (int)(i % 26), i);
	rc = s->ops->current(s, slice_of(space), slice_of(queue), &one, &err);
	if (rc) { /* SUPPLIER-4 */
		CHECK(err.code == (enum slu_code)rc && *err.text);
		*out = '\0';
		return;
	}
	CHECK(one.shard && *one.shard && one.rule && *one.rule);
	CHECK_EQ(0, s->ops->all(s, slice_of(space), slice_of(queue), all, &n, &err));
	CHECK(n <= SUPPLIED_MAX);
	if (n > 0)
		CHECK_STR(one.shard, all[0].shard); /* SUPPLIER-3 */
	for (unsigned j = 0; j < n; j++)
		for (unsigned k = 0; k < j; k++)
			CHECK(strcmp(all[j].shard, all[k].shard) != 0);
	(void)snprintf(out, size, "%s", one.shard);
}

static inline void *
contract_ask_all(void *arg)
{
	struct contract_answers *a = arg;

	for (unsigned i = 0; i < CONTRACT_NAMES; i++)
		contract_ask(a->supplier, i, a->current[i], sizeof a->current[i]);
	return NULL;
}

static inline void
contract_compare(const struct contract_answers *a, const struct contract_answers *b)
{
	for (unsigned i = 0; i < CONTRACT_NAMES; i++)
		CHECK_STR(a->current[i], b->current[i]);
}

/* SUPPLIER-2: many threads at once hear what one heard alone. */
static inline void
contract_threads(const struct supplier *s, const struct contract_answers *want)
{
	static struct contract_answers got[CONTRACT_THREADS];
	pthread_t threads[CONTRACT_THREADS];

	for (int i = 0; i < CONTRACT_THREADS; i++) {
		got[i].supplier = s;
		CHECK_EQ(0, pthread_create(&threads[i], NULL, contract_ask_all, &got[i]));
	}
	for (int i = 0; i < CONTRACT_THREADS; i++) {
		CHECK_EQ(0, pthread_join(threads[i], NULL));
		contract_compare(want, &got[i]);
	}
}

static inline void
supplier_contract(supplier_maker *make)
{
	static struct contract_answers one, two;
	struct supplier *a = NULL, *b = NULL;
	struct slu_err err;
	struct buf x, y;

	CHECK_EQ(0, make(&a, &err));
	CHECK_EQ(0, make(&b, &err));
	one.supplier = a;
	two.supplier = b;
	(void)contract_ask_all(&one);
	(void)contract_ask_all(&two);
	contract_compare(&one, &two); /* SUPPLIER-1: another node */
	contract_threads(a, &one);
	contract_threads(a, &one); /* SUPPLIER-1: later */
	buf_init(&x, 1 << 20);
	buf_init(&y, 1 << 20);
	a->ops->describe(a, &x);
	b->ops->describe(b, &y);
	CHECK(x.n > 0 && !x.failed);
	CHECK_STR(buf_str(&x), buf_str(&y)); /* SUPPLIER-5 */
	buf_release(&x);
	buf_release(&y);
	supplier_free(a);
	supplier_free(b);
}

#endif
