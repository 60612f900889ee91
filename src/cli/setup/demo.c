/*
 * demo.c - `sluice demo`: shows an executor at work. It ships the orders of eight customers: in order
 * for each customer, all customers in parallel. Sometimes a shipment fails; then its customer waits
 * for the retry, and the others continue.
 */
#include "cli/lib/session.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sluice/executor.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
	CUSTOMERS = 8,
	AHEAD = 8, /* queued orders of a customer */
	FRAME_MS = 100
};

/* The customer's worker writes it, the screen reads it. */
struct customer {
	const char *name;
	uint32_t shard;
	uint32_t submitted;       /* used by the main thread only */
	_Atomic uint32_t order;   /* the order that is being shipped or waits for its retry */
	_Atomic uint32_t attempt; /* the attempt of that order; 0 = no order */
	_Atomic bool failed;      /* the last attempt failed, a retry follows */
	_Atomic uint32_t shipped; /* the last order that was shipped */
	_Atomic uint32_t retries;
	_Atomic uint32_t disorder; /* orders out of order; 0 unless the executor is broken */
};

struct order {
	struct customer *customer;
	uint32_t number;
};

struct demo {
	struct slu_executor *ex;
	struct customer customers[CUSTOMERS];
	slu_time begin;
	bool colours;
};

static volatile sig_atomic_t interrupted;

static void
interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* --- the work --------------------------------------------------------------- */

static int
ship(struct slu_run *run, void *arg)
{
	const struct order *o = arg;
	struct customer *c = o->customer;
	const uint64_t dice = (run->id + run->attempt) * 0x9e3779b97f4a7c15u >> 40;

	if (o->number != atomic_load(&c->shipped) + 1)
		atomic_fetch_add(&c->disorder, 1);
	atomic_store(&c->order, o->number);
	atomic_store(&c->failed, false);
	atomic_store(&c->attempt, run->attempt);
	sleep_ms(15 + (long)(dice % 50));
	if (dice % 8 != 0)
		return 0;
	atomic_store(&c->failed, true);
	atomic_fetch_add(&c->retries, 1);
	return slu_fail(&run->err, SLU_EDOWN, "no carrier for %s", run->key);
}

static void
shipped(const struct slu_run *run, void *arg, int rc)
{
	struct order *o = arg;

	(void)run;
	(void)rc;
	atomic_store(&o->customer->attempt, 0);
	atomic_store(&o->customer->failed, false);
	atomic_store(&o->customer->shipped, o->number);
	mem_free(o);
}

/* Fills the queue of every customer, without waiting for room. */
static void
place_orders(struct demo *d)
{
	const struct slu_submit now = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NOWAIT };

	for (int i = 0; i < CUSTOMERS; i++) {
		struct customer *c = &d->customers[i];

		while (c->submitted - atomic_load(&c->shipped) < AHEAD) {
			struct order *o = mem_alloc(sizeof *o);
			const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), ship, o, shipped };

			if (!o)
				return;
			*o = (struct order){ c, c->submitted + 1 };
			if (slu_executor_submit(d->ex, c->name, &task, &now, NULL, NULL)) {
				mem_free(o);
				break;
			}
			c->submitted++;
		}
	}
}

/* --- the screen ---------------------------------------------------------------- */

static void
show_customer(const struct demo *d, struct customer *c)
{
	const uint32_t done = atomic_load(&c->shipped);
	const unsigned attempt = atomic_load(&c->attempt);
	const bool failed = atomic_load(&c->failed);
	const char *colour = failed ? "\033[33m" : attempt ? "\033[32m"
							   : "";

	printf("  %-6s %5u  ", c->name, c->shard);
	for (uint32_t n = done > 5 ? done - 4 : 1; n <= done; n++)
		printf("%u ", n);
	printf("%s", d->colours ? colour : "");
	if (failed)
		printf("[%u failed, waits for retry %u]", atomic_load(&c->order), attempt);
	else if (attempt)
		printf("[%u%s]", atomic_load(&c->order), attempt > 1 ? " again" : "");
	printf("%s\033[K\n", d->colours ? "\033[0m" : "");
}

