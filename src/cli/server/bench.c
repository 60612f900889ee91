/*
 * bench.c - `sluice bench`: the command and its options.
 */
#include "cli/server/bench_load.h"

#include "bench/backlog.h"

static bool
is(const struct bench_run *r, const char *name)
{
	return strcmp(r->name, name) == 0;
}

static const char *
misuse(const struct bench_run *r)
{
	if (r->connections > 20000 || r->batch > 1000 || r->size > 1 << 20)
		return "too large; expected at most 20000 connections, batches of 1000, 1048576 bytes";
	if (r->shares > 1000000 || r->keys > 1000000 || r->hosts > 1000000)
		return "too many names; expected at most 1000000 shares, keys and hosts";
	if (r->load.queue && strlen(r->load.queue) > SCENARIO_QUEUE)
		return "invalid --queue; expected at most 47 bytes";
	if (r->rounds > BENCH_ROUNDS_MAX)
		return "invalid --rounds; expected at most 15 rounds";
	if (is(r, "backlog") && r->served.server)
		return "backlog does not take --server: it kills the server, so it starts its own";
	if (is(r, "backlog") && r->load.messages <= r->rounds * BACKLOG_FEW)
		return "backlog needs more messages: more than 10000 for each round";
	if (r->load.fresh && (bench_is_aimed(r->name) || is(r, "latency") || is(r, "subscribe") || is(r, "watch")))
		return "--fresh works with enqueue, dequeue, cycle, lock and healthz only";
	if (r->served.pid && !r->served.server)
		return "--pid needs --server";
	if (r->served.server && (r->served.sync || r->served.engine))
		return "--sync and --engine do not go with --server: they are for a server that is started here";
	return NULL;
}

static void
each_name(void (*each)(void *arg, const char *name), void *arg)
{
	const char *names[BENCHES_MAX];
	const size_t n = bench_names(names);

	for (size_t i = 0; i < n; i++)
		each(arg, names[i]);
}

static int
check_name(const char *name, struct slu_err *err)
{
	const char *names[BENCHES_MAX];
	const size_t n = bench_names(names);
	const char *near;

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return 0;
	near = args_nearest(name, names, n);
	return slu_fail(err, SLU_EINVAL, "unknown bench: %.40s%s%s%s; see --help", name,
			near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int
run(struct session *s, struct slu_err *err)
{
	struct bench_run *const r = (void *)s;
	const char *wrong = check_name(r->s.words[0], err) ? err->text : NULL;

	r->name = r->s.words[0];
	if (!wrong)
		wrong = misuse(r);
	if (wrong)
		return session_usage(&r->s, "%s", wrong);
	if (is(r, "latency") || is(r, "watch"))
		r->connections = r->batch = 1;
	r->load.connections = (unsigned)r->connections;
	r->load.batch = (unsigned)r->batch;
	r->load.size = (unsigned)r->size;
	r->load.shares = (unsigned)r->shares;
	r->load.keys = (unsigned)r->keys;
	r->load.hosts = (unsigned)r->hosts;
	return bench_run(r, err);
}

const struct command cli_bench = {
	.name = "bench",
	.group = "Server",
	.summary = "measure a server, the executor or the priority queue",
	.usage = "BENCH [options]",
	.text = "exec and pqueue measure the library. The other benches start a server on a folder that\n"
		"they remove afterwards, or measure a running server with --server: their messages then\n"
		"stay in the namespace `bench`.\n",
	.examples = "  sluice bench exec\n"
		    "  sluice bench pqueue --items 1000000 --json\n"
		    "  sluice bench cycle --batch 100\n"
		    "  sluice bench enqueue --connections 64 --batch 1 --size 300\n"
		    "  sluice bench latency --sync interval=10ms\n"
		    "  sluice bench subscribe --connections 100 --size 1024\n"
		    "  sluice bench lock --connections 64\n"
		    "  sluice bench enqueue --fresh\n"
		    "  sluice bench cycle --server 127.0.0.1:7171 --pid $(pidof sluiced) --json\n"
		    "  sluice bench dequeue --batch 100 --shares 10000 --keys 100000\n"
		    "  sluice bench raw --dir /data\n"
		    "  sluice bench backlog --messages 10000000 --batch 100 --dir /data\n",
	.list = bench_list,
	.names = each_name,
	.options = CLI_JSON,
	CLI_ARGS({ "--connections", ARG_COUNT, AT(bench_run, connections), "number of connections, each with one open request (64); latency, watch: 1" },
		 { "--batch", ARG_COUNT, AT(bench_run, batch), "messages in a request, at most 1000 (1)" },
		 { "--size BYTES", ARG_COUNT, AT(bench_run, size), "size of a payload, at most 1048576 (300)" },
		 { "--queue NAME", ARG_TEXT, AT(bench_run, load.queue), "enqueue, cycle: the queue (a new one)" },
		 { "--shares", ARG_COUNT, AT(bench_run, shares), "enqueue, dequeue, cycle: so many shares, at most 1000000 (none)" },
		 { "--keys", ARG_COUNT, AT(bench_run, keys), "the same: so many ordering keys (none)" },
		 { "--hosts", ARG_COUNT, AT(bench_run, hosts), "the same: so many values of the attribute `host` (none)" },
		 { "--fresh", ARG_FLAG, AT(bench_run, load.fresh), "enqueue, dequeue, cycle, lock, healthz: a new connection for every request" },
		 { "--for", ARG_TIME, AT(bench_run, load.duration), "how long to measure (5s); raw: each part of a round; not used by dequeue and backlog" },
		 { "--messages", ARG_COUNT, AT(bench_run, load.messages), "dequeue, backlog: number of messages (200000); latency: at most" },
		 { "--rounds", ARG_COUNT, AT(bench_run, rounds), "exec, pqueue, raw, backlog: number of rounds, 1 to 15 (5)" },
		 { "--jobs", ARG_COUNT, AT(bench_run, jobs), "exec, pqueue: jobs in a round (2000000)" },
		 { "--items", ARG_COUNT, AT(bench_run, items), "pqueue: items in the queue (10000000)" },
		 { "-s, --server ADDRESS", ARG_TEXT, AT(bench_run, served.server), "measure this running server" },
		 { "--token-file FILE", ARG_TEXT, AT(bench_run, token_file), "file with the token (SLUICE_TOKEN, SLUICE_TOKEN_FILE)" },
		 { "--pid", ARG_COUNT, AT(bench_run, served.pid), "process of that server, to measure its CPU time" },
		 { "--dir DIR", ARG_TEXT, AT(bench_run, served.dir), "folder for the data of a started server (/var/tmp)" },
		 { "--sync sync|interval=TIME|none", ARG_TEXT, AT(bench_run, served.sync), "durability of a started server (sync)" },
		 { "--engine ENGINE", ARG_TEXT, AT(bench_run, served.engine), "engine of a started server (log)" },
		 { "--strict", ARG_FLAG, AT(bench_run, strict), "exec, pqueue, raw, backlog: exit 1 if an aim is missed" }),
	CLI_STATE(struct bench_run, .connections = 64, .batch = 1, .size = 300, .rounds = 5, .jobs = 2000000,
		  .items = 10000000, .file.fd = -1, .fsync = -1, .load.duration = 5 * SLU_SEC,
		  .load.messages = 200000, .served.dir = "/var/tmp"),
	.run = run,
};
