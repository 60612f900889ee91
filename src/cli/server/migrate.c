/*
 * migrate.c - `sluice admin migrate-shard`: moves a queue from one shard to another.
 *
 * A call has the server move messages for one second; the command calls until nothing is left. It can be
 * killed at any point: the next run continues.
 */
#include "cli/lib/progress.h"
#include "cli/lib/session.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "core/locks/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	PAUSE_MS = 500 /* pause between calls while all remaining messages are leased */
};

struct migrate_command {
	struct session s;
	const char *command, *tenant, *from, *to;
	uint64_t batch;
	bool dry_run, verify, force, back;
	uint64_t moved, taken, batches;
	bool resumed;
};

struct migrate_outcome {
	uint64_t moved, taken, batches, left, leased, dead, damaged, idempotency_keys, results, there;
	bool by_hand, resumed, done;
	struct slice queues, skipped;
};

static const struct json_field outcome_fields[] = {
	JSON_FIELDS(u64, struct migrate_outcome, moved, taken, batches, left, leased, dead, damaged, idempotency_keys),
	JSON_FIELDS(u64, struct migrate_outcome, results, there),
	JSON_FIELDS(bool, struct migrate_outcome, by_hand, resumed, done),
	JSON_FIELDS(raw, struct migrate_outcome, queues, skipped),
};

static int
call(struct migrate_command *m, bool dry, struct migrate_outcome *out, struct slu_err *err)
{
	struct json_out w;
	struct slice answer;
	struct buf body;
	int rc;

	buf_init(&body, 64 * 1024);
	json_out_open(&w, &body);
	json_out_str(&w, "command", slice_of(m->command));
	if (m->tenant)
		json_out_str(&w, "tenant", slice_of(m->tenant));
	json_out_str(&w, "from", slice_of(m->back ? m->to : m->from));
	json_out_str(&w, "to", slice_of(m->back ? m->from : m->to));
	json_out_u64(&w, "batch", m->batch);
	json_out_bool(&w, "dry_run", dry);
	json_out_bool(&w, "force_expire", m->force);
	json_out_close(&w);
	query_path(&m->s.query, "/v1/admin/shards/move");
	rc = query_post(&m->s.query, buf_slice(&body), &answer, err);
	buf_release(&body);
	*out = (struct migrate_outcome){ 0 };
	return rc ? rc : query_read(answer, outcome_fields, COUNT(outcome_fields), out, err);
}

/* --- output ----------------------------------------------------------------------- */

static void
print_json(const struct migrate_command *m, const struct migrate_outcome *o, bool verified)
{
	printf("{\"command\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"dry_run\":%s,\"moved\":%" PRIu64
	       ",\"taken\":%" PRIu64 ",\"batches\":%" PRIu64 ",\"left\":%" PRIu64
	       ",\"leased\":%" PRIu64 ",\"dead\":%" PRIu64 ",\"damaged\":%" PRIu64
	       ",\"idempotency_keys\":%" PRIu64 ",\"results\":%" PRIu64 ",\"there\":%" PRIu64
	       ",\"by_hand\":%s,\"done\":%s,\"verified\":%s,\"queues\":%.*s,\"skipped\":%.*s}\n",
	       m->command, m->back ? m->to : m->from, m->back ? m->from : m->to,
	       m->dry_run ? "true" : "false", m->moved, m->taken, m->batches, o->left, o->leased,
	       o->dead, o->damaged, o->idempotency_keys, o->results, o->there,
	       o->by_hand ? "true" : "false", o->done ? "true" : "false",
	       verified ? "true" : "false", (int)o->queues.n, o->queues.p, o->skipped.n ? (int)o->skipped.n : 2,
	       o->skipped.n ? o->skipped.p : "[]");
}

static bool
has_locks(const struct migrate_command *m)
{
	return strcmp(m->command, LOCK_QUEUE) == 0;
}

static const char *
what_moves(const struct migrate_command *m)
{
	return has_locks(m) ? "lock keys" : "messages";
}

static void
print_plan(const struct migrate_command *m, const struct migrate_outcome *o)
{
	printf("%s: from %s to %s, in batches of %" PRIu64 "\n"
	       "  %-16s  %" PRIu64,
	       m->command, m->back ? m->to : m->from, m->back ? m->from : m->to, m->batch,
	       what_moves(m), o->left);
	if (!has_locks(m))
		printf(", %" PRIu64 " of them dead letters\n"
		       "  idempotency keys  %" PRIu64 "\n"
		       "  results           %" PRIu64,
		       o->dead, o->idempotency_keys, o->results);
	printf("\n"
	       "  leased            %" PRIu64 "%s\n"
	       "  on %s already  %" PRIu64 "\n"
	       "nothing was changed\n",
	       o->leased, m->force ? ": the move ends their leases" : ": the move waits for them",
	       m->back ? m->from : m->to, o->there);
	if (o->damaged)
		printf("  damaged           %" PRIu64 ": not moved\n", o->damaged);
}

