#include "cli/args.h"
#include "shards/shardload.h"

#include <string.h>

static const struct {
	const char *name;
	int (*run)(const struct shardload *o, struct slu_err *err);
} parts[] = {
	{ "proxy", shardload_proxy },
	{ "bare", shardload_bare },
	{ "map", shardload_map },
};

static int
run(int argc, char **argv, struct slu_err *err)
{
	struct shardload o = {
		.to = "127.0.0.1:6379",
		.delay = 5 * SLU_MS,
		.duration = 2 * SLU_SEC,
		.batch = 100,
		.size = 300,
		.ops = 16,
		.rules = 500,
	};
	const struct arg rows[] = {
		{ "--to", ARG_TEXT, &o.to, "host:port of a Redis" },
		{ "--delay", ARG_TIME, &o.delay, "proxy: how much later" },
		{ "--slow", ARG_FLAG, &o.slow, "proxy: each call takes so long, one after the other" },
		{ "--for", ARG_TIME, &o.duration, "how long" },
		{ "--batch", ARG_COUNT, &o.batch, "bare: messages of an op" },
		{ "--size", ARG_COUNT, &o.size, "bare: bytes of a payload" },
		{ "--ops", ARG_COUNT, &o.ops, "bare: ops of one pipeline" },
		{ "--rules", ARG_COUNT, &o.rules, "map: how many mappings" },
	};
	const int rc = args_parse(&argc, argv, rows, sizeof rows / sizeof rows[0], err);

	if (rc)
		return rc;
	for (size_t i = 0; argc == 1 && i < sizeof parts / sizeof parts[0]; i++)
		if (strcmp(parts[i].name, argv[0]) == 0)
			return parts[i].run(&o, err);
	return slu_fail(err, SLU_EINVAL, "expected one of proxy, bare, map");
}

int
main(int argc, char **argv)
{
	struct slu_err err = { 0 };

	if (run(argc - 1, argv + 1, &err) == 0)
		return 0;
	fprintf(stderr, "shardload: %s\n", err.text);
	return 1;
}
