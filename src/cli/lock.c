/*
 * lock.c - `sluice lock`: a lease on a key, kept by hand or for as long as a command runs.
 */
#include "cli/child.h"
#include "cli/exports.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOST = 4 /* exit code: the lease was lost, the command killed */
};

struct lock {
	struct session s;
	struct slu_acquire want;
	struct slu_lease lease;
	const char *block;
	bool rollback;
};

#define ACQUIRE_ROWS(l)                                                                               \
	{ "--ttl", ARG_TIME, &(l)->want.ttl, "the lease, at most 30m (30s)" },                        \
		{ "--block TIME", ARG_TEXT, &(l)->block, "wait so long: 30s, 0, forever (forever)" }, \
	{                                                                                             \
		"--owner NAME", ARG_TEXT, &(l)->want.owner, "who takes it (host, process, number)"    \
	}

static int
acquire(struct lock *l, const char *key, struct slu_err *err)
{
	int rc = exports_wait(l->block, &l->want.wait, err);

	l->want.struct_size = sizeof l->want;
	l->want.key = key;
	return rc ? rc : slu_lock_acquire(l->s.client, &l->want, &l->lease, NULL, err);
}

/* SLU_EBUSY is no failure of ours: somebody else has it. */
static void
fail(struct lock *l, int rc, const struct slu_err *err)
{
	session_fail(&l->s, err);
	if (rc == SLU_EBUSY)
		l->s.exit = CLI_NOTHING;
}

static int
print(struct lock *l, struct slu_err *err)
{
	struct exports e;

	exports_begin(&e, &l->s);
	exports_lease(&e, "SLUICE_LOCK", &l->lease);
	return exports_end(&e, err);
}

/* --- acquire, keepalive, release ------------------------------------------------ */

static const struct session_help acquire_help = {
	.usage = "lock acquire KEY [options]",
	.text = "Takes the lease of a key, waiting while somebody else has it, and prints variables\n"
		"for the shell; `sluice lock keepalive` and `release`, and `sluice state`, then need\n"
		"no arguments. Exits 3 when somebody else still has it.\n",
	.examples = "  eval \"$(sluice lock acquire orders/nightly --ttl 5m)\"\n"
		    "  sluice lock acquire orders/nightly --block 0 || echo somebody else does it\n",
	.min_words = 1,
	.max_words = 1,
};

int
cli_lock_acquire(int argc, char **argv)
{
	struct lock l = { .s = SESSION("lock acquire"), .block = "forever" };
	const struct arg rows[] = {
		ACQUIRE_ROWS(&l),
		{ "--if-absent", ARG_FLAG, &l.want.if_absent, "only a key that nobody used before" },
		SESSION_ROWS(&l.s),
	};
	struct slu_err err;
	int rc;

	if (!session_begin(&l.s, &acquire_help, &argc, &argv, rows, COUNT(rows)))
		return l.s.exit;
	rc = acquire(&l, argv[0], &err);
	if (!rc) {
		rc = print(&l, &err);
		if (rc) /* nobody heard of it */
			(void)slu_lock_release(l.s.client, &l.lease, SLU_ROLLBACK, NULL, NULL);
	}
	if (rc)
		fail(&l, rc, &err);
	return session_end(&l.s);
}

int
cli_lock_keepalive(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "lock keepalive [options]",
		.text = "The lease that `sluice lock acquire` took lasts so long from now on.\n",
		.examples = "  sluice lock keepalive --ttl 5m\n",
	};
	struct lock l = { .s = SESSION("lock keepalive") };
	const struct arg rows[] = {
		{ "--ttl", ARG_TIME, &l.want.ttl, "from now on, at most 30m (30s)" },
		SESSION_SERVER_ROWS(&l.s),
	};
	struct slu_err err;
	int rc;

	if (!session_begin(&l.s, &help, &argc, &argv, rows, COUNT(rows)))
		return l.s.exit;
	rc = exports_read_lease(&l.lease, &err);
	if (!rc)
		rc = slu_lock_keep(l.s.client, &l.lease, l.want.ttl, NULL, &err);
	if (!rc)
		rc = print(&l, &err);
	if (rc)
		session_fail(&l.s, &err);
	return session_end(&l.s);
}

int
cli_lock_release(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "lock release [options]",
		.text = "Gives back what `sluice lock acquire` took. What was put into the state meanwhile\n"
			"is seen by all from now on, unless --rollback drops it.\n",
		.examples = "  sluice lock release\n  sluice lock release --rollback\n",
	};
	struct lock l = { .s = SESSION("lock release") };
	const struct arg rows[] = {
		{ "--rollback", ARG_FLAG, &l.rollback, "drop what was put into the state" },
		SESSION_SERVER_ROWS(&l.s),
	};
	struct slu_err err;
	int rc;

	if (!session_begin(&l.s, &help, &argc, &argv, rows, COUNT(rows)))
		return l.s.exit;
	rc = exports_read_lease(&l.lease, &err);
	if (!rc)
		rc = slu_lock_release(l.s.client, &l.lease, l.rollback ? SLU_ROLLBACK : SLU_COMMIT,
				      NULL, &err);
	if (rc)
		session_fail(&l.s, &err);
	return session_end(&l.s);
}

/* --- run ------------------------------------------------------------------------ */

struct run {
	struct lock l;
	struct child child;
	int signals; /* a signalfd */
	slu_time ttl;
	bool lost;
};

