#include "server/node.h"

#include <stdio.h>

static void
usage(FILE *out)
{
	fputs("sluiced: a durable queue for work\n\n"
	      "usage: sluiced [options]\n\n",
	      out);
	conf_help(out);
	fputs("\nEvery option has a variable, SLUICE_DATA for --data, and a key in the\n"
	      "file that --config names: docs/config.md.\n\n"
	      "examples:\n"
	      "  sluiced\n"
	      "  sluiced --data /var/lib/sluice --listen 127.0.0.1:8080\n"
	      "  sluiced --listen 127.0.0.1:7171 --listen unix:/run/sluice.sock\n"
	      "  sluiced --engine memory --listen 127.0.0.1:0\n"
	      "  sluiced --sync interval=10ms --log-format json\n"
	      "  sluiced --config /etc/sluice/sluice.yaml --check-config\n\n"
	      "docs/api.md says what it answers.\n",
	      out);
}

static void
print_json(const struct conf *conf)
{
	struct buf out;

	buf_init(&out, CONF_JSON_MAX);
	conf_json(conf, &out);
	puts(buf_str(&out));
	buf_release(&out);
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
	else if (conf->print_config && conf->json)
		print_json(conf);
	else if (conf->print_config)
		conf_print(conf, stdout);
	else if (conf->check_config)
		puts("sluiced: the settings are fine");
	else
		return false;
	return true;
}

static void
tell_faults(const struct conf_faults *faults)
{
	for (unsigned i = 0; i < faults->n; i++)
		fprintf(stderr, "sluiced: %s\n", faults->items[i]);
	if (faults->more)
		fprintf(stderr, "sluiced: and %u more\n", faults->more);
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
	struct conf_faults faults = { 0 };
	struct slu_err err = { 0 };
	int rc;

	rc = conf_load(&conf, argc, argv, &faults);
	if (rc) {
		tell_faults(&faults);
		faults_release(&faults);
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
