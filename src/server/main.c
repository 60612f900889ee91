#include "server/node.h"

#include "base/log.h"
#include "engine/engine.h"

#include <stdio.h>

/* The exit code. 128 and more: a second signal ended the process. */
enum {
	EXIT_FAILED = 1,   /* the start failed */
	EXIT_SETTINGS = 2, /* the settings are invalid: a restart does not help */
};

static void
usage(FILE *out)
{
	fputs("sluiced: a durable queue for work\n\n"
	      "usage: sluiced [options]\n\n",
	      out);
	conf_help(engine_rows, out);
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

/* Prints the text that an option asks for. Returns false if the server should run. */
static bool
tell(const struct conf *conf)
{
	if (conf->help)
		usage(stdout);
	else if (conf->version)
		puts("sluiced " SLUICE_VERSION);
	else if (conf->print_doc)
		conf_doc(engine_rows, stdout);
	else if (conf->print_config && conf->json)
		print_json(conf);
	else if (conf->print_config)
		conf_print(conf, stdout);
	else
		return false;
	return true;
}

/* Reports why the start failed: as a log line if the log is JSON. */
static void
complain(const struct conf *conf, const char *event, const char *why)
{
	struct slu_log *const log =
		conf->log_format == SLU_LOG_JSON && !conf->check_config
			? slu_log_new(SLU_LOG_ERROR, SLU_LOG_JSON, NULL, NULL)
			: NULL;

	if (log)
		log_error(log, event, F_STR("why", why));
	else
		fprintf(stderr, "sluiced: %s\n", why);
	slu_log_free(log);
}

/* Returns the exit code. */
static int
tell_faults(const struct conf *conf, const struct conf_faults *faults)
{
	char more[32];

	for (unsigned i = 0; i < faults->n; i++)
		complain(conf, "setting refused", faults->items[i]);
	(void)snprintf(more, sizeof more, "and %u more", faults->more); /* fits */
	if (faults->more)
		complain(conf, "setting refused", more);
	return EXIT_SETTINGS;
}

/* Returns the exit code. */
static int
fail(const struct conf *conf, int rc, const struct slu_err *err)
{
	complain(conf, "cannot start", *err->text ? err->text : slu_err_row(rc)->text);
	return rc == SLU_EINVAL ? EXIT_SETTINGS : EXIT_FAILED;
}

/* Returns the exit code. */
static int
check(const struct conf *conf)
{
	struct conf_faults faults = { 0 };
	int code = 0;

	node_faults(conf, &faults);
	if (faults_any(&faults))
		code = tell_faults(conf, &faults);
	else
		puts("sluiced: the settings are fine");
	faults_release(&faults);
	return code;
}

/* Returns the exit code. */
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
		return fail(conf, SLU_ENOMEM, &err);
	node_signals();
	rc = reload_open(&reload, conf, argc, argv, node_check, log, &err);
	if (!rc)
		rc = node_open(&node, conf, reload, log, NULL, &err);
	if (rc == SLU_ECANCELED)
		log_info(log, "stopped while starting", F_STR("why", err.text));
	else if (rc)
		code = fail(conf, rc, &err);
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

	if (conf_load(&conf, engine_rows, argc, argv, &faults) && !conf.help && !conf.version)
		code = tell_faults(&conf, &faults);
	else if (conf.check_config)
		code = check(&conf);
	else if (!tell(&conf))
		code = serve(&conf, argc, argv);
	faults_release(&faults);
	conf_release(&conf);
	return code;
}