/* The environment of the command: ours, and the lease. */
static int
set_variables(const struct slu_lease *l)
{
	char token[24];

	(void)snprintf(token, sizeof token, "%" PRIu64, l->token);
	return setenv("SLUICE_LOCK_NAMESPACE", l->space, 1) || setenv("SLUICE_LOCK_KEY", l->key, 1) ||
	       setenv("SLUICE_LOCK_OWNER", l->owner, 1) || setenv("SLUICE_LOCK_LEASE", l->id, 1) ||
	       setenv("SLUICE_LOCK_TXN", l->txn, 1) || setenv("SLUICE_LOCK_FENCING_TOKEN", token, 1);
}

static void
pass_signal(struct run *r)
{
	struct signalfd_siginfo got;

	if (read(r->signals, &got, sizeof got) == (ssize_t)sizeof got)
		child_signal(&r->child, (int)got.ssi_signo);
}

/* At half of its time; a lease that has ended is lost, anything else is tried again
 * until then. */
static void
keep(struct run *r, slu_time *next, slu_time *ends)
{
	const slu_time now = clock_mono(&clock_system);
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = *ends > now ? *ends - now : SLU_MS };
	struct slu_err err;
	const int rc = slu_lock_keep(r->l.s.client, &r->l.lease, r->ttl, &call, &err);

	if (!rc) {
		*ends = now + r->ttl;
		*next = now + r->ttl / 2;
		return;
	}
	*next = clock_mono(&clock_system) + 100 * SLU_MS;
	if (rc == SLU_ELEASE || *next >= *ends) {
		r->lost = true;
		session_note(&r->l.s, "the lease of %s is lost (%s): the command is killed",
			     r->l.lease.key, err.text);
		child_kill(&r->child);
		*next = SLU_NEVER;
	}
}

static void
attend(struct run *r)
{
	const slu_time now = clock_mono(&clock_system);
	slu_time next = now + r->ttl / 2, ends = now + r->ttl;

	for (;;) {
		switch (child_wait(&r->child, next, r->signals)) {
		case CHILD_ENDED:
			return;
		case CHILD_TIME:
			keep(r, &next, &ends);
			break;
		case CHILD_STOP:
			pass_signal(r);
			break;
		case CHILD_LINE:
			break; /* its stdout is ours */
		}
	}
}

static void
block_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL); /* of a set that is sound */
	r->signals = signalfd(-1, &set, SFD_CLOEXEC);
}

/* The command's own code, or 128 and its signal, as a shell has it. */
static int
exit_code(const struct run *r)
{
	if (r->lost)
		return LOST;
	return WIFEXITED(r->child.status) ? WEXITSTATUS(r->child.status)
					  : 128 + WTERMSIG(r->child.status);
}

static int
run_command(struct run *r, char **argv, struct slu_err *err)
{
	extern char **environ;
	struct child_start how = { .argv = argv, .grace = child_grace(r->ttl) };
	int rc;

	if (set_variables(&r->l.lease))
		return slu_fail(err, SLU_ENOMEM, "no memory for the environment");
	how.env = environ;
	block_signals(r);
	child_init(&r->child);
	rc = child_start(&r->child, &how, err);
	if (!rc) {
		child_feed(&r->child, (struct slice){ 0 });
		attend(r);
		r->l.s.exit = exit_code(r);
	}
	child_release(&r->child);
	return rc;
}

static const struct session_help run_help = {
	.usage = "lock run KEY [options] -- COMMAND [ARGUMENT...]",
	.text = "Runs a command while it holds the lease of a key, and keeps the lease alive. The\n"
		"command finds the lease in SLUICE_LOCK_FENCING_TOKEN and the like, so `sluice state\n"
		"put` works in it; what it put is seen by all when it exits 0, and dropped otherwise.\n"
		"If the lease is lost the command is killed, and this exits 4; else with its code.\n",
	.examples = "  sluice lock run backups/db -- ./backup.sh\n"
		    "  sluice lock run orders/nightly --block 0 --ttl 1m -- make report\n",
	.min_words = 2,
	.max_words = SESSION_ANY,
};

int
cli_lock_run(int argc, char **argv)
{
	struct run r = { .l = { .s = SESSION("lock run"), .block = "forever" }, .signals = -1 };
	const struct arg rows[] = { ACQUIRE_ROWS(&r.l), SESSION_ROWS(&r.l.s) };
	struct slu_err err;
	int rc, end;

	if (!session_begin(&r.l.s, &run_help, &argc, &argv, rows, COUNT(rows)))
		return r.l.s.exit;
	argv[argc] = NULL; /* options stood between its words */
	r.ttl = r.l.want.ttl ? r.l.want.ttl : 30 * SLU_SEC;
	rc = child_check(argv[1], &err);
	if (!rc)
		rc = acquire(&r.l, argv[0], &err);
	if (rc) {
		fail(&r.l, rc, &err);
		return session_end(&r.l.s);
	}
	rc = run_command(&r, argv + 1, &err);
	end = r.lost ? 0 /* it has ended, and what was staged with it */
		     : slu_lock_release(r.l.s.client, &r.l.lease,
					rc || r.l.s.exit ? SLU_ROLLBACK : SLU_COMMIT, NULL,
					rc ? NULL : &err);
	if (rc || end)
		session_fail(&r.l.s, &err);
	if (r.signals >= 0)
		close(r.signals);
	return session_end(&r.l.s);
}
