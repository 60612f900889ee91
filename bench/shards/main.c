#include "cli/lib/args.h"
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
	static const struct arg rows[] = {
		{ "--to", ARG_TEXT, AT(shardload, to), "host:port of a Redis" },
		{ "--delay", ARG_TIME, AT(shardload, delay), "proxy: the delay" },
		{ "--slow", ARG_FLAG, AT(shardload, slow), "proxy: one call at a time" },
		{ "--for", ARG_TIME, AT(shardload, duration), "how long" },
		{ "--batch", ARG_COUNT, AT(shardload, batch), "bare: messages in an op" },
		{ "--size", ARG_COUNT, AT(shardload, size), "bare: bytes of a payload" },
		{ "--ops", ARG_COUNT, AT(shardload, ops), "bare: ops in a pipeline" },
		{ "--rules", ARG_COUNT, AT(shardload, rules), "map: number of mappings" },
	};
	const int rc = args_parse(&argc, argv, rows, sizeof rows / sizeof rows[0], &o, err);

	if (rc)
		return rc;
	for (size_t i = 0; argc == 1 && i < sizeof parts / sizeof parts[0]; i++)
		if (strcmp(parts[i].name, argv[0]) == 0)
			return parts[i].run(&o, err);
	return slu_fail(err, SLU_EINVAL, "missing tool; expected proxy, bare or map");
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
