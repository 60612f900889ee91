/*
 * consume.c - a consumer service that prints the payload of every message, for tests:
 *
 *         consume SERVERS NAMESPACE QUEUE
 *
 * Errors go to stderr. Ends by SIGTERM.
 */
#include <sluice/consumer.h>

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static enum slu_verdict
print(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	(void)arg;
	return slu_delivery_write(d, STDOUT_FILENO, err) ? SLU_RETRY : SLU_DONE;
}

static void
say_error(const struct slu_consumer_event *e, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", e->name, e->err->text);
}

static int
consume(struct slu_client *c, const char *queue, const sigset_t *ends, struct slu_err *err)
{
	const struct slu_consumer consumer = {
		SLU_OPTIONS_INIT(struct slu_consumer),
		.queue = queue,
		.handle = print,
		.on_error = say_error,
		.concurrency = 2,
		.visibility = 5 * SLU_SEC,
	};
	struct slu_service *s = NULL;
	int sig;
	int rc = slu_service_new(&s, c, &consumer, 1, err);

	if (!rc)
		rc = slu_service_start(s, err);
	if (!rc) {
		sigwait(ends, &sig);
		slu_service_stop(s);
		rc = slu_service_wait(s, 0, err);
	}
	slu_service_free(s);
	return rc;
}

int
main(int argc, char **argv)
{
	struct slu_client_config conf = { SLU_OPTIONS_INIT(struct slu_client_config) };
	struct slu_client *c = NULL;
	struct slu_err err = { .text = "usage: consume SERVERS NAMESPACE QUEUE" };
	sigset_t ends;
	int rc = SLU_EINVAL;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	if (argc == 4) {
		conf.servers = argv[1];
		conf.space = argv[2];
		rc = slu_client_new(&c, &conf, &err);
	}
	if (!rc)
		rc = consume(c, argv[3], &ends, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	slu_client_free(c);
	return rc ? 1 : 0;
}
