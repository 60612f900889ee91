/*
 * lock.c - `sluice lock`: a lease on a key, extended by hand or while a command runs.
 */
#include "cli/work/child.h"
#include "cli/lib/exports.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOST = 4 /* exit code: the lease was lost and the command killed */
};

struct lock_command {
	struct session s;
	struct slu_acquire want;
	struct slu_lease lease;
	const char *block;
	bool rollback;
};

/* clang-format off */
#define ACQUIRE_ROWS \
	{ "--ttl", ARG_TIME, AT(lock_command, want.ttl), "length of the lease, at most 30m (30s)" }, \
	{ "--block TIME", ARG_TEXT, AT(lock_command, block), "wait this long: 30s, 0, forever (forever)" }, \
	{ "--owner NAME", ARG_TEXT, AT(lock_command, want.owner), "owner of the lease (host, process, number)" }
/* clang-format on */

static int
take(struct lock_command *l, struct slu_err *err)
{
	int rc = exports_wait(l->block, &l->want.wait, err);

	l->want.struct_size = sizeof l->want;
	l->want.key = l->s.words[0];
	return rc ? rc : slu_lock_acquire(l->s.client, &l->want, &l->lease, NULL, err);
}

/* Reports the error. SLU_EBUSY means that another owner has the lease: exit code CLI_NOTHING. */
static int
fail(struct lock_command *l, int rc, const struct slu_err *err)
{
	session_fail(&l->s, err);
	if (rc == SLU_EBUSY)
		l->s.exit = CLI_NOTHING;
	return 0;
}

static int
print(struct lock_command *l, struct slu_err *err)
{
	struct exports e;

	exports_begin(&e, &l->s);
	exports_lease(&e, "SLUICE_LOCK", &l->lease);
	return exports_end(&e, err);
}

/* --- acquire, keepalive, release ------------------------------------------------ */

static int
acquire(struct session *s, struct slu_err *err)
{
	struct lock_command *const l = (void *)s;
	int rc = take(l, err);

	if (!rc) {
		rc = print(l, err);
		if (rc) /* the caller did not receive the lease */
			(void)slu_lock_release(l->s.client, &l->lease, SLU_ROLLBACK, NULL, NULL);
	}
	return rc ? fail(l, rc, err) : 0;
}

const struct command cli_lock_acquire = {
	.name = "lock acquire",
	.summary = "acquire the lease of a key, variables for the shell",
	.usage = "KEY [options]",
	.text = "Acquires the lease of a key, waits while another owner has it, and prints variables\n"
		"for the shell; `sluice lock keepalive` and `release`, and `sluice state`, then need\n"
		"no arguments. Exits 3 if another owner still has the lease.\n",
	.examples = "  eval \"$(sluice lock acquire orders/nightly --ttl 5m)\"\n"
		    "  sluice lock acquire orders/nightly --block 0 || echo somebody else does it\n",
	.options = CLI_QUEUE,
	CLI_ARGS(ACQUIRE_ROWS,
		 { "--if-absent", ARG_FLAG, AT(lock_command, want.if_absent), "only if the key was never used" }),
	CLI_STATE(struct lock_command, .block = "forever"),
	.run = acquire,
};

static int
keepalive(struct session *s, struct slu_err *err)
{
	struct lock_command *const l = (void *)s;
	int rc = exports_read_lease(&l->lease, err);

	if (!rc)
		rc = slu_lock_keep(l->s.client, &l->lease, l->want.ttl, NULL, err);
	return rc ? rc : print(l, err);
}

const struct command cli_lock_keepalive = {
	.name = "lock keepalive",
	.summary = "keep it",
	.usage = "[options]",
	.text = "Extends the lease that `sluice lock acquire` acquired: it lasts --ttl from now.\n",
	.examples = "  sluice lock keepalive --ttl 5m\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "--ttl", ARG_TIME, AT(lock_command, want.ttl), "length of the lease from now, at most 30m (30s)" }),
	.size = sizeof(struct lock_command),
	.run = keepalive,
};

static int
release(struct session *s, struct slu_err *err)
{
	struct lock_command *const l = (void *)s;
	const int rc = exports_read_lease(&l->lease, err);

	return rc ? rc : slu_lock_release(l->s.client, &l->lease, l->rollback ? SLU_ROLLBACK : SLU_COMMIT, NULL, err);
}

const struct command cli_lock_release = {
	.name = "lock release",
	.summary = "give it back",
	.usage = "[options]",
	.text = "Releases the lease that `sluice lock acquire` acquired. Changes of the state made under\n"
		"the lease are committed, or dropped with --rollback.\n",
	.examples = "  sluice lock release\n  sluice lock release --rollback\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "--rollback", ARG_FLAG, AT(lock_command, rollback), "drop the changes of the state" }),
	.size = sizeof(struct lock_command),
	.run = release,
};

/* --- run ------------------------------------------------------------------------ */

struct run {
	struct lock_command l;
	struct child child;
	int signals; /* a signalfd */
	slu_time ttl;
	bool lost;
};

/* Adds the lease to the environment of the command. */
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

/* Extends the lease at half of its time. A refused extension means that the lease is lost; other errors
 * are retried until the lease ends. */
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
		session_note(&r->l.s, "lease of %s lost (%s): killing the command",
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
		case CHILD_WROTE:
			break; /* the command writes to our stdout */
		}
	}
}

/* The exit code of the command, or 128 plus its signal, as in a shell. */
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
	struct child_start how = { .argv = argv, .grace = child_grace(r->ttl) };
	int rc;

	if (set_variables(&r->l.lease))
		return slu_fail(err, SLU_ENOMEM, "no memory for the environment");
	how.env = environ;
	r->signals = session_signals();
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

static int
run(struct session *s, struct slu_err *err)
{
	struct run *const r = (void *)s;
	int rc, end;

	r->ttl = r->l.want.ttl ? r->l.want.ttl : 30 * SLU_SEC;
	rc = child_check(s->words[1], err);
	if (!rc)
		rc = take(&r->l, err);
	if (rc)
		return fail(&r->l, rc, err);
	rc = run_command(r, s->words + 1, err);
	end = r->lost ? 0 /* the lease has ended, and its changes are dropped */
		      : slu_lock_release(s->client, &r->l.lease, rc || s->exit ? SLU_ROLLBACK : SLU_COMMIT, NULL,
					 rc ? NULL : err);
	if (r->signals >= 0)
		close(r->signals);
	return rc ? rc : end;
}

const struct command cli_lock_run = {
	.name = "lock run",
	.summary = "run a command under the lease of a key",
	.usage = "KEY [options] -- COMMAND [ARGUMENT...]",
	.text = "Runs a command under the lease of a key, and extends the lease while it runs. The\n"
		"command receives the lease in SLUICE_LOCK_... variables, so `sluice state put` works in\n"
		"it; changes of the state are committed if the command exits 0, and dropped otherwise.\n"
		"Exits with the command's code, or with 4 after a lost lease, which kills the command.\n",
	.examples = "  sluice lock run backups/db -- ./backup.sh\n"
		    "  sluice lock run orders/nightly --block 0 --ttl 1m -- make report\n",
	.options = CLI_QUEUE,
	CLI_ARGS(ACQUIRE_ROWS),
	CLI_STATE(struct run, .l.block = "forever", .signals = -1),
	.run = run,
};
