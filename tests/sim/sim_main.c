/*
 * sim_main.c - run schedules by hand, or many of them.
 *
 *      sim --seed N [--trace]          one, again: the same steps, bit for bit
 *      sim --seed N --shorten          how few steps of it still fail
 *      sim --from N --seeds COUNT --jobs J     many; says how many there were
 *      sim --moves ...                 in which queues move between shards
 *      sim --forgets ...               in which queues are deleted and forgotten
 *      sim --reopens ...               in which failed shards also reopen by themselves
 *      sim --moves --lates ...         in which batches stay open for a while
 *
 * What a failure prints can be given back: --steps, --cut, --bytes.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	JOBS_MAX = 64,
	SAY_EVERY = 100000
};

struct job {
	struct sim_conf conf;
	uint64_t seeds;
	unsigned jobs;
	bool shorten;
};

static int
usage(void)
{
	fputs("usage: sim [--moves] [--forgets] [--reopens] [--lates] --seed N [--trace] [--shorten] [--steps N] [--cut N] [--bytes N]\n"
	      "       sim [--moves] [--forgets] [--reopens] [--lates] [--from N] --seeds COUNT [--jobs J]\n",
	      stderr);
	return 2;
}

static bool
parse_number(struct job *j, const char *name, uint64_t n)
{
	if (!strcmp(name, "--seed") || !strcmp(name, "--from"))
		j->conf.seed = n;
	else if (!strcmp(name, "--seeds"))
		j->seeds = n;
	else if (!strcmp(name, "--jobs") && n > 0 && n <= JOBS_MAX)
		j->jobs = (unsigned)n;
	else if (!strcmp(name, "--steps"))
		j->conf.steps = (unsigned)n;
	else if (!strcmp(name, "--cut"))
		j->conf.cut = n;
	else if (!strcmp(name, "--bytes")) {
		j->conf.tear = SIM_TEAR_BYTE;
		j->conf.bytes = n;
	} else
		return false;
	return true;
}

static bool
parse(struct job *j, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *end;

		if (!strcmp(argv[i], "--trace"))
			j->conf.trace = true;
		else if (!strcmp(argv[i], "--moves"))
			j->conf.moves = true;
		else if (!strcmp(argv[i], "--forgets"))
			j->conf.forgets = true;
		else if (!strcmp(argv[i], "--reopens"))
			j->conf.reopens = true;
		else if (!strcmp(argv[i], "--lates"))
			j->conf.lates = true;
		else if (!strcmp(argv[i], "--shorten"))
			j->shorten = true;
		else if (i + 1 == argc || !parse_number(j, argv[i], strtoull(argv[i + 1], &end, 10)) ||
			 *end)
			return false;
		else
			i++;
	}
	return true;
}

/* True: it passed. In a child, since a failure ends the process. */
static bool
passes(const struct sim_conf *conf)
{
	struct sim_result result;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		sim_run(conf, &result);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int
shorten(struct sim_conf conf)
{
	struct sim_result result;

	if (passes(&conf)) {
		printf("seed %" PRIu64 " passes\n", conf.seed);
		return 0;
	}
	conf.steps = 1;
	while (passes(&conf))
		conf.steps++;
	conf.trace = true;
	sim_run(&conf, &result);
	return 1;
}

static int
run_one(const struct sim_conf *conf)
{
	struct sim_result r;

	sim_run(conf, &r);
	printf("seed %" PRIu64 " passes: %u steps, %lu ops, %lu claims, %lu settled, "
	       "%lu opens (%lu in place), %lu power cuts, %lu kills, %lu damages, %lu full disks, "
	       "%lu failing calls, %lu movers, %lu messages moved, %lu batches mended; "
	       "hash %016" PRIx64 "\n",
	       conf->seed, r.steps, r.ops, r.claims, r.settled, r.opens, r.reopens, r.cuts, r.kills,
	       r.damages, r.fulls, r.fails, r.movers, r.moved, r.mended, r.hash);
	return 0;
}

/* ---- Many ---- */

struct sum {
	_Atomic uint64_t seeds, ops, claims, opens, cuts, kills, damages, fulls, fails;
	_Atomic uint64_t movers, moved, mended, forgotten;
};

static void
add(struct sum *sum, const struct sim_result *r)
{
	sum->ops += r->ops;
	sum->claims += r->claims;
	sum->opens += r->opens;
	sum->cuts += r->cuts;
	sum->kills += r->kills;
	sum->damages += r->damages;
	sum->fulls += r->fulls;
	sum->fails += r->fails;
	sum->movers += r->movers;
	sum->moved += r->moved;
	sum->mended += r->mended;
	sum->forgotten += r->forgotten;
	if (++sum->seeds % SAY_EVERY == 0) {
		printf("%" PRIu64 " schedules\n", sum->seeds);
		fflush(stdout);
	}
}

static void
work(const struct job *j, unsigned which, struct sum *sum)
{
	struct sim_conf conf = j->conf;

	for (uint64_t i = which; i < j->seeds; i += j->jobs) {
		struct sim_result result;

		conf.seed = j->conf.seed + i;
		sim_run(&conf, &result);
		add(sum, &result);
	}
}

static int
run_many(const struct job *j)
{
	struct sum *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	int failed = 0, status;

	if (s == MAP_FAILED)
		return 2;
	for (unsigned i = 0; i < j->jobs; i++)
		if (fork() == 0) {
			work(j, i, s);
			exit(0);
		}
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%" PRIu64 " of %" PRIu64 " schedules%s from seed %" PRIu64 ": %" PRIu64
	       " ops, %" PRIu64 " messages handed out, %" PRIu64 " opens, %" PRIu64
	       " power cuts, %" PRIu64 " kills, %" PRIu64 " damages, %" PRIu64
	       " full disks, %" PRIu64 " times failing calls",
	       s->seeds, j->seeds, j->conf.moves ? " with moves" : "", j->conf.seed, s->ops,
	       s->claims, s->opens, s->cuts, s->kills, s->damages, s->fulls, s->fails);
	if (j->conf.moves)
		printf(", %" PRIu64 " movers, %" PRIu64 " messages moved, %" PRIu64
		       " batches mended",
		       s->movers, s->moved, s->mended);
	if (j->conf.forgets)
		printf(", %" PRIu64 " queues deleted", s->forgotten);
	printf("; %d failed\n", failed);
	return failed ? 1 : 0;
}

int
main(int argc, char **argv)
{
	struct job job = { .jobs = 1 };

	if (!parse(&job, argc, argv) || argc == 1)
		return usage();
	if (job.seeds)
		return run_many(&job);
	return job.shorten ? shorten(job.conf) : run_one(&job.conf);
}
