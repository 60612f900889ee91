/*
 * work.c - `sluice work`: options, signals and the threads of the slots.
 */
#include "cli/work/work.h"

#include "base/clock.h"
#include "base/mem.h"
#include "client/beat.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	SLOTS_MAX = 1024
};

#define BEAT_TIME (2 * SLU_SEC) /* of one beat, at most */

static void
tell(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof one); /* an eventfd takes it */
}

void
work_stop(const struct work *w)
{
	tell(w->stop_fd);
	tell(w->pause_fd);
}

/* --- beats ---------------------------------------------------------------------- */

struct beating {
	char name[CLIENT_OWNER_TEXT];
	char instance[BEAT_INSTANCE];
	slu_time next; /* SLU_NEVER = the server has no register, or --beat 0 */
};

static void
beat_begin(struct beating *b, const struct work *w)
{
	if (w->owner)
		(void)snprintf(b->name, sizeof b->name, "%s", w->owner); /* a long name is cut */
	else
		client_process(b->name);
	beat_instance(b->instance);
	b->next = w->beat > 0 ? clock_mono(&clock_system) : SLU_NEVER;
}

/* WORK-8 */
static void
ask_quiet(struct work *w, bool quiet)
{
	uint64_t old;

	if (atomic_exchange(&w->quiet, quiet) == quiet)
		return;
	session_note(&w->s, quiet ? "quiet: an operator asked this worker to take no more messages"
				  : "resumed by an operator");
	if (quiet) {
		tell(w->pause_fd);
		return;
	}
	atomic_store(&w->active, clock_mono(&clock_system)); /* --idle begins anew */
	(void)!read(w->pause_fd, &old, sizeof old);          /* slots that stop look at stop_fd */
	if (poll(&(struct pollfd){ .fd = w->stop_fd, .events = POLLIN }, 1, 0) > 0)
		tell(w->pause_fd);
}

/* cancel_fd: -1 for the last beat. */
static enum beat_asked
tell_server(const struct beating *b, struct work *w, int cancel_fd)
{
	const struct client_beat now = {
		.name = b->name,
		.queue = w->queue,
		.space = w->s.space,
		.instance = b->instance,
		.slots = (unsigned)w->concurrency,
		.used = atomic_load(&w->busy),
		.lost = (unsigned)atomic_load(&w->counts[WORK_LOST]),
		.late = atomic_load(&w->late),
		.ends = cancel_fd < 0,
	};

	return client_beat(w->s.client, &now, cancel_fd, BEAT_TIME);
}

/* Beats if it is time. Returns true if the worker is asked to stop. */
static bool
beat(struct beating *b, struct work *w, int signal_fd)
{
	const slu_time now = clock_mono(&clock_system);
	enum beat_asked asked;

	if (now < b->next)
		return false;
	asked = tell_server(b, w, signal_fd);
	b->next = asked == BEAT_UNKNOWN ? SLU_NEVER : clock_mono(&clock_system) + w->beat;
	if (asked == BEAT_QUIET || asked == BEAT_RUNNING)
		ask_quiet(w, asked == BEAT_QUIET);
	return asked == BEAT_STOP;
}

/* --- signals -------------------------------------------------------------------- */

/* WORK-4: handles the first and the second signal. */
static void
obey(struct work *w, unsigned nth)
{
	if (nth == 1) {
		session_note(&w->s, "stopping: running commands may finish; a second signal kills them");
		work_stop(w);
	} else {
		tell(w->force_fd);
	}
}

/* For poll: the milliseconds until the next beat. */
static int
time_until(slu_time next, bool stopping)
{
	const slu_time left = next == SLU_NEVER ? -1 : next - clock_mono(&clock_system);

	if (next == SLU_NEVER || stopping)
		return -1;
	return left > 0 ? (int)(left / SLU_MS) + 1 : 0;
}

