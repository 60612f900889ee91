#include "server/node.h"

#include <stdio.h>

static void
usage(FILE *out)
{
	fputs("sluiced: a durable queue for work\n\n"
	      "usage: sluiced [options]\n\n",
	      out);
	conf_help(out);
	fputs("\nEvery option has a variable: SLUICE_DATA for --data.\n\n"
	      "examples:\n"
	      "  sluiced\n"
	      "  sluiced --data /var/lib/sluice --listen 127.0.0.1:8080\n"
	      "  sluiced --listen 127.0.0.1:7171 --listen unix:/run/sluice.sock\n"
	      "  sluiced --engine memory --listen 127.0.0.1:0\n"
	      "  sluiced --sync interval=10ms --log-format json\n\n"
	      "docs/api.md says what it answers.\n",
	      out);
}

/* What was asked for instead of serving. */
static bool
tell(const struct conf *conf)
{
	if (conf->help)
		usage(stdout);
	else if (conf->version)
		puts("sluiced " SLUICE_VERSION);
	else if (conf->print_doc)
		conf_doc(stdout);
	else if (conf->print_config)
		conf_print(conf, stdout);
	else
		return false;
	return true;
}

static int
serve(const struct conf *conf, struct slu_err *err)
{
	struct slu_log *const log =
		slu_log_new(conf->log_level, conf->log_format, NULL, NULL);
	struct node *node = NULL;
	int rc;

	if (!log)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	node_signals();
	rc = node_open(&node, conf, log, err);
	if (!rc)
		node_run(node);
	node_close(node);
	slu_log_free(log);
	return rc;
}

int
main(int argc, char **argv)
{
	struct conf conf;
	struct slu_err err = { 0 };
	int rc;

	rc = conf_load(&conf, argc, argv, &err);
	if (rc) {
		fprintf(stderr, "sluiced: %s\n", err.text);
		conf_release(&conf);
		return 2;
	}
	if (!tell(&conf))
		rc = serve(&conf, &err);
	if (rc)
		fprintf(stderr, "sluiced: %s\n", *err.text ? err.text : slu_err_row(rc)->text);
	conf_release(&conf);
	return rc ? 1 : 0;
}