static void
show_counters(struct demo *d)
{
	const slu_time t = clock_mono(&clock_system) - d->begin;
	struct slu_executor_stats s;
	uint32_t disorder = 0;

	slu_executor_snapshot(d->ex, SLU_ALL_SHARDS, &s);
	for (int i = 0; i < CUSTOMERS; i++)
		disorder += atomic_load(&d->customers[i].disorder);
	printf("%5.1f s  shipped %llu  attempts %llu  running %u  queued %u  waiting %u  "
	       "out of order %u",
	       (double)t / 1e9, (unsigned long long)s.finished, (unsigned long long)s.runs,
	       s.running, s.queued, s.waiting, disorder);
}

static void
show(struct demo *d)
{
	if (!d->colours) {
		show_counters(d);
		putchar('\n');
		return;
	}
	printf("\033[H\033[1mOrders of a customer in order, customers in parallel\033[0m "
	       "(Ctrl-C ends it)\033[K\n\033[K\n"
	       "  %-6s %5s  %s\033[K\n",
	       "key", "shard", "last shipped, in order [now]");
	for (int i = 0; i < CUSTOMERS; i++)
		show_customer(d, &d->customers[i]);
	printf("\033[K\n");
	show_counters(d);
	printf("\033[K\n");
	fflush(stdout);
}

static void
watch(struct demo *d, slu_time seconds)
{
	const int frames = d->colours ? 1 : 10; /* without a terminal one line per second */

	if (d->colours)
		printf("\033[2J");
	for (int frame = 0; !interrupted; frame++) {
		place_orders(d);
		if (frame % frames == 0)
			show(d);
		sleep_ms(FRAME_MS);
		if (clock_mono(&clock_system) - d->begin >= seconds)
			break;
	}
}

/* --- the command ------------------------------------------------------------------ */

struct demo_command {
	struct session s;
	slu_time duration;
};

static int
finish(struct demo *d)
{
	struct slu_executor_stats s;
	uint32_t disorder = 0;

	puts("\nstopping: queued orders are still shipped, in order");
	slu_executor_stop(d->ex, 0);
	slu_executor_snapshot(d->ex, SLU_ALL_SHARDS, &s);
	for (int i = 0; i < CUSTOMERS; i++)
		disorder += atomic_load(&d->customers[i].disorder);
	printf("accepted %llu, finished %llu (%llu failed at the end), "
	       "%llu attempts, out of order %u\n",
	       (unsigned long long)s.submitted, (unsigned long long)s.finished,
	       (unsigned long long)s.failed, (unsigned long long)s.runs, disorder);
	slu_executor_close(d->ex);
	return disorder || s.submitted != s.finished ? CLI_FAILED : CLI_OK;
}

static int
run(struct session *s, struct slu_err *err)
{
	static const char *const names[CUSTOMERS] = {
		"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"
	};
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.base_backoff = 500 * SLU_MS,
		.max_interval = 2 * SLU_SEC,
	};
	struct demo_command *const w = (void *)s;
	struct demo d = { .colours = isatty(STDOUT_FILENO) };
	const int rc = slu_executor_start(&d.ex, &config, err);

	if (rc)
		return rc;
	for (int i = 0; i < CUSTOMERS; i++) {
		d.customers[i].name = names[i];
		d.customers[i].shard = slu_executor_shard_of(d.ex, names[i]);
	}
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	d.begin = clock_mono(&clock_system);
	watch(&d, w->duration);
	w->s.exit = finish(&d);
	return 0;
}

const struct command cli_demo = {
	.name = "demo",
	.group = "Help",
	.summary = "watch keys run in parallel, each in its own order",
	.usage = "[options]",
	.text = "Shows eight keys on four shards: keys run in parallel, the jobs of a key in order. A\n"
		"key whose job failed waits for the retry while the others continue.\n",
	.examples = "  sluice demo\n  sluice demo --for 1m\n",
	CLI_ARGS({ "--for", ARG_TIME, AT(demo_command, duration), "how long to run (15s)" }),
	CLI_STATE(struct demo_command, .duration = 15 * SLU_SEC),
	.run = run,
};