/* Handles signals and beats until the last slot has ended. */
static void
attend(struct work *w, int signal_fd)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = w->done_fd, .events = POLLIN },
	};
	unsigned signals = 0;
	struct beating b;

	beat_begin(&b, w);
	while (!fds[1].revents) {
		struct signalfd_siginfo info;

		if (signals == 0 && beat(&b, w, signal_fd)) {
			session_note(&w->s, "an operator asked this worker to stop");
			obey(w, ++signals);
		}
		if (poll(fds, 2, time_until(b.next, signals > 0)) < 0)
			continue; /* the process was stopped and continued */
		if (fds[0].revents && read(signal_fd, &info, sizeof info) == sizeof info)
			obey(w, ++signals);
	}
	if (b.next != SLU_NEVER)
		(void)tell_server(&b, w, -1);
}

/* --- slots ---------------------------------------------------------------------- */

static int
run_slots(struct work *w, struct work_slot *slots, unsigned n, int signal_fd)
{
	unsigned started = 0;

	atomic_store(&w->slots, n);
	for (; started < n; started++) {
		slots[started].work = w;
		if (pthread_create(&slots[started].thread, NULL, slot_main, &slots[started]) != 0)
			break;
	}
	if (started < n) {
		session_note(&w->s, "only %u of %u threads could be started", started, n);
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
	(void)signal(SIGPIPE, SIG_IGN); /* a child may ignore its stdin */
	*signal_fd = session_signals();
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->pause_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->force_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*signal_fd < 0 || w->stop_fd < 0 || w->pause_fd < 0 || w->force_fd < 0 || w->done_fd < 0)
		return slu_fail(err, SLU_EFAILED, "cannot open descriptors: %m");
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
	FILE *out = w->s.json ? stdout : stderr;
	const char *before = w->s.json ? "{" : "sluice work: ";

	for (int i = 0; i < WORK_N_OUTCOMES; i++) {
		const uint64_t n = atomic_load(&w->counts[i]);

		if (w->s.json)
			fprintf(out, "%s\"%s\":%" PRIu64, before, words[i], n);
		else if (n > 0 || i == WORK_DONE)
			fprintf(out, "%s%s %" PRIu64, before, words[i], n);
		else
			continue;
		before = w->s.json ? "," : ", ";
	}
	fputs(w->s.json ? "}\n" : "\n", out);
}

static int
work(struct work *w, struct slu_err *err)
{
	const unsigned n = (unsigned)w->concurrency;
	struct work_slot *slots = mem_array(n, sizeof *slots);
	int signal_fd = -1;
	int rc;

	if (!slots)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u slots", n);
	rc = open_fds(w, &signal_fd, err);
	atomic_store(&w->active, clock_mono(&clock_system));
	if (!rc && run_slots(w, slots, n, signal_fd))
		rc = slu_fail(err, SLU_EFAILED, "cannot start a thread");
	if (!rc)
		print_counts(w);
	close(signal_fd);
	close(w->stop_fd);
	close(w->pause_fd);
	close(w->force_fd);
	close(w->done_fd);
	mem_free(slots);
	return rc;
}

/* --- the command ---------------------------------------------------------------- */

static int
run(struct session *s, struct slu_err *err)
{
	struct work *const w = (void *)s;
	int rc;

	if (w->concurrency > SLOTS_MAX || w->lease < 100 * SLU_MS)
		return session_usage(&w->s, "invalid --concurrency or --lease; expected at most %d and at least 100ms", SLOTS_MAX);
	if (w->lines && w->result)
		return session_usage(&w->s, "--result does not go with --lines: an answer line has the result");
	w->queue = w->s.words[0];
	w->argv = w->s.words + 1;
	atomic_store(&w->left, w->max);
	rc = child_check(w->argv[0], err);
	if (!rc)
		rc = work(w, err);
	if (!rc && atomic_load(&w->broken))
		w->s.exit = CLI_FAILED;
	return rc;
}

