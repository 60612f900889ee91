/*
 * migrate.c - `sluice admin migrate-shard`: carry a queue from one shard to another.
 *
 * The server moves, for a second a call; this calls again until nothing is left. Killed at any
 * point and run again it goes on where it was.
 */
#include "cli/progress.h"
#include "cli/session.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"
#include "core/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	PAUSE_MS = 500 /* between calls, while all that is left is leased */
};

struct migrate {
	struct session s;
	const char *command, *tenant, *from, *to;
	uint64_t batch;
	bool dry_run, verify, force, back;
	uint64_t moved, taken, batches;
	bool resumed;
};

struct outcome {
	uint64_t moved, taken, batches, left, leased, dead, damaged, idempotency_keys, results, there;
	bool by_hand, resumed, done;
	struct slice queues, skipped;
};

static const struct json_field outcome_fields[] = {
	JSON_FIELD(u64, struct outcome, moved),
	JSON_FIELD(u64, struct outcome, taken),
	JSON_FIELD(u64, struct outcome, batches),
	JSON_FIELD(u64, struct outcome, left),
	JSON_FIELD(u64, struct outcome, leased),
	JSON_FIELD(u64, struct outcome, dead),
	JSON_FIELD(u64, struct outcome, damaged),
	JSON_FIELD(u64, struct outcome, idempotency_keys),
	JSON_FIELD(u64, struct outcome, results),
	JSON_FIELD(u64, struct outcome, there),
	JSON_FIELD(bool, struct outcome, by_hand),
	JSON_FIELD(bool, struct outcome, resumed),
	JSON_FIELD(bool, struct outcome, done),
	JSON_FIELD(raw, struct outcome, queues),
	JSON_FIELD(raw, struct outcome, skipped),
};

static int
call(struct migrate *m, bool dry, struct outcome *out, struct slu_err *err)
{
	struct json_out w;
	struct slice answer;
	struct buf body;
	struct json r;
	int rc;

	buf_init(&body, 64 * 1024);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
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
	if (rc)
		return rc;
	*out = (struct outcome){ 0 };
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, outcome_fields, COUNT(outcome_fields), JSON_LENIENT, out);
	return json_end(&r, err) ? SLU_EUNKNOWN : 0;
}

/* --- what is said ----------------------------------------------------------------- */

static void
print_json(const struct migrate *m, const struct outcome *o, bool verified)
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
has_locks(const struct migrate *m)
{
	return strcmp(m->command, LOCK_QUEUE) == 0;
}

static const char *
what_moves(const struct migrate *m)
{
	return has_locks(m) ? "lock keys" : "messages";
}

static void
print_plan(const struct migrate *m, const struct outcome *o)
{
	printf("%s: from %s to %s, in batches of %" PRIu64 "\n"
	       "  %-16s  %" PRIu64,
	       m->command, m->back ? m->to : m->from, m->back ? m->from : m->to, m->batch,
	       what_moves(m), o->left);
	if (!has_locks(m))
		printf(", of which %" PRIu64 " are dead letters\n"
		       "  idempotency keys  %" PRIu64 "\n"
		       "  results           %" PRIu64,
		       o->dead, o->idempotency_keys, o->results);
	printf("\n"
	       "  leased            %" PRIu64 "%s\n"
	       "  on %s already  %" PRIu64 "\n"
	       "nothing was changed\n",
	       o->leased, m->force ? ": their leases would end" : ": they are waited for",
	       m->back ? m->from : m->to, o->there);
	if (o->damaged)
		printf("  damaged           %" PRIu64 ": they stay\n", o->damaged);
}

static void
say_what_follows(struct migrate *m, const struct outcome *o)
{
	if (o->damaged)
		session_note(&m->s, "%" PRIu64 " damaged messages stay", o->damaged);
	if (o->by_hand)
		session_note(&m->s, "the map does not say so yet: let the configuration follow "
				    "(commandMappings, and a higher version), or the next one takes it back");
}

