/*
 * cli.h - the commands of `sluice`, one table row each (main.c has the table).
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/* What a command exits with. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOTHING = 3 /* no message, no such queue */
};

/* argv[0] is the command's own name. Returns an enum cli_exit. */
typedef int cli_fn(int argc, char **argv);

cli_fn cli_admin;
cli_fn cli_ack, cli_nack, cli_extend;
cli_fn cli_bench;
cli_fn cli_certs;
cli_fn cli_demo;
cli_fn cli_dlq;
cli_fn cli_peek, cli_stats, cli_topics;
cli_fn cli_pull;
cli_fn cli_push;
cli_fn cli_status;
cli_fn cli_token;
cli_fn cli_work;

#endif
