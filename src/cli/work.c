/*
 * work.c - `sluice work`: options, signals and the slots that do the work.
 */
#include "cli/work.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	SLOTS_MAX = 1024
};

static void
tell(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof one); /* an eventfd takes it */
}

/* --- signals -------------------------------------------------------------------- */

static void
stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* R4: the first signal, then the second. */
static void
obey(struct work *w, unsigned nth)
{
	if (nth == 1) {
		session_note(w->session, "stopping: what runs may finish; once more kills it");
		tell(w->stop_fd);
	} else {
		tell(w->force_fd);
	}
}

/* Until the last slot has ended. */
static void
attend(struct work *w, int signal_fd)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = w->done_fd, .events = POLLIN },
	};
	unsigned signals = 0;

	while (!fds[1].revents) {
		struct signalfd_siginfo info;

		if (poll(fds, 2, -1) < 0)
			continue; /* stopped and continued */
		if (fds[0].revents && read(signal_fd, &info, sizeof info) == sizeof info)
			obey(w, ++signals);
	}
}

/* --- slots ---------------------------------------------------------------------- */

static int
run_slots(struct work *w, struct slot *slots, unsigned n, int signal_fd)
{
	unsigned started = 0;

	atomic_store(&w->slots, n);
	for (; started < n; started++) {
		slots[started].work = w;
		if (pthread_create(&slots[started].thread, NULL, slot_main, &slots[started]) != 0)
			break;
	}
	if (started < n) {
		session_note(w->session, "only %u of %u threads could be started", started, n);
		if (atomic_fetch_sub(&w->slots, n - started) == n - started)
			tell(w->done_fd);
	}
	attend(w, signal_fd);
	for (unsigned i = 0; i < started; i++)
		pthread_join(slots[i].thread, NULL);
	return started > 0 ? 0 : SLU_EFAILED;
}

static int
open_fds(struct work *w, int *signal_fd, struct slu_err *err)
{
	sigset_t set;

	stop_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN); /* a child need not read its stdin */
	*signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->force_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*signal_fd < 0 || w->stop_fd < 0 || w->force_fd < 0 || w->done_fd < 0)
		return slu_fail(err, SLU_EFAILED, "no descriptors: %m");
	return 0;
}

static void
print_counts(struct work *w)
{
	static const char *const words[] = {
#define X(name, text) text,
		WORK_OUTCOMES(X)
#undef X
	};
	FILE *out = w->session->json ? stdout : stderr;
	const char *before = w->session->json ? "{" : "sluice work: ";

	for (int i = 0; i < WORK_N_OUTCOMES; i++) {
		const uint64_t n = atomic_load(&w->counts[i]);

		if (w->session->json)
			fprintf(out, "%s\"%s\":%" PRIu64, before, words[i], n);
		else if (n > 0 || i == WORK_DONE)
			fprintf(out, "%s%s %" PRIu64, before, words[i], n);
		else
			continue;
		before = w->session->json ? "," : ", ";
	}
	fputs(w->session->json ? "}\n" : "\n", out);
}

static int
work(struct work *w, unsigned n, struct slu_err *err)
{
	struct slot *slots = mem_array(n, sizeof *slots);
	int signal_fd = -1;
	int rc;

	if (!slots)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u slots", n);
	rc = open_fds(w, &signal_fd, err);
	atomic_store(&w->active, clock_mono(&clock_system));
	if (!rc && run_slots(w, slots, n, signal_fd))
		rc = slu_fail(err, SLU_EFAILED, "no thread could be started");
	if (!rc)
		print_counts(w);
	close(signal_fd);
	close(w->stop_fd);
	close(w->force_fd);
	close(w->done_fd);
	mem_free(slots);
	return rc;
}

/* --- the command ---------------------------------------------------------------- */

static const struct session_help work_help = {
	.usage = "work QUEUE [options] -- COMMAND [ARGUMENTS...]",
	.text = "Runs COMMAND for every message: the payload on stdin, the rest in SLUICE_ID,\n"
		"SLUICE_UID, SLUICE_QUEUE, SLUICE_NAMESPACE, SLUICE_ATTEMPTS, SLUICE_KEY,\n"
		"SLUICE_FENCING_TOKEN, SLUICE_CORRELATION_ID and others. Its exit decides: 0 done,\n"
		"75 not now, 100 never, anything else failed, and is tried again later. The lease\n"
		"is kept while it runs. Ctrl-C lets what runs finish; a second one kills it and\n"
		"gives its messages back. What COMMAND started and left in the background ends\n"
		"with it, and everything ends when this worker is killed.\n\n"
		"With --lines COMMAND lives on: it reads a message a line, as JSON, and answers\n"
		"each with a line: {\"outcome\":\"ack\"}, or nack, defer, dead, with \"error\",\n"
		"\"delay\" and \"result\" as wanted.\n",
	.examples = "  sluice work mail -- ./send-mail\n"
		    "  sluice work thumbnails --concurrency 4 -- sh -c 'convert - out/$SLUICE_ID.png'\n"
		    "  sluice work mail --timeout 30s -- ./send-mail\n"
		    "  sluice work numbers --lines -- python3 worker.py\n"
		    "  sluice work numbers --idle 5s -- cat\n"
		    "  sluice work sums --result stdout -- jq add\n",
	.min_words = 2,
	.max_words = SESSION_ANY,
};

int
cli_work(int argc, char **argv)
{
	struct session s = SESSION("work");
	struct work w = { .session = &s, .lease = 30 * SLU_SEC };
	uint64_t concurrency = 1, max = UINT64_MAX;
	const struct arg rows[] = {
		{ "-c, --concurrency", ARG_COUNT, &concurrency, "messages at a time (1)" },
		{ "--lease", ARG_TIME, &w.lease, "kept alive at half of it (30s)" },
		{ "--owner NAME", ARG_TEXT, &w.owner, "who takes them, as browse shows it (host:process)" },
		{ "--lines", ARG_FLAG, &w.lines, "the command lives on, and speaks lines" },
		{ "--result none|stdout", ARG_TEXT, &w.result,
		  "stdout: what the command prints is the result of the message (none)" },
		{ "--max", ARG_COUNT, &max, "exit after so many messages" },
		{ "--idle", ARG_TIME, &w.idle, "exit when nothing came for so long" },
		{ "--timeout", ARG_TIME, &w.timeout, "end a command that runs longer; it has failed (no limit)" },
		{ "--pass-token", ARG_FLAG, &w.pass_token, "the command gets the token, in SLUICE_TOKEN" },
		SESSION_NAMESPACE_ROW(&s),
		SESSION_CONNECTION_ROWS(&s),
		{ "--answer-timeout", ARG_TIME, &s.timeout, "how long an answer of the server may take (30s)" },
		SESSION_OUTPUT_ROWS(&s),
	};
	struct slu_err err;

	s.impatient = true;
	if (!session_begin(&s, &work_help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	if (concurrency > SLOTS_MAX || w.lease < 100 * SLU_MS) {
		session_usage(&s, "--concurrency: at most %d; --lease: at least 100ms", SLOTS_MAX);
		return session_end(&s);
	}
	if (w.lines && w.result) {
		session_usage(&s, "--result: not with --lines, whose answers bring results");
		return session_end(&s);
	}
	w.queue = argv[0];
	w.argv = argv + 1;
	atomic_store(&w.left, max);
	argv[argc] = NULL; /* where options stood */
	if (child_check(w.argv[0], &err) || work(&w, (unsigned)concurrency, &err))
		session_fail(&s, &err);
	else if (atomic_load(&w.broken))
		s.exit = CLI_FAILED;
	return session_end(&s);
}