struct skipped {
	struct slice namespace, shard;
};

static void
say_what_was_skipped(struct migrate *m, const struct outcome *o)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct skipped, namespace, .required = true),
		JSON_FIELD(text, struct skipped, shard, .required = true),
	};
	struct json r;

	if (!o->skipped.n)
		return; /* an older server */
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
move_all(struct migrate *m, struct outcome *o, struct slu_err *err)
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
		if (!o->done && o->batches == 0) /* what is left is leased */
			(void)nanosleep(&(struct timespec){ 0, PAUSE_MS * 1000000L }, NULL);
	} while (!o->done);
	progress_end(&p);
	return rc;
}

/* Nothing may be left, and what was taken must be what was given. */
static bool
is_right(struct migrate *m, const struct outcome *o)
{
	if (!o->done || o->left > o->damaged) {
		session_note(&m->s, "verify: %s still has %" PRIu64 " %s",
			     m->back ? m->to : m->from, o->left, what_moves(m));
		return false;
	}
	if (m->moved != m->taken && !m->resumed) {
		session_note(&m->s, "verify: %" PRIu64 " were taken and %" PRIu64 " given", m->taken,
			     m->moved);
		return false;
	}
	return true;
}

static void
run(struct migrate *m)
{
	struct outcome o = { 0 };
	struct slu_err err;
	bool verified = false;

	if (m->dry_run ? call(m, true, &o, &err) : move_all(m, &o, &err)) {
		session_fail(&m->s, &err);
		return;
	}
	if (m->verify && !m->dry_run) {
		if (call(m, true, &o, &err)) {
			session_fail(&m->s, &err);
			return;
		}
		verified = is_right(m, &o);
		m->s.exit = verified ? m->s.exit : CLI_FAILED;
	}
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
}

int
cli_admin_migrate_shard(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin migrate-shard --command C --from-shard A --to-shard B [options]",
		.text = "Carry all that a shard has of a queue to another one, while producers and\n"
			"workers go on: messages in their order, delayed ones, dead letters, idempotency\n"
			"keys and results. What is leased is waited for. It can be stopped at any time\n"
			"and run again. Exits 1 when --verify finds a difference. A namespace whose override\n"
			"names a third shard is skipped unless --tenant names it.\n",
		.examples = "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --dry-run\n"
			    "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --verify\n"
			    "  sluice admin migrate-shard --command mail --from-shard primary --to-shard heavy --rollback\n",
	};
	struct migrate m = { .s = SESSION("admin migrate-shard"), .batch = 1000 };
	const struct arg args[] = {
		{ "--command", ARG_TEXT, &m.command, "the queue" },
		{ "--tenant", ARG_TEXT, &m.tenant, "only of this namespace (all)" },
		{ "--from-shard", ARG_TEXT, &m.from, "where it is" },
		{ "--to-shard", ARG_TEXT, &m.to, "where it goes" },
		{ "--batch-size", ARG_COUNT, &m.batch, "messages of a batch (1000)" },
		{ "--dry-run", ARG_FLAG, &m.dry_run, "say what there is, change nothing" },
		{ "--verify", ARG_FLAG, &m.verify, "look afterwards; exit 1 if it is not right" },
		{ "--force-expire", ARG_FLAG, &m.force, "end leases: work is delivered again, locks are free" },
		{ "--rollback", ARG_FLAG, &m.back, "move it back: from B to A" },
		SESSION_ROWS(&m.s),
	};

	if (!session_begin(&m.s, &help, &argc, &argv, args, COUNT(args)))
		return m.s.exit;
	if (!m.command || !m.from || !m.to) {
		struct slu_err err;

		(void)slu_fail(&err, SLU_EINVAL, "--command, --from-shard and --to-shard are needed");
		session_fail(&m.s, &err);
	} else {
		run(&m);
	}
	return session_end(&m.s);
}