static void
say_what_follows(struct migrate_command *m, const struct migrate_outcome *o)
{
	if (o->damaged)
		session_note(&m->s, "%" PRIu64 " damaged messages were not moved", o->damaged);
	if (o->by_hand)
		session_note(&m->s, "the configured map still names the old shard: change commandMappings and raise the "
				    "version, or the next reload moves the queue back");
}

struct skipped {
	struct slice namespace, shard;
};

static void
say_what_was_skipped(struct migrate_command *m, const struct migrate_outcome *o)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct skipped, namespace, .required = true),
		JSON_FIELD(text, struct skipped, shard, .required = true),
	};
	struct json r;

	if (!o->skipped.n)
		return; /* an older server does not send it */
	json_init(&r, o->skipped, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct skipped one = { 0 };

		json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &one);
		session_note(&m->s, "namespace %.*s is skipped: its override names shard %.*s; "
				    "--tenant %.*s moves it",
			     (int)one.namespace.n, one.namespace.p, (int)one.shard.n, one.shard.p,
			     (int)one.namespace.n, one.namespace.p);
	}
}

/* --- moving ------------------------------------------------------------------------ */

static int
move_all(struct migrate_command *m, struct migrate_outcome *o, struct slu_err *err)
{
	struct progress p;
	int rc = call(m, true, o, err);

	if (rc)
		return rc;
	progress_begin(&p, m->back ? "moving back" : "moving", o->left, false);
	do {
		rc = call(m, false, o, err);
		if (rc)
			break;
		m->moved += o->moved;
		m->taken += o->taken;
		m->batches += o->batches;
		m->resumed |= o->resumed;
		progress_at(&p, m->moved);
		if (!o->done && o->batches == 0) /* all remaining messages are leased */
			(void)nanosleep(&(struct timespec){ 0, PAUSE_MS * 1000000L }, NULL);
	} while (!o->done);
	progress_end(&p);
	return rc;
}

/* Verifies that nothing is left, and that the counts of both shards agree. */
static bool
is_right(struct migrate_command *m, const struct migrate_outcome *o)
{
	if (!o->done || o->left > o->damaged) {
		session_note(&m->s, "verify: %s still has %" PRIu64 " %s",
			     m->back ? m->to : m->from, o->left, what_moves(m));
		return false;
	}
	if (m->moved != m->taken && !m->resumed) {
		session_note(&m->s, "verify: %" PRIu64 " were taken from the shard and %" PRIu64 " stored", m->taken,
			     m->moved);
		return false;
	}
	return true;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct migrate_command *const m = (void *)s;
	struct migrate_outcome o = { 0 };
	bool verified = false;
	int rc;

	if (!m->command || !m->from || !m->to)
		return slu_fail(err, SLU_EINVAL, "missing --command, --from-shard or --to-shard");
	rc = m->dry_run ? call(m, true, &o, err) : move_all(m, &o, err);
	if (!rc && m->verify && !m->dry_run) {
		rc = call(m, true, &o, err);
		verified = !rc && is_right(m, &o);
		m->s.exit = verified ? m->s.exit : CLI_FAILED;
	}
	if (rc)
		return rc;
	if (m->s.json)
		print_json(m, &o, verified);
	else if (m->dry_run)
		print_plan(m, &o);
	else
		printf("%" PRIu64 " %s moved from %s to %s%s\n", m->moved, what_moves(m),
		       m->back ? m->to : m->from, m->back ? m->from : m->to,
		       verified ? ", verified" : "");
	say_what_was_skipped(m, &o);
	if (!m->dry_run)
		say_what_follows(m, &o);
	return 0;
}

const struct command cli_admin_migrate_shard = {
	.name = "admin migrate-shard",
	.summary = "move a queue from one shard to another",
	.usage = "--command C --from-shard A --to-shard B [options]",
	.text = "Moves a queue from one shard to another while producers and workers continue: messages\n"
		"in their order, delayed ones, dead letters, idempotency keys and results. Waits for\n"
		"leased messages. It can be stopped at any time and run again. Exits 1 if --verify finds\n"
		"a difference. A namespace whose override names a third shard is skipped unless --tenant\n"
		"names it.\n",
	.examples = "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --dry-run\n"
		    "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --verify\n"
		    "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --rollback\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--command", ARG_TEXT, AT(migrate_command, command), "the queue" },
		 { "--tenant", ARG_TEXT, AT(migrate_command, tenant), "only this namespace (all)" },
		 { "--from-shard", ARG_TEXT, AT(migrate_command, from), "shard that has the queue" },
		 { "--to-shard", ARG_TEXT, AT(migrate_command, to), "shard that gets the queue" },
		 { "--batch-size", ARG_COUNT, AT(migrate_command, batch), "messages in a batch (1000)" },
		 { "--dry-run", ARG_FLAG, AT(migrate_command, dry_run), "print what would move, change nothing" },
		 { "--verify", ARG_FLAG, AT(migrate_command, verify), "check the result; exit 1 if it is wrong" },
		 { "--force-expire", ARG_FLAG, AT(migrate_command, force), "end leases: messages are delivered again, locks are released" },
		 { "--rollback", ARG_FLAG, AT(migrate_command, back), "move the queue back: from B to A" }),
	CLI_STATE(struct migrate_command, .batch = 1000),
	.run = run,
};
