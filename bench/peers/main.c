/*
 * peerload - the same work for any of the peers, from one thread.
 *
 * Prints a JSON line for each phase. bench/peers/run starts the servers and runs it.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "cli/lib/args.h"
#include "peers/load.h"
#include "peers/usage.h"

#include <stdio.h>
#include <stdlib.h>

static const struct peer_protocol *const protocols[] = {
	&protocol_sluice,
	&protocol_sluice_packed,
	&protocol_beanstalkd,
	&protocol_sluice_beanstalk,
	&protocol_redis_list,
	&protocol_redis_stream,
	&protocol_nats,
	&protocol_rabbitmq,
	&protocol_postgresql,
};

struct options {
	const char *peer, *phases, *queue;
	uint64_t port, pid, clients, batch, size;
	slu_time duration;
	bool durable, keep, help;
};

static const struct peer_protocol *
find(const char *name)
{
	for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++)
		if (strcmp(protocols[i]->name, name) == 0)
			return protocols[i];
	return NULL;
}

static double
each_us(slu_time t, uint64_t messages)
{
	return messages > 0 ? (double)t / 1e3 / (double)messages : 0;
}

static void
print(const struct peer_load *l, const struct options *o, const struct usage *before,
      const struct usage *after, slu_time own)
{
	const double seconds = (double)l->elapsed / 1e9;
	const bool answered = !l->protocol->acks_unanswered || strcmp(l->phase->name, "ack") != 0;

	printf("{\"peer\":\"%s\",\"durable\":%s,\"size\":%u,\"clients\":%u,\"batch\":%u,"
	       "\"phase\":\"%s\",\"answered\":%s,\"messages\":%llu,\"seconds\":%.4f,"
	       "\"rate\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"server_cpu_us\":%.3f,"
	       "\"client_cpu_us\":%.3f,\"memory\":%llu}\n",
	       o->peer, o->durable ? "true" : "false", (unsigned)o->size, (unsigned)o->clients,
	       (unsigned)o->batch, l->phase->name, answered ? "true" : "false",
	       (unsigned long long)l->messages, seconds,
	       seconds > 0 ? (double)l->messages / seconds : 0,
	       (double)hist_percentile(&l->took, 0.5) / 1e3,
	       (double)hist_percentile(&l->took, 0.99) / 1e3,
	       each_us(after->cpu - before->cpu, l->messages), each_us(own, l->messages),
	       (unsigned long long)after->bytes);
	(void)fflush(stdout);
}

/* Runs a phase; "fill=1000" is a phase with a number. */
static int
run_phase(struct peer_load *l, const struct options *o, char *word, struct slu_err *err)
{
	char *count = strchr(word, '=');
	const struct phase *phase;
	struct usage before, after;
	slu_time own;
	int rc;

	if (count)
		*count++ = '\0';
	phase = phase_find(word);
	if (!phase)
		return slu_fail(err, SLU_EINVAL, "unknown phase: %s", word);
	l->wanted = count ? strtoull(count, NULL, 10) : 0;
	if (strcmp(word, "cycle") == 0) {
		rc = load_steps(l, l->protocol->consume, err);
		if (rc)
			return rc;
	}
	usage_of((pid_t)o->pid, &before);
	own = usage_own_cpu();
	l->until = bench_now() + (count ? 600 * SLU_SEC : o->duration);
	rc = load_phase(l, phase, err);
	own = usage_own_cpu() - own;
	usage_of((pid_t)o->pid, &after);
	if (!rc)
		print(l, o, &before, &after, own);
	return rc;
}

/* Removes or empties the queue, so that the next run begins like this one. */
static int
clean_up(struct peer_load *l, struct slu_err *err)
{
	if (l->protocol->bye)
		return load_steps(l, l->protocol->bye, err);
	l->until = bench_now() + 60 * SLU_SEC;
	return load_phase(l, phase_find("drain"), err);
}

static int
run(const struct options *o, struct slu_err *err)
{
	char *payload = mem_alloc(o->size), *phases = mem_strdup(o->phases), *state = NULL;
	const struct peer_work work = {
		.queue = o->queue,
		.batch = (unsigned)o->batch,
		.payload = { payload, o->size },
		.durable = o->durable,
	};
	struct peer_load *l = mem_zalloc(sizeof *l);
	int rc = 0;

	if (!payload || !phases || !l)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	for (size_t i = 0; i < o->size; i++)
		payload[i] = (char)('a' + i % 26);
	l->protocol = find(o->peer);
	l->work = &work;
	l->port = (unsigned)o->port;
	l->connections = (unsigned)o->clients;
	if (!l->protocol)
		rc = slu_fail(err, SLU_EINVAL, "unknown peer: %s", o->peer);
	if (!rc)
		rc = load_open(l, err);
	for (char *word = strtok_r(phases, ",", &state); word && !rc; word = strtok_r(NULL, ",", &state))
		rc = run_phase(l, o, word, err);
	if (!rc && !o->keep)
		rc = clean_up(l, err);
	load_close(l);
	mem_free(l);
	mem_free(phases);
	mem_free(payload);
	return rc;
}

int
main(int argc, char **argv)
{
	struct options o = {
		.peer = "sluice",
		.phases = "enqueue,lease,ack,cycle",
		.queue = "bench",
		.clients = 64,
		.batch = 1,
		.size = 300,
		.duration = SLU_SEC,
	};
	static const struct arg rows[] = {
		{ "--peer NAME", ARG_TEXT, AT(options, peer), "sluice, sluice-packed, sluice-beanstalk, beanstalkd, redis-list, redis-stream, nats, rabbitmq, postgresql" },
		{ "--port N", ARG_COUNT, AT(options, port), "port of the peer on 127.0.0.1" },
		{ "--pid N", ARG_COUNT, AT(options, pid), "process of the peer, to measure CPU time and memory" },
		{ "--queue NAME", ARG_TEXT, AT(options, queue), "an unused name; removed afterwards" },
		{ "--keep", ARG_FLAG, AT(options, keep), "leave the queue and its messages" },
		{ "--durable", ARG_FLAG, AT(options, durable), "a queue that survives the server" },
		{ "--clients N", ARG_COUNT, AT(options, clients), "connections" },
		{ "--batch N", ARG_COUNT, AT(options, batch), "messages in an operation" },
		{ "--size N", ARG_COUNT, AT(options, size), "bytes of a payload" },
		{ "--for TIME", ARG_TIME, AT(options, duration), "length of a phase" },
		{ "--phases LIST", ARG_TEXT, AT(options, phases), "list of enqueue, fill=N, lease, ack, cycle" },
		{ "--help", ARG_FLAG, AT(options, help), "print this" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err = { 0 };
	int rc;

	argc--;
	rc = args_parse(&argc, argv + 1, rows, n, &o, &err);
	if (!rc && o.help) {
		args_help(rows, n, stdout);
		return 0;
	}
	if (!rc && o.port == 0)
		rc = slu_fail(&err, SLU_EINVAL, "missing --port");
	if (!rc)
		rc = run(&o, &err);
	if (rc)
		fprintf(stderr, "peerload: %s\n", err.text);
	return rc ? 1 : 0;
}
