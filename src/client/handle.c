/*
 * handle.c - handles one delivery: runs the handler, here or in a process of its own, and settles.
 */
#include "client/consumer.h"

#include "base/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct handling {
	struct worker *worker;
	struct slu_delivery *delivery;
	enum slu_verdict verdict;
	struct slu_err err;
};

/* The row of the table for the kind of the delivery; NULL: the server has sent another kind than it was asked for. */
static const struct slu_kind *
find_kind(const struct slu_consumer *c, const char *kind)
{
	for (size_t i = 0; i < c->n_kinds; i++)
		if (strcmp(c->kinds[i].kind, kind) == 0)
			return &c->kinds[i];
	return NULL;
}

static enum slu_verdict
dispatch(struct handling *h)
{
	const struct slu_consumer *const c = &h->worker->conf;
	const struct slu_kind *k;

	if (!c->n_kinds)
		return c->handle(h->delivery, c->arg, &h->err);
	k = find_kind(c, h->delivery->info.kind);
	if (!k) {
		slu_fail(&h->err, SLU_EINVAL, "no handler for a message of kind \"%s\"; does the server know kinds?", h->delivery->info.kind);
		return SLU_DEFER;
	}
	return k->handle(h->delivery, k->arg ? k->arg : c->arg, &h->err);
}

static int
run(void *arg)
{
	struct handling *const h = arg;

	CONTAIN("the handler", h->verdict = dispatch(h));
	return 0;
}

/* CONSUMER-4: runs the handler on this thread. */
static int
run_here(struct handling *h, struct slu_err *err)
{
	return slu_guard(run, h, err);
}

/* --- in a process of its own ------------------------------------------------------------- */

struct report {
	int panicked;
	enum slu_verdict verdict;
	char text[200];
};

/* Sends the outcome through the pipe, in one write. */
static void
run_as_child(struct handling *h, int out)
{
	struct report report = { 0 };
	struct slu_err err = { .text = "" };

	report.panicked = run_here(h, &err) != 0;
	report.verdict = h->verdict;
	(void)snprintf(report.text, sizeof report.text, "%.199s", report.panicked ? err.text : h->err.text);
	(void)fflush(NULL);
	_exit(write(out, &report, sizeof report) == sizeof report ? 0 : 1);
}

static int
death(pid_t pid, struct slu_err *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status))
		return slu_fail(err, SLU_EPANIC, "the handler's process was killed by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
	return slu_fail(err, SLU_EPANIC, "the handler's process ended with exit code %d",
			WEXITSTATUS(status));
}

static int
wait_for_child(struct handling *h, pid_t pid, int in, struct slu_err *err)
{
	struct report report;
	ssize_t n;
	int rc;

	do
		n = read(in, &report, sizeof report);
	while (n < 0 && errno == EINTR);
	rc = death(pid, err);
	if (n != sizeof report)
		return rc;
	h->verdict = report.verdict;
	(void)snprintf(h->err.text, sizeof h->err.text, "%s", report.text);
	return report.panicked ? slu_fail(err, SLU_EPANIC, "%s", report.text) : 0;
}

static int
run_in_child(struct handling *h, struct slu_err *err)
{
	int fds[2];
	pid_t pid;
	int rc = delivery_spool(h->delivery, err); /* two processes must not read one connection */

	if (rc)
		return rc;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return slu_fail(err, SLU_EFAILED, "cannot open a pipe for a handler's process: %m");
	pid = fork();
	if (pid == 0)
		run_as_child(h, fds[1]);
	close(fds[1]);
	rc = pid < 0 ? slu_fail(err, SLU_EFAILED, "cannot start a process for a handler: %m")
		     : wait_for_child(h, pid, fds[0], err);
	close(fds[0]);
	return rc;
}

/* --- settling ------------------------------------------------------------------------------- */

static int
settle(struct worker *w, struct handling *h, struct slu_err *err)
{
	const char *const why = h->err.text[0] ? h->err.text : NULL;
	const struct slu_nack nacks[] = {
		[SLU_RETRY] = { SLU_OPTIONS_INIT(struct slu_nack), .delay = w->conf.retry_delay, .error = why },
		[SLU_DEFER] = { SLU_OPTIONS_INIT(struct slu_nack), .delay = w->conf.defer_delay, .defer = true },
		[SLU_DEAD] = { SLU_OPTIONS_INIT(struct slu_nack), .dead = true, .error = why },
	};

	if (h->verdict == SLU_DONE)
		return slu_delivery_ack(h->delivery, NULL, err);
	return slu_delivery_nack(h->delivery, &nacks[h->verdict > SLU_DEAD ? SLU_RETRY : h->verdict],
				 NULL, err);
}

/* Stops extending the lease. Returns false if the lease was lost (CONSUMER-5). */
static bool
is_ours(struct worker *w, struct slu_delivery *d)
{
	struct slu_err err;

	keeper_remove(&w->service->keeper, &d->kept);
	atomic_fetch_add(&w->late, d->kept.late);
	if (!d->kept.lost)
		return true;
	atomic_fetch_add(&w->lost, 1);
	slu_fail(&err, SLU_ELEASE, "%s: lease of message %s lost while its handler ran",
		 w->conf.queue, d->info.receipt.id);
	worker_tell_error(w, &err);
	return false;
}

void
worker_handle(struct worker *w, struct slu_delivery *d)
{
	struct handling h = { .worker = w, .delivery = d, .err = { .text = "" } };
	struct slu_err err;

	if (w->conf.in_child ? run_in_child(&h, &err) : run_here(&h, &err)) {
		worker_tell_error(w, &err);
		h.verdict = w->conf.on_panic ? w->conf.on_panic : SLU_RETRY;
		h.err = err;
	}
	if (is_ours(w, d) && !d->settled && settle(w, &h, &err))
		worker_tell_error(w, &err);
	delivery_free(d);
}

void
worker_return(struct worker *w, struct slu_delivery *d)
{
	struct slu_err err;

	if (is_ours(w, d) && slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .defer = true }, NULL, &err))
		worker_tell_error(w, &err);
	delivery_free(d);
}
