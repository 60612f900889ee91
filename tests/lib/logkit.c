#include "logkit_private.h"
#include "ledgerkit.h"
#include "store_rig.h"

#include "base/log.h"
#include "engine/attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KEEP (1000 * SLU_HOUR)

const char *const kit_queues[KIT_QUEUES] = { "alpha", "beta", "gamma" };
static const char *const spelled[KIT_QUEUES] = { "Alpha", "beta", "GAMMA" };

/* ---- The kit ---- */

static void
catch_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct logkit *k = arg;

	(void)level;
	snprintf(k->logged, sizeof k->logged, "%.*s", (int)n, line);
	if (strstr(k->logged, "cleaning stopped") && !kit_is_dead(k))
		k->stopped = true;
}

static void
begin_boot(struct logkit *k)
{
	snprintf(k->boot, sizeof k->boot, "boot-%u", ++k->boots);
}

static void
use_store(struct logkit *k)
{
	k->store = store_rig_open_kit("memory://log");
	k->more.store = k->store;
	k->more.boot = k->boot;
	begin_boot(k);
}

struct logkit *
logkit_new(uint32_t segment_size, uint64_t seed, bool no_sim)
{
	struct logkit *k = mmap(NULL, sizeof *k, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(k != MAP_FAILED);
	fakeclock_init(&k->clock, SLU_SEC, 1800000000 * SLU_SEC);
	k->log = slu_log_new(SLU_LOG_WARN, SLU_LOG_LOGFMT, catch_log, k);
	k->more = (struct logengine_conf){
		.clock = &k->clock.clock,
		.segment_size = segment_size,
		.no_helper = true,
		.secret = { 1, 2 },
	};
	if (no_sim)
		k->more.clock = NULL; /* a killed child must not leave it locked */
	if (!no_sim) {
		k->disk = malloc(sizeof *k->disk);
		CHECK(k->disk);
		simdisk_init(k->disk);
	}
	k->now = 1800000000 * SLU_SEC;
	k->random = seed;
	k->next_id = k->low = 1;
	k->enqueues = 40;
	k->max_payload = 600;
	k->folder = "log";
	if (!no_sim && getenv("KIT_STORE"))
		use_store(k);
	return k;
}

void
logkit_free(struct logkit *k)
{
	if (k->e)
		k->e->ops->close(k->e);
	store_close(k->store);
	if (k->disk)
		simdisk_release(k->disk);
	free(k->disk);
	slu_log_free(k->log);
	fakeclock_release(&k->clock);
	munmap(k, sizeof *k);
}

uint64_t
kit_dice(struct logkit *k, uint64_t n)
{
	return test_random(&k->random) % n;
}

struct wal_stats
logkit_stats(struct logkit *k)
{
	struct wal_stats stats;

	logengine_stats(k->e, &stats);
	return stats;
}

/* As soon as what happens in silence has happened. */
static uint64_t
digest(struct logkit *k)
{
	uint32_t budget = UINT32_MAX;
	struct change c;

	(void)ledger_tick(logengine_ledger(k->e), k->now, &budget, &c); /* nothing that is kept */
	return ledger_digest(logengine_ledger(k->e)) ^ locks_digest(logengine_locks(k->e));
}

int
logkit_open(struct logkit *k)
{
	const struct engine_conf conf = {
		.folder = k->folder,
		.disk = k->disk ? &k->disk->disk : NULL,
		.log = k->log,
		.wall = k->now,
	};
	const bool lossy = k->lossy;
	int rc;

	if (!k->more.most)
		k->more.most = k->max_payload - k->max_payload / 16;
	if (k->store)
		store_rig_set_clock(k->store, k->now);
	rc = logengine_open(&k->e, &conf, &k->more, &k->found, &k->err);
	if (rc) {
		k->e = NULL;
		return rc;
	}
	CHECK(k->found.now >= k->now);
	k->now = k->found.now;
	k->reopened++;
	if (k->live)
		CHECK_EQ(k->live, logkit_stats(k).live, "live bytes");
	k->live = 0;
	k->digest = digest(k);
	if (k->unverified)
		return 0;
	logkit_verify(k);
	if (!kit_is_dead(k) && !lossy)
		kit_check_files(k, k->named);
	return 0;
}

void
logkit_close(struct logkit *k)
{
	CHECK_EQ(0, logkit_settle(k));
	k->live = logkit_stats(k).live;
	k->e->ops->close(k->e);
	k->e = NULL;
}

void
logkit_doubt(struct logkit *k)
{
	for (uint32_t i = 0; i < k->n_held; i++)
		k->held[i].doubtful = true;
}

/* Free the engine without a word to the disk. */
static void
abandon(struct logkit *k)
{
	if (k->e) {
		pthread_mutex_lock(&k->disk->mtx); /* threads of a store may use the disk */
		k->disk->dead = true;
		pthread_mutex_unlock(&k->disk->mtx);
		k->e->ops->close(k->e);
	}
	k->e = NULL;
	k->live = 0;
	logkit_doubt(k);
}

void
logkit_crash(struct logkit *k, uint64_t seed)
{
	abandon(k);
	simdisk_crash(k->disk, seed);
	begin_boot(k);
}

void
logkit_kill(struct logkit *k)
{
	abandon(k);
	simdisk_kill(k->disk);
}

void
logkit_enqueue(struct op *op, struct slice space, struct slice queue, struct op_put *puts, uint32_t n)
{
	op_init(op, OP_ENQUEUE, space, queue, NULL, NULL);
	op->puts = puts;
	op->n_puts = n;
}

int
logkit_run(struct logkit *k, struct op *batch)
{
	EACH_OP(op, batch)
	{
		op->route.arrived = op->route.before = k->now;
	}
	return engine_run(k->e, batch, k->now, k->now, &k->err);
}

int
logkit_settle(struct logkit *k)
{
	int rc;

	do
		rc = logkit_run(k, NULL);
	while (!rc && k->e->ops->next_due(k->e) <= k->now);
	return rc;
}

/* ---- What a message is: all of it follows from its id ---- */

struct kit_msg *
kit_msg(struct logkit *k, uint64_t id)
{
	CHECK(id > 0 && id < KIT_IDS);
	return &k->msgs[id];
}

static size_t
payload_of(const struct logkit *k, uint64_t id, char *out)
{
	const size_t n = (size_t)((id * 2654435761u) % (k->max_payload + 1));

	for (size_t i = 0; i < n; i++)
		out[i] = (char)(id * 31 + i * 7);
	return n;
}

void
kit_describe(struct logkit *k, uint64_t id, struct message *m, struct kit_texts *t)
{
	const struct kit_msg *it = kit_msg(k, id);

	*m = (struct message){ .id = id, .space = KIT_SPACE, .prio = (int32_t)(id % 3) };
	m->queue = slice_of(kit_queues[it->queue]);
	m->payload = (struct slice){ t->payload, payload_of(k, id, t->payload) };
	m->keep = it->keep ? KEEP : 0;
	m->max_attempts = it->key ? 60000 : 3;
	if (it->key) {
		snprintf(t->key, sizeof t->key, "key-%u", it->key);
		m->key = slice_of(t->key);
	}
	if (it->idem) {
		snprintf(t->idem, sizeof t->idem, "once-%" PRIu64, id);
		m->idem = slice_of(t->idem);
	}
}

/* FILE-2 */
void
kit_check_files(struct logkit *k, uint32_t named)
{
	char prefix[64];
	const char *name;
	uint32_t n = 0;

	snprintf(prefix, sizeof prefix, "%s/payloads/", k->folder);
	for (unsigned i = 0; k->disk && (name = simdisk_name(k->disk, i)); i++)
		n += strncmp(name, prefix, strlen(prefix)) == 0;
	if (k->disk)
		CHECK_EQ(named, n, "payload files");
}

/* False: it cannot be read, and need not. */
static bool
read_payload(struct logkit *k, const struct op_row *row, char *out)
{
	const uint32_t half = row->payload.size / 2;
	int rc;

	rc = engine_read(k->e, &row->payload, half, row->payload.size - half, out + half, true,
			 &k->err);
	if (!rc)
		rc = engine_read(k->e, &row->payload, 0, half, out, true, &k->err);
	/* lossy: a message that is back because its end was lost has no file */
	if (rc && (kit_is_dead(k) || (rc == SLU_ECORRUPT &&
				      (k->lossy || kit_msg(k, row->id)->damaged))))
		return false;
	if (rc)
		test_fail(__FILE__, __LINE__, "read payload of %" PRIu64 ": %s", row->id,
			  k->err.text);
	return true;
}

void
kit_check_record(struct logkit *k, const struct op_row *row)
{
	static char payload[KIT_PAYLOAD];
	static char bytes[80000];
	static struct kit_texts t;
	struct message want, got;
	int rc;

	CHECK(row->record.size <= sizeof bytes);
	rc = engine_read(k->e, &row->record, 0, row->record.size, bytes, true, &k->err);
	if (rc && (kit_is_dead(k) || (rc == SLU_ECORRUPT && kit_msg(k, row->id)->damaged)))
		return;
	if (rc)
		test_fail(__FILE__, __LINE__, "read %" PRIu64 ": %s", row->id, k->err.text);
	CHECK_EQ(0, message_decode((struct slice){ bytes, row->record.size }, &got, &k->err));
	kit_describe(k, row->id, &want, &t);
	CHECK_EQ(row->id, got.id);
	CHECK_EQ(got.file != 0, row->payload.pin != NULL);
	if (got.file) {
		CHECK_EQ(want.payload.n, row->payload.size);
		if (!read_payload(k, row, payload)) {
			kit_msg(k, row->id)->damaged = true;
			return;
		}
		got.payload = (struct slice){ payload, row->payload.size };
	}
	CHECK(slice_eq(want.queue, got.queue) && slice_eq(want.key, got.key));
	CHECK(slice_eq(want.idem, got.idem) && slice_eq(want.payload, got.payload));
}

void
kit_text(char out[static 64], char what, uint64_t id)
{
	snprintf(out, 64, "%c-%" PRIu64 "%.*s", what, id, (int)(id % 30),
		 "..............................");
}

/* Returns whether there is a text: an end of a lease is kept as an attempt without an error. */
static bool
check_text(struct logkit *k, const struct op_ref *ref, char what, uint64_t id)
{
	char want[64], got[ATTEMPTS_MAX];
	struct slice text;

	kit_text(want, what, id);
	CHECK(ref->size <= sizeof got);
	if (engine_read(k->e, ref, 0, ref->size, got, true, &k->err)) {
		CHECK(kit_is_dead(k));
		return kit_msg(k, id)->error;
	}
	text = attempts_error((struct slice){ got, ref->size });
	CHECK((what == 'e' && text.n == 0) || slice_eq(slice_of(want), text));
	return text.n > 0;
}

/* ---- Verify: a scan against the model ---- */

static void
see_row(struct logkit *k, const struct op_row *row)
{
	struct kit_msg *m = kit_msg(k, row->id);
	bool has_error;

	if ((!k->lossy && (m->status == KIT_OUT || m->status == KIT_NEVER)) || m->seen)
		test_fail(__FILE__, __LINE__, "%" PRIu64 " is there, status %u, seen %d",
			  row->id, m->status, m->seen);
	if (row->state == MSG_LEASED)
		CHECK_STR(KIT_HOLDER, row->holder ? row->holder->p : "");
	m->seen = true;
	m->number = row->number;
	k->named += row->payload.pin != NULL;
	kit_check_record(k, row);
	has_error = row->error.pin && check_text(k, &row->error, 'e', row->id);
	if (m->error && !m->maybe && !k->lossy)
		CHECK(has_error);
	m->error = has_error;
	m->maybe = false;
}

/* False: the power went. */
static bool
scan(struct logkit *k)
{
	static struct op_row rows[KIT_EACH * 16];
	struct op op;

	op_init(&op, OP_LIST, (struct slice){ 0 }, (struct slice){ 0 }, NULL, NULL);
	op.rows = rows;
	op.max_rows = COUNT(rows);
	do {
		if (logkit_run(k, &op)) {
			CHECK(kit_is_dead(k));
			op_unpin(&op);
			return false;
		}
		CHECK_EQ(0, op.rc);
		for (uint32_t i = 0; i < op.n_rows; i++)
			see_row(k, &rows[i]);
		op_unpin(&op);
	} while (op.cursor);
	return true;
}

static void
settle_doubts(struct logkit *k, uint64_t id)
{
	struct kit_msg *m = kit_msg(k, id);

	if (k->lossy) {
		m->state = 0;
		m->status = m->seen ? KIT_IN : KIT_OUT;
		m->result = false;
		m->forgot = true;
	}
	if (m->status == KIT_IN && !m->seen)
		test_fail(__FILE__, __LINE__, "%" PRIu64 " was accepted and is lost", id);
	if (m->status == KIT_MAYBE_IN && !m->seen)
		m->idem = false; /* it was not used */
	if (m->status != KIT_NEVER && m->status != KIT_OUT)
		m->status = m->seen ? KIT_IN : KIT_OUT;
	m->seen = false;
}

static void
check_result(struct logkit *k, uint64_t id)
{
	struct op op;

	op_init(&op, OP_RESULT, KIT_SPACE, (struct slice){ 0 }, NULL, NULL);
	op.id = id;
	if (logkit_run(k, &op)) {
		CHECK(kit_is_dead(k));
		op_unpin(&op);
		return;
	}
	if (op.rc || !op.result.pin)
		test_fail(__FILE__, __LINE__, "the result of %" PRIu64 " is lost", id);
	(void)check_text(k, &op.result, 'r', id);
	op_unpin(&op);
}

struct spelling
kit_spelling(int queue)
{
	return (struct spelling){ SLICE("Ns"), slice_of(spelled[queue]) };
}

/* Of those that are there. */
static void
check_spellings(struct logkit *k)
{
	k->unspelled |= k->lossy;
	for (int i = 0; i < KIT_QUEUES && !k->unspelled; i++) {
		struct op_queue q;
		struct op op;

		op_init(&op, OP_STATS, KIT_SPACE, slice_of(kit_queues[i]), NULL, NULL);
		op.queues = &q;
		if (logkit_run(k, &op)) {
			CHECK(kit_is_dead(k));
			return;
		}
		if (op.rc)
			continue;
		CHECK_STR(spelled[i], q.shown);
		CHECK_STR("Ns", q.space_shown);
	}
}

static void
check_policies(struct logkit *k)
{
	for (int i = 0; i < KIT_QUEUES; i++) {
		struct op op;

		op_init(&op, OP_POLICY_GET, KIT_SPACE, slice_of(kit_queues[i]), NULL, NULL);
		if (logkit_run(k, &op)) {
			CHECK(kit_is_dead(k));
			return;
		}
		if (k->policy[i] > 0 && !k->lossy)
			CHECK_EQ(k->policy[i], op.policy.lease);
		k->policy[i] = op.policy.lease;
	}
}

static void
check_counters(struct logkit *k)
{
	struct op_queue q[KIT_QUEUES + 1];
	uint64_t want = 0, got = 0;
	struct op op;

	op_init(&op, OP_QUEUES, KIT_SPACE, (struct slice){ 0 }, NULL, NULL);
	op.queues = q;
	op.max_queues = COUNT(q);
	if (logkit_run(k, &op)) {
		CHECK(kit_is_dead(k));
		return;
	}
	for (uint32_t i = 0; i < op.n_queues; i++)
		for (int s = MSG_READY; s < MSG_STATES; s++)
			got += q[i].count[s];
	for (uint64_t id = 1; id < k->next_id; id++)
		want += kit_msg(k, id)->status == KIT_IN;
	CHECK_EQ(want, got, "counters");
}

void
logkit_verify(struct logkit *k)
{
	for (uint64_t id = 1; id < k->next_id; id++) /* a child may have been killed here */
		kit_msg(k, id)->seen = false;
	k->named = 0;
	if (!scan(k))
		return;
	for (uint64_t id = 1; id < k->next_id; id++)
		settle_doubts(k, id);
	for (uint64_t id = 1; id < k->next_id; id++)
		if (kit_msg(k, id)->result)
			check_result(k, id);
	check_policies(k);
	check_spellings(k);
	check_counters(k);
	if (!kit_check_locks(k))
		return;
	k->lossy = false;
	CHECK(k->found.highest_id < k->next_id);
	CHECK(!k->stopped || k->may_stop || kit_is_dead(k));
}
