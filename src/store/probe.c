#include "store/probe.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>

#define PREFIX "probe/"

struct race {
	struct store *s;
	char name[STORE_NAME_MAX];

	pthread_mutex_t mtx;
	unsigned runners; /* that have begun */
	bool off;         /* the race does not take place */
	unsigned won;
	unsigned winner;          /* number of a put that won */
	enum store_result failed; /* STORE_OK: no put failed; a refusal counts more than a failure */
	struct slu_err err;       /* of that put */
};

static void
run_put(struct race *r, unsigned number)
{
	struct slu_err err = { 0 };
	char text[16];
	const int n = snprintf(text, sizeof text, "%u", number);
	const enum store_result got = store_put(r->s, r->name, (struct slice){ text, (size_t)n }, STORE_IF_ABSENT, &err);

	pthread_mutex_lock(&r->mtx);
	if (got == STORE_OK) {
		r->winner = number;
		r->won++;
	} else if (got != STORE_EXISTS && r->failed != STORE_REFUSED) {
		r->failed = got;
		r->err = err;
	}
	pthread_mutex_unlock(&r->mtx);
}

/* The starter holds mtx until all runners are there. */
static void *
runner(void *arg)
{
	struct race *const r = arg;

	pthread_mutex_lock(&r->mtx);
	const unsigned first = r->runners++ * PROBE_PUTS;
	const bool off = r->off;

	pthread_mutex_unlock(&r->mtx);
	for (unsigned i = 0; i < PROBE_PUTS && !off; i++)
		run_put(r, first + i);
	return NULL;
}

/* Whether the object is what the winner put. */
static enum store_result
check_winner(const struct race *r, struct slu_err *err)
{
	char text[16];
	struct buf got;

	snprintf(text, sizeof text, "%u", r->winner);
	buf_init(&got, 64);
	enum store_result result = store_get(r->s, r->name, 0, SIZE_MAX, &got, NULL, err);

	if (result == STORE_ABSENT || (result == STORE_OK && !slice_eq(buf_slice(&got), slice_of(text)))) {
		slu_fail(err, SLU_EINVAL, "an object was replaced or lost after its put had won");
		result = STORE_REFUSED;
	}
	buf_release(&got);
	return result;
}

static enum store_result
judge(const struct race *r, struct slu_err *err)
{
	if (r->won == 1)
		return check_winner(r, err);
	if (r->won == 0 && r->failed != STORE_OK) {
		*err = r->err;
		return r->failed;
	}
	slu_fail(err, SLU_EINVAL, "%u of %d puts of one absent name won; expected 1: the store does not keep conditions of puts", r->won,
		 PROBE_THREADS * PROBE_PUTS);
	return STORE_REFUSED;
}

static enum store_result
run_race(struct race *r, struct slu_err *err)
{
	pthread_t threads[PROBE_THREADS];
	unsigned n = 0;

	pthread_mutex_lock(&r->mtx);
	while (n < PROBE_THREADS && pthread_create(&threads[n], NULL, runner, r) == 0)
		n++;
	r->off = n < PROBE_THREADS;
	pthread_mutex_unlock(&r->mtx);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (!r->off)
		return judge(r, err);
	slu_fail(err, SLU_EDOWN, "cannot start a thread");
	return STORE_FAILED;
}

enum store_result
store_probe(struct store *s, struct slu_err *err)
{
	enum store_result result = STORE_OK;
	uint64_t random = 0;

	if (!s->ops->probed)
		return STORE_OK;
	if (getrandom(&random, sizeof random, 0) != sizeof random) {
		slu_fail(err, SLU_EDOWN, "cannot get random numbers");
		return STORE_FAILED;
	}
	for (unsigned i = 0; i < PROBE_RACES && result == STORE_OK; i++) {
		struct race r = { .s = s, .mtx = PTHREAD_MUTEX_INITIALIZER };
		struct slu_err ignored;

		snprintf(r.name, sizeof r.name, PREFIX "%016" PRIx64 ".%u", random, i);
		result = run_race(&r, err);
		(void)store_remove(s, r.name, &ignored); /* an object that stays does no harm */
	}
	return result;
}

enum store_result
store_first(struct store *s, char name[static STORE_NAME_MAX], struct slu_err *err)
{
	static const char *const after[] = { "", PREFIX "\177" }; /* behind all names of probes */
	struct store_names names = { 0 };
	enum store_result r = STORE_OK;

	for (unsigned i = 0; i < COUNT(after) && r == STORE_OK; i++) {
		r = store_list(s, "", after[i], 1, &names, err);
		snprintf(name, STORE_NAME_MAX, "%s", r == STORE_OK && names.n ? names.names[0] : "");
		if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
			break;
	}
	store_names_release(&names);
	return r;
}
