#include "api/ratelimit.h"

#include "base/limit.h"
#include "core/bucket.h"
#include "engine/op.h"

#include <inttypes.h>

int
ratelimit_init(struct ratelimit *g, struct slu_err *err)
{
	memset((void *)g, 0, sizeof *g);
	return hash_key_init(&g->secret, err);
}

/* --- buckets ------------------------------------------------------------------ */

/* The slot of a name, made if there is room: RATELIMIT-1, RATELIMIT-2. */
static struct ratelimit_slot *
find_slot(struct ratelimit *g, struct slice space, slu_time now)
{
	const uint64_t name = hash_keyed(&g->secret, space.p, space.n) | 1;
	const uint64_t step = name >> 32 | 1; /* spreads names with the same first slot */
	struct ratelimit_slot *idle = NULL;
	uint64_t was = 0;

	for (unsigned i = 0; i < RATELIMIT_PROBES; i++) {
		struct ratelimit_slot *const s = &g->slots[((name >> 1) + i * step) % RATELIMIT_SLOTS];
		const uint64_t has = atomic_load_explicit(&s->name, memory_order_relaxed);

		if (has == name)
			return s;
		if (!idle && (!has || atomic_load_explicit(&s->full, memory_order_relaxed) <= now)) {
			idle = s;
			was = has;
		}
		if (!has)
			break;
	}
	if (idle && (atomic_compare_exchange_strong(&idle->name, &was, name) || was == name))
		return idle;
	return &g->other;
}

static slu_time
take(struct ratelimit_slot *s, const struct bucket_rule *rule, uint32_t n, slu_time now)
{
	slu_time full = atomic_load_explicit(&s->full, memory_order_relaxed);
	slu_time wait;

	do {
		wait = bucket_wait(rule, full, n, now);
	} while (!wait && !atomic_compare_exchange_weak(&s->full, &full,
							bucket_take(rule, full, n, now)));
	return wait;
}

/* Returns n tokens, because a later part of the call was refused. */
static void
give_back(struct ratelimit_slot *s, const struct bucket_rule *rule, uint32_t n)
{
	atomic_fetch_sub(&s->full, bucket_take(rule, 0, n, 0));
}

static struct bucket_rule
rule_of(const struct ratelimit *g)
{
	return (struct bucket_rule){
		.rate = atomic_load_explicit(&g->rate, memory_order_relaxed),
		.burst = atomic_load_explicit(&g->burst, memory_order_relaxed),
	};
}

int
ratelimit_take(struct ratelimit *g, struct slice space, uint32_t n, slu_time now, struct slu_err *err)
{
	const struct bucket_rule rule = rule_of(g);
	slu_time wait;

	if (!rule.rate)
		return 0;
	wait = take(find_slot(g, space, now), &rule, n, now);
	if (!wait)
		return 0;
	return limit_fail(err, SLU_EBUSY, LIMIT_RATE, wait,
			  "namespace %.*s: more than %u messages per second", (int)space.n,
			  space.p, rule.rate);
}

/* --- calls -------------------------------------------------------------------- */

static struct slice
space_of(const struct op *op, uint32_t put)
{
	return op->puts[put].m.space.n ? op->puts[put].m.space : op->space;
}

/* The end of the run of puts from i on that have the same namespace. */
static uint32_t
run_end(const struct op *op, uint32_t i)
{
	uint32_t end = i + 1;

	while (end < op->n_puts && slice_eq(space_of(op, end), space_of(op, i)))
		end++;
	return end;
}

/* Take back what ops before the last, and runs of the last before its failed one, have
 * been charged. */
static void
undo_rates(struct ratelimit *g, const struct op *ops, const struct op *last, slu_time now)
{
	const struct bucket_rule rule = rule_of(g);

	for (const struct op *op = ops; rule.rate && op <= last; op++)
		for (uint32_t i = 0; i < op->n_puts; i = run_end(op, i)) {
			if (op == last && i == op->failed)
				return;
			give_back(find_slot(g, space_of(op, i), now), &rule, run_end(op, i) - i);
		}
}

static int
take_rates(struct ratelimit *g, struct op *op, slu_time now, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc; i = run_end(op, i)) {
		op->failed = i;
		rc = ratelimit_take(g, space_of(op, i), run_end(op, i) - i, now, err);
	}
	return rc;
}

static int
check_payloads(const struct ratelimit *g, struct op *op, struct slu_err *err)
{
	const uint64_t most = atomic_load_explicit(&g->payload, memory_order_relaxed);

	for (uint32_t i = 0; most && i < op->n_puts; i++) {
		const uint64_t n = op->puts[i].m.payload_size;

		op->failed = i;
		if (n > most)
			return limit_fail(err, SLU_ETOOBIG, LIMIT_PAYLOAD, 0,
					  "a payload of %" PRIu64 " bytes: at most %" PRIu64, n,
					  most);
	}
	return 0;
}

static bool
brings_messages(const struct op *op)
{
	return op->verb == OP_ENQUEUE || op->verb == OP_FINISH;
}

/* A FINISH may be behind an ACK. */
static bool
any_brings(const struct op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (brings_messages(&ops[i]))
			return true;
	return false;
}

static int
check_batch(const struct ratelimit *g, const struct op *ops, unsigned n, struct slu_err *err)
{
	const uint32_t most = atomic_load_explicit(&g->batch, memory_order_relaxed);
	uint64_t puts = 0;

	for (unsigned i = 0; i < n; i++)
		puts += brings_messages(&ops[i]) ? ops[i].n_puts : 0;
	if (!most || puts <= most)
		return 0;
	return limit_fail(err, SLU_ETOOBIG, LIMIT_BATCH, 0, "%" PRIu64 " messages: at most %u a call",
			  puts, most);
}

int
ratelimit_pass(struct ratelimit *g, struct op *ops, unsigned n, slu_time now, struct op **failed,
	       struct slu_err *err)
{
	const bool rated = rule_of(g).rate > 0;
	int rc;

	*failed = NULL;
	if (!any_brings(ops, n))
		return 0;
	rc = check_batch(g, ops, n, err);
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = check_payloads(g, &ops[i], err);
		*failed = rc ? &ops[i] : NULL;
	}
	for (unsigned i = 0; rated && i < n && !rc; i++) {
		rc = take_rates(g, &ops[i], now, err);
		*failed = rc ? &ops[i] : NULL;
		if (rc)
			undo_rates(g, ops, &ops[i], now);
	}
	return rc;
}
