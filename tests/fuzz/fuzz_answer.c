/*
 * fuzz_answer.c - any bytes, given to the client's parser of answers.
 *
 *  FUZZANSWER-1  However the bytes are cut, the parser says the same (ANSWER-4 of client/answer.h).
 *  FUZZANSWER-2  It never looks beyond a piece nor at it later: each has memory of its own.
 *  FUZZANSWER-3  No body is larger than was allowed, and what is left shows how much it read.
 */
#include "fuzz.h"

#include "client/answer.h"

enum {
	BODY_MAX = 4096
};

struct outcome {
	enum answer_event event;
	unsigned status, refused;
	bool keep_alive;
	size_t used;
	uint64_t body_sum;
};

static uint64_t
sum_of(struct slice s)
{
	uint64_t sum = s.n;

	for (size_t i = 0; i < s.n; i++)
		sum = sum * 1099511628211u + (unsigned char)s.p[i];
	return sum;
}

static struct outcome
read_in_steps(const uint8_t *data, size_t size, size_t step)
{
	struct outcome o = { .event = ANSWER_MORE };
	struct answer a;

	answer_init(&a, BODY_MAX);
	while (o.used < size && o.event == ANSWER_MORE) {
		const size_t n = size - o.used < step ? size - o.used : step;
		char *own = malloc(n);
		struct slice in = { own, n };

		FUZZ_CHECK(own);
		memcpy(own, data + o.used, n);
		o.event = answer_next(&a, &in);
		FUZZ_CHECK(in.n == 0 || o.event != ANSWER_MORE); /* FUZZANSWER-3 */
		o.used += n - in.n;
		free(own);
	}
	FUZZ_CHECK(a.body.n <= BODY_MAX);
	o.refused = a.refused;
	if (o.event == ANSWER_WHOLE) {
		o.status = a.status;
		o.keep_alive = a.keep_alive;
		o.body_sum = sum_of(buf_slice(&a.body));
	}
	if (o.event == ANSWER_REFUSED)
		o.used = 0; /* where in a line it stopped is of no interest */
	answer_release(&a);
	return o;
}

static void
check_same(const struct outcome *x, const struct outcome *y)
{
	FUZZ_CHECK(x->event == y->event && x->status == y->status);
	FUZZ_CHECK(x->refused == y->refused && x->keep_alive == y->keep_alive);
	FUZZ_CHECK(x->used == y->used && x->body_sum == y->body_sum);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 2, 3, 7, 64, 1000 };
	const struct outcome whole = read_in_steps(data, size, size);

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		const struct outcome cut = read_in_steps(data, size, steps[i]);

		check_same(&whole, &cut); /* FUZZANSWER-1 */
	}
	return 0;
}
