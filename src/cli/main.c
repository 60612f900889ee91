#include "cli/args.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
	const char *name;
	cli_fn *run;
	const char *summary;
};

/* clang-format off */
static const struct command commands[] = {
	{ "push",   cli_push,   "put messages into a queue" },
	{ "pull",   cli_pull,   "take messages out of a queue" },
	{ "work",   cli_work,   "run a command for every message of a queue" },
	{ "ack",    cli_ack,    "a message is done" },
	{ "nack",   cli_nack,   "a message failed, or has to wait" },
	{ "extend", cli_extend, "keep the lease of a message" },
	{ "stats",  cli_stats,  "how many messages the queues have" },
	{ "topics", cli_topics, "which queues there are" },
	{ "peek",   cli_peek,   "look at messages without taking them" },
	{ "dlq",    cli_dlq,    "list, redrive or delete dead letters" },
	{ "status", cli_status, "which server this is, and how it is" },
	{ "token",  cli_token,  "make a token, or a key, for development" },
	{ "admin",  cli_admin,  "check or show the log of a shard" },
	{ "certs",  cli_certs,  "certificates to try TLS with" },
	{ "bench",  cli_bench,  "measure a server, the executor or the priority queue" },
	{ "demo",   cli_demo,   "watch keys run in parallel, each in its own order" },
};
/* clang-format on */

enum {
	N_COMMANDS = sizeof commands / sizeof commands[0]
};

static void
usage(FILE *out)
{
	fputs("sluice: a queue for work\n\n"
	      "usage: sluice COMMAND [options]\n\n",
	      out);
	for (int i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`sluice COMMAND --help` says more, with examples; `sluice --version`.\n", out);
}

static int
unknown(const char *word)
{
	const char *names[N_COMMANDS];
	const char *near;

	for (int i = 0; i < N_COMMANDS; i++)
		names[i] = commands[i].name;
	near = args_nearest(word, names, N_COMMANDS);
	fprintf(stderr, "sluice: no command %s", word);
	if (near)
		fprintf(stderr, "; did you mean %s?", near);
	fputs("\nsee `sluice --help`\n", stderr);
	return CLI_USAGE;
}

/* A file that gets number 0, 1 or 2 because that was closed would be taken for stdin,
 * stdout or stderr, by us and by what we run. */
static void
open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int
main(int argc, char **argv)
{
	open_standard_files();
	if (argc < 2) {
		usage(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return CLI_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("sluice " SLUICE_VERSION);
		return CLI_OK;
	}
	for (int i = 0; i < N_COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return unknown(argv[1]);
}