const struct command cli_work = {
	.name = "work",
	.group = "Messages",
	.summary = "run a command for every message of a queue",
	.usage = "QUEUE [options] -- COMMAND [ARGUMENTS...]",
	.text = "Runs COMMAND for every message: the payload on stdin, the rest in SLUICE_ID,\n"
		"SLUICE_UID, SLUICE_QUEUE, SLUICE_NAMESPACE, SLUICE_ATTEMPTS, SLUICE_KEY,\n"
		"SLUICE_KIND, SLUICE_FENCING_TOKEN, SLUICE_CORRELATION_ID and others. The exit code decides: 0 ack,\n"
		"75 defer, 100 dead letter, anything else is a failure that is retried later. The lease\n"
		"is extended while COMMAND runs. Ctrl-C lets running commands finish; a second Ctrl-C\n"
		"kills them and returns their messages. Background processes of COMMAND end with it, and\n"
		"all processes end if this worker is killed. `sluice worker` lists workers, and asks them\n"
		"to be quiet or to stop.\n\n"
		"Lines of JSON that COMMAND writes to descriptor 3 are messages, as in POST /enqueue. They\n"
		"are enqueued with the ack in one step: all of it happens, or nothing. A line\n"
		"{\"checkpoint\":...} is no message but says how far COMMAND has come. It is stored at\n"
		"once; if the message comes again, COMMAND finds it in SLUICE_CHECKPOINT.\n\n"
		"With --lines COMMAND runs once: it reads messages as lines of JSON, and answers each\n"
		"with a line: {\"outcome\":\"ack\"}, or nack, defer, dead; \"error\", \"delay\",\n"
		"\"result\" and \"enqueue\" are optional. Before that it may write lines {\"checkpoint\":...}.\n",
	.examples = "  sluice work mail -- ./send-mail\n"
		    "  sluice work thumbnails --concurrency 4 -- sh -c 'convert - out/$SLUICE_ID.png'\n"
		    "  sluice work mail --timeout 30s -- ./send-mail\n"
		    "  sluice work numbers --lines -- python3 worker.py\n"
		    "  sluice work numbers --idle 5s -- cat\n"
		    "  sluice work media --kind resize,crop -- ./images\n"
		    "  sluice work sums --result stdout -- jq add\n"
		    "  sluice work orders -- sh -c 'echo \"{\\\"queue\\\":\\\"mail\\\",\\\"text\\\":\\\"$SLUICE_ID\\\"}\" >&3'\n",
	.options = CLI_NAMESPACE | CLI_CONNECTION | CLI_JSON,
	CLI_ARGS({ "-c, --concurrency", ARG_COUNT, AT(work, concurrency), "how many messages at a time (1)" },
		 { "--lease", ARG_TIME, AT(work, lease), "length of the lease, extended at half of it (30s)" },
		 { "--owner NAME", ARG_TEXT, AT(work, owner), "owner of the leases, as browse shows it (host:process)" },
		 { "--kind NAME,...", ARG_TEXT, AT(work, kinds), "take messages of these kinds alone (all messages)" },
		 { "--lines", ARG_FLAG, AT(work, lines), "run the command once; it reads and writes lines" },
		 { "--result none|stdout", ARG_TEXT, AT(work, result),
		   "stdout: the output of the command is the result of the message (none)" },
		 { "--max", ARG_COUNT, AT(work, max), "exit after this many messages" },
		 { "--idle", ARG_TIME, AT(work, idle), "exit if no message comes for this long" },
		 { "--timeout", ARG_TIME, AT(work, timeout), "end a command that runs longer, as failed (no limit)" },
		 { "--beat", ARG_TIME, AT(work, beat), "how often to tell the server that this worker lives, 0s = never (5s)" },
		 { "--pass-token", ARG_FLAG, AT(work, pass_token), "pass the token to the command, in SLUICE_TOKEN" },
		 { "--answer-timeout", ARG_TIME, AT(work, s.timeout), "how long an answer of the server may take (30s)" }),
	CLI_STATE(struct work, .s.impatient = true, .concurrency = 1, .max = UINT64_MAX, .lease = 30 * SLU_SEC, .beat = BEAT_EACH),
	.run = run,
};
