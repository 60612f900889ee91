#include "server/node.h"

#include "base/log.h"

#include <stdio.h>

/* How it ended; 128 and more: by a signal, at once. */
enum {
	EXIT_FAILED = 1,   /* it could not start */
	EXIT_SETTINGS = 2, /* what it was told is wrong */
};

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
	else
		return false;
	return true;
}

/* The exit code. */
static int
tell_faults(const struct conf_faults *faults)
{
	for (unsigned i = 0; i < faults->n; i++)
		fprintf(stderr, "sluiced: %s\n", faults->items[i]);
	if (faults->more)
		fprintf(stderr, "sluiced: and %u more\n", faults->more);
	return EXIT_SETTINGS;
}

static int
fail(int rc, const struct slu_err *err)
{
	fprintf(stderr, "sluiced: %s\n", *err->text ? err->text : slu_err_row(rc)->text);
	return rc == SLU_EINVAL ? EXIT_SETTINGS : EXIT_FAILED;
}

/* The exit code. */
static int
check(const struct conf *conf)
{
	struct slu_err err = { 0 };
	const int rc = node_check(conf, &err);

	if (rc) {
		(void)fail(rc, &err);
		return EXIT_SETTINGS; /* whatever the code */
	}
	puts("sluiced: the settings are fine");
	return 0;
}

/* The exit code. */
static int
serve(struct conf *conf, int argc, char **argv)
{
	struct slu_log *const log =
		slu_log_new(conf->log_level, conf->log_format, NULL, NULL);
	struct reload *reload = NULL;
	struct node *node = NULL;
	struct slu_err err = { 0 };
	int code = 0, rc;

	if (!log)
		return fail(SLU_ENOMEM, &err);
	node_signals();
	rc = reload_open(&reload, conf, argc, argv, node_check, log, &err);
	if (!rc)
		rc = node_open(&node, conf, reload, log, NULL, &err);
	if (rc == SLU_ECANCELED)
		log_info(log, "stopped while starting", F_STR("why", err.text));
	else if (rc)
		code = fail(rc, &err);
	else if (node_run(node))
		code = NODE_UNCLEAN;
	node_close(node);
	reload_close(reload);
	slu_log_free(log);
	return code;
}

int
main(int argc, char **argv)
{
	struct conf conf;
	struct conf_faults faults = { 0 };
	int code = 0;

	if (conf_load(&conf, argc, argv, &faults) && !conf.help && !conf.version)
		code = tell_faults(&faults);
	else if (conf.check_config)
		code = check(&conf);
	else if (!tell(&conf))
		code = serve(&conf, argc, argv);
	faults_release(&faults);
	conf_release(&conf);
	return code;
}
