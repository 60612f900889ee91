/*
 * The log engine with its log in a store: crashes, lost folders, faults of the store, two nodes.
 */
#include "logkit.h"
#include "memstore.h"

#include "core/ledger/ledger.h"
#include "engine/log/logengine_private.h"
#include "engine/payload.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 << 10,
	WORK = 25 /* batches of a run that is cut */
};

static const struct store_ops *const rows[] = { &store_memory, NULL };

static struct {
	struct logkit *k;
	struct store *store;
	unsigned boots;
	char boot[16];
} my;

static void
next_boot(void)
{
	snprintf(my.boot, sizeof my.boot, "boot-%u", ++my.boots);
}

static void
begin(uint64_t seed)
{
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_open(&my.store, rows, &(struct store_conf){ .url = "memory://s" }, &err));
	my.k = logkit_new(SEGMENT, seed, false);
	my.k->max_payload = 3000;
	my.k->more.store = my.store;
	my.k->more.boot = my.boot;
	next_boot();
}

static void
end(void)
{
	logkit_free(my.k);
	store_close(my.store);
}

static unsigned
count(const char *prefix)
{
	return memstore_count(my.store, prefix);
}

/* FILE-7: after opening the store has the payloads of messages, and no others. */
static int
open_kit(void)
{
	int rc;

	memstore_set_clock(my.store, my.k->now);
	rc = logkit_open(my.k);
	if (!rc && !my.k->disk->dead)
		CHECK_EQ(my.k->named, count("0/payload/"), "payloads in the store");
	return rc;
}

static int
work(int n)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = logkit_step(my.k);
	return rc;
}

/* Cut the power at the n-th change of anything on disk. False: it needs no more. */
static bool
cut_at(unsigned long n, uint64_t seed)
{
	int rc;

	begin(77);
	simdisk_power_off(my.k->disk, n);
	rc = open_kit();
	if (!rc)
		rc = work(WORK);
	logkit_crash(my.k, seed);
	next_boot();
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	logkit_verify(my.k);
	end();
	return rc != 0;
}

/* LQ-36: a message that was returned with a delay, or whose lease was extended, is one or the other. */
TEST_LIMIT(the_power_may_go_at_any_change_of_the_disk, 600)
{
	unsigned long n = 1;

	while (cut_at(n, n))
		n += 1 + n / 20;
	CHECK(n > WORK); /* it did write */
}

TEST_LIMIT(the_process_is_killed_and_the_folder_is_lost_again_and_again, 600)
{
	begin(test_seed());
	for (int life = 0; life < 60; life++) {
		CHECK_EQ(0, open_kit());
		CHECK_EQ(0, work(20));
		switch (life % 4) {
		case 0:
			logkit_kill(my.k);
			break;
		case 1:
			logkit_crash(my.k, (uint64_t)life);
			next_boot();
			break;
		case 2:
			logkit_kill(my.k);
			simdisk_release(my.k->disk);
			simdisk_init(my.k->disk);
			break;
		default:
			logkit_close(my.k);
		}
	}
	CHECK_EQ(0, open_kit());
	CHECK(my.k->accepted > 500 && my.k->settled > 50 && my.k->files > 20);
	end();
}

TEST_LIMIT(answers_of_the_store_are_lost, 600)
{
	begin(test_seed());
	CHECK_EQ(0, open_kit());
	for (unsigned i = 0; i < 100; i++) {
		memstore_fault(my.store, STORE_PUT, i % 2 ? MEMSTORE_LOSE_ANSWER : MEMSTORE_LOSE_REQUEST, 1);
		memstore_fault(my.store, STORE_GET, MEMSTORE_LOSE_ANSWER, i % 3 == 0);
		CHECK_EQ(0, work(1));
	}
	logkit_kill(my.k);
	simdisk_release(my.k->disk);
	simdisk_init(my.k->disk);
	CHECK_EQ(0, open_kit());
	end();
}

/* The put of the next group blocks. */
static void
hold_next_group(void)
{
	struct store_names names = { 0 };
	char name[STORE_NAME_MAX];
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_list(my.store, "0/group/", "", STORE_PAGE_MAX, &names, &err));
	snprintf(name, sizeof name, "0/group/%020llu",
		 strtoull(names.names[names.n - 1] + strlen("0/group/"), NULL, 10) + 1);
	store_names_release(&names);
	memstore_hold(my.store, name);
}

TEST(LOGENGINE_11_a_run_is_open_until_the_store_has_its_group)
{
	struct slu_err err = { 0 };
	struct engine *e;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	e = my.k->e;
	hold_next_group();
	my.k->now += SLU_HOUR; /* leases end: the run has something to keep */
	CHECK_EQ(ENGINE_LATER, e->ops->run(e, NULL, my.k->now, my.k->now, &err));
	CHECK_EQ(ENGINE_LATER, e->ops->commit(e, &err));
	CHECK_EQ(ENGINE_LATER, e->ops->commit(e, &err));
	memstore_release(my.store);
	while (e->ops->commit(e, &err) == ENGINE_LATER)
		sched_yield();
	end();
}

/* LINE-10 */
TEST(LOGENGINE_11_the_clock_of_the_store_counts_at_open)
{
	const slu_time now = 1900000000 * SLU_SEC;

	begin(1);
	memstore_set_clock(my.store, now);
	CHECK_EQ(0, logkit_open(my.k)); /* the wall clock of the machine is behind */
	CHECK_EQ(now, my.k->found.now);
	CHECK(my.k->found.own_time);
	logkit_close(my.k);
	my.k->now = 0;
	memstore_set_clock(my.store, now - 24 * SLU_HOUR);
	CHECK_EQ(0, logkit_open(my.k));
	CHECK(my.k->found.now >= now);
	CHECK(my.k->found.now < now + SLU_HOUR);
	end();
}

static void
set_wall_ahead(slu_time wall)
{
	struct engine_conf conf = {
		.folder = my.k->folder, .disk = &my.k->disk->disk, .log = my.k->log, .wall = wall
	};
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	struct engine *e;

	CHECK_EQ(0, logengine_open(&e, &conf, &my.k->more, &found, &err));
	CHECK(found.now < wall);
	e->ops->close(e);
}

TEST(LOGENGINE_11_the_wall_clock_of_the_machine_does_not_count)
{
	begin(1);
	memstore_set_clock(my.store, 1900000000 * SLU_SEC);
	set_wall_ahead(1900000000 * SLU_SEC + 24 * SLU_HOUR);
	end();
}

/* LINE-11 */
TEST(LOGENGINE_11_numbers_go_on_behind_the_block_after_a_clean_close)
{
	uint64_t counter;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	counter = ledger_counter(logengine_ledger(my.k->e));
	logkit_close(my.k);
	CHECK_EQ(0, open_kit());
	CHECK(ledger_counter(logengine_ledger(my.k->e)) >= counter + (1 << 23));
	end();
}

/* LINE-11 */
TEST(LOGENGINE_11_a_block_of_numbers_is_renewed_when_half_is_left)
{
	uint64_t counter;

	begin(1);
	CHECK_EQ(0, open_kit());
	counter = ledger_counter(logengine_ledger(my.k->e)) + (1 << 23) + 1000;
	ledger_set_counter(logengine_ledger(my.k->e), counter);
	CHECK_EQ(0, work(5));
	logkit_close(my.k);
	CHECK_EQ(0, open_kit());
	CHECK(ledger_counter(logengine_ledger(my.k->e)) >= counter + (1 << 23));
	end();
}

TEST(LOGENGINE_11_a_damaged_folder_is_filled_from_the_store)
{
	size_t size;
	char *file;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(200));
	logkit_close(my.k);
	file = simdisk_content(my.k->disk, "log/00000002.log", &size);
	CHECK(file);
	file[700] ^= 1;
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	end();
}

/* LINE-15: the folder may be the only copy. */
TEST(LOGENGINE_11_a_store_that_went_back_is_refused_and_the_folder_stays)
{
	size_t size;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(20));
	logkit_close(my.k);
	memstore_lose(my.store, "0/group/", 1);
	CHECK_EQ(SLU_ECORRUPT, open_kit());
	CHECK(strstr(my.k->err.text, "0: the store went back: it lacks group "));
	CHECK(simdisk_content(my.k->disk, "log/00000001.log", &size));
	end();
}

TEST(LOGENGINE_11_a_node_that_lost_its_shard_stays_down)
{
	struct engine_conf conf = { .folder = "log", .wall = 0 };
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	struct simdisk disk;
	struct engine *other;
	int rc;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	simdisk_init(&disk);
	conf.disk = &disk.disk;
	conf.log = my.k->log;
	CHECK_EQ(0, logengine_open(&other, &conf, &my.k->more, &found, &err));
	my.k->now += SLU_HOUR;
	CHECK_EQ(SLU_EDOWN, logkit_run(my.k, NULL));
	CHECK(strstr(my.k->err.text, "another node has taken the shard: life "));
	CHECK_EQ(SLU_EDOWN, logkit_run(my.k, NULL));
	conf.disk = &my.k->disk->disk;
	for (int i = 0; i < 3; i++) {
		rc = my.k->e->ops->reopen(my.k->e, &conf, &found, &err);
		CHECK_EQ(SLU_EBUSY, rc);
		CHECK(strstr(err.text, "another node has taken the shard"));
	}
	other->ops->close(other);
	simdisk_release(&disk);
	my.k->e->ops->close(my.k->e);
	my.k->e = NULL;
	end();
}

/* False as soon as the store has more groups than before. */
static bool
until_opened(void *arg, uint64_t done, uint64_t all)
{
	(void)done;
	(void)all;
	return count("0/group/") <= *(unsigned *)arg;
}

TEST(LOGENGINE_11_a_reopen_that_ended_half_way_is_repeated)
{
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	struct engine_conf conf = { .folder = "log" };
	struct engine *e;
	unsigned groups;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	memstore_fault(my.store, STORE_PUT, MEMSTORE_REFUSE, 1);
	my.k->now += SLU_HOUR;
	CHECK(logkit_run(my.k, NULL) != 0);
	conf.disk = &my.k->disk->disk;
	conf.log = my.k->log;
	conf.wall = my.k->now;
	conf.reading = until_opened;
	conf.reading_arg = &groups;
	groups = count("0/group/");
	e = my.k->e;
	CHECK_EQ(SLU_ECANCELED, e->ops->reopen(e, &conf, &found, &err));
	CHECK(count("0/group/") > groups);
	conf.reading = NULL;
	CHECK_EQ(0, e->ops->reopen(e, &conf, &found, &err));
	end();
}

TEST(LOGENGINE_12_a_shard_that_is_given_up_has_all_groups_in_the_store)
{
	unsigned groups;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(10));
	groups = count("0/group/");
	memstore_lose(my.store, "0/group/", 2);
	memstore_fault(my.store, STORE_PUT, MEMSTORE_LOSE_REQUEST, 1); /* the connection is gone */
	(void)my.k->e->ops->release(my.k->e);
	CHECK(count("0/group/") > groups);
	end();
}

/* ---- LINE-9 ---- */

static int
reopen(struct slu_err *err)
{
	const struct engine_conf conf = {
		.folder = "log",
		.disk = &my.k->disk->disk,
		.log = my.k->log,
		.wall = my.k->now,
	};
	struct engine_found found = { 0 };

	return my.k->e->ops->reopen(my.k->e, &conf, &found, err);
}

/* The engine fails, and the next reopen is a new epoch. */
static void
lose_shard(void)
{
	memstore_fault(my.store, STORE_PUT, MEMSTORE_REFUSE, 1);
	my.k->now += SLU_HOUR;
	CHECK(logkit_run(my.k, NULL) != 0);
}

static int
enqueue(const struct message *m)
{
	struct op_put put = { .m = *m };
	struct op op = { .verb = OP_ENQUEUE, .space = m->space, .queue = m->queue, .puts = &put, .n_puts = 1 };
	struct slu_err err = { 0 };

	put.m.id = 1u << 30;
	CHECK_EQ(0, engine_run(my.k->e, &op, my.k->now, my.k->now, &err));
	return op.rc;
}

TEST(LINE_9_a_payload_of_an_older_epoch_is_neither_accepted_nor_kept)
{
	static char bytes[5000];
	struct message m = { .space = SLICE("s"), .queue = SLICE("q"), .payload = { bytes, sizeof bytes } };
	struct payload *file;
	struct slu_err err = { 0 };

	begin(1);
	my.k->more.most = 4000;
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	CHECK_EQ(0, payload_store(my.k->e, &m, &file, &err));
	CHECK_EQ(my.k->named + 1, count("0/payload/"));
	lose_shard();
	CHECK_EQ(SLU_EBUSY, reopen(&err)); /* while an op may name the file */
	payload_close(file);
	CHECK_EQ(my.k->named + 1, count("0/payload/"), "FILE-9: this node may have lost the shard");
	CHECK_EQ(0, reopen(&err), err.text);
	CHECK_EQ(SLU_EINVAL, enqueue(&m));
	CHECK_EQ(my.k->named, count("0/payload/"));
	m = (struct message){ .space = m.space, .queue = m.queue, .payload = { bytes, sizeof bytes } };
	CHECK_EQ(0, payload_store(my.k->e, &m, &file, &err));
	CHECK_EQ(0, enqueue(&m));
	payload_close(file);
	CHECK_EQ(my.k->named + 1, count("0/payload/"));
	end();
}

/* ---- FILE-9 ---- */

/* A payload is in the store, and no message names it. */
static void
upload_for_nothing(struct message *m)
{
	static char bytes[5000];
	struct payload *file;
	struct slu_err err = { 0 };

	begin(1);
	my.k->more.most = 4000;
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	*m = (struct message){ .space = SLICE("s"), .queue = SLICE("q"), .payload = { bytes, sizeof bytes } };
	CHECK_EQ(0, payload_store(my.k->e, m, &file, &err));
	payload_close(file);
	CHECK_EQ(my.k->named + 1, count("0/payload/"));
}

TEST(FILE_9_a_payload_without_a_message_goes_when_the_next_group_is_confirmed)
{
	struct message m;
	unsigned groups;

	upload_for_nothing(&m);
	groups = count("0/group/");
	CHECK(my.k->e->ops->next_due(my.k->e) <= my.k->now);
	CHECK_EQ(SLU_EINVAL, enqueue(&m)); /* changes nothing, and yet puts a group */
	CHECK_EQ(groups + 1, count("0/group/"));
	CHECK_EQ(my.k->named, count("0/payload/"));
	CHECK_EQ(0, logkit_run(my.k, NULL));
	CHECK_EQ(groups + 1, count("0/group/"), "one group is enough");
	end();
}

TEST(FILE_9_a_payload_without_a_message_stays_if_that_group_is_not_confirmed)
{
	struct message m;
	struct slu_err err = { 0 };

	upload_for_nothing(&m);
	lose_shard();
	CHECK_EQ(my.k->named + 1, count("0/payload/"));
	CHECK_EQ(0, reopen(&err), err.text);
	CHECK_EQ(my.k->named, count("0/payload/"), "LINE-9");
	end();
}

/* ---- LOGENGINE-16 ---- */

/* Runs a batch of one op. A lost answer costs the connections: the line puts an opening of its own. */
static void
run_op(struct op *op, bool answer_is_lost)
{
	struct slu_err err = { 0 };

	if (answer_is_lost)
		memstore_fault(my.store, STORE_PUT, MEMSTORE_LOSE_ANSWER, 1);
	op->route.arrived = my.k->now;
	CHECK_EQ(0, engine_run(my.k->e, op, my.k->now, my.k->now, &err), err.text);
	CHECK_EQ(0, op->rc);
}

/* The state after a return of a message that was claimed with or without trouble. */
static enum msg_state
claim_and_return(bool answer_is_lost)
{
	const struct message m = { .space = SLICE("s"), .queue = SLICE("q"), .payload = SLICE("x") };
	struct op_row row = { 0 };
	struct op op = { .verb = OP_CLAIM, .space = m.space, .queue = m.queue, .rows = &row, .max_rows = 1 };

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, enqueue(&m));
	op.claim.lease = SLU_MIN;
	run_op(&op, answer_is_lost);
	CHECK_EQ(1, op.n_rows);
	op_unpin(&op);
	op.verb = OP_RETURN;
	run_op(&op, false);
	end();
	return row.state;
}

/* The state of a key after the undo of an acquire: is it still held? */
static bool
acquire_and_undo(bool answer_is_lost)
{
	struct op op = { .verb = OP_ACQUIRE, .space = SLICE("s"), .queue = SLICE(LOCK_QUEUE), .lock.key = SLICE("k") };
	bool held;

	begin(1);
	CHECK_EQ(0, open_kit());
	op.lock.ttl = SLU_MIN;
	run_op(&op, answer_is_lost);
	op.verb = OP_RELEASE;
	op.lock.rollback = op.lock.undo = true;
	run_op(&op, false);
	held = op.lock.until > my.k->now;
	end();
	return held;
}

TEST(LOGENGINE_16_what_was_granted_while_connections_were_lost_is_not_given_back)
{
	CHECK_EQ(MSG_READY, claim_and_return(false));
	CHECK_EQ(MSG_NONE, claim_and_return(true));
	CHECK(!acquire_and_undo(false));
	CHECK(acquire_and_undo(true));
}

/* ---- LINE-13 ---- */

/* Runs a batch of one op while the store does not answer: the batch must be open until it does. */
static void
run_held(struct op *op)
{
	struct engine *const e = my.k->e;
	struct slu_err err = { 0 };

	hold_next_group();
	op->route.arrived = my.k->now;
	CHECK_EQ(ENGINE_LATER, e->ops->run(e, op, my.k->now, my.k->now, &err), op_verb_name(op->verb));
	CHECK_EQ(ENGINE_LATER, e->ops->commit(e, &err), op_verb_name(op->verb));
	memstore_release(my.store);
	while (e->ops->commit(e, &err) == ENGINE_LATER)
		sched_yield();
	CHECK_EQ(0, op->rc);
}

/* Without a store these need no sync. */
TEST(LINE_13_a_claim_an_extend_and_a_return_are_answered_when_the_store_has_them)
{
	const struct message m = { .space = SLICE("s"), .queue = SLICE("q"), .payload = SLICE("x") };
	struct op_row row = { 0 };
	struct op_item item = { 0 };
	struct op op = { .verb = OP_CLAIM, .space = m.space, .queue = m.queue, .rows = &row, .max_rows = 1 };

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, enqueue(&m));
	op.claim.lease = SLU_MIN;
	run_held(&op);
	CHECK_EQ(1, op.n_rows);
	op_unpin(&op);
	item = (struct op_item){ .id = row.id, .token = row.token, .time = SLU_HOUR };
	op.verb = OP_EXTEND;
	op.items = &item;
	op.n_items = 1;
	run_held(&op);
	CHECK(item.until >= my.k->now + SLU_HOUR);
	op.verb = OP_RETURN;
	op.n_items = 0;
	run_held(&op);
	CHECK_EQ(MSG_READY, row.state);
	end();
}

/* The owner of another node's payload. */
static struct message
brought(uint64_t counter)
{
	const struct logengine *const l = (struct logengine *)my.k->e;
	const struct message m = {
		.space = SLICE("s"),
		.queue = SLICE("q"),
		.file = l->files.epoch << LOGENGINE_FILE_EPOCH | LOGENGINE_FILE_BROUGHT | counter,
		.mark = 7,
		.payload_size = 5000,
	};
	char name[STORE_NAME_MAX];
	struct slu_err err = { 0 };

	snprintf(name, sizeof name, "0/payload/%020" PRIu64 "/%012" PRIu64 "-%08x.0", l->files.epoch,
		 LOGENGINE_FILE_BROUGHT | counter, 7);
	CHECK_EQ(STORE_OK, store_put(my.store, name, SLICE("as another node puts it"), STORE_IF_ABSENT, &err));
	return m;
}

TEST(FILE_8_the_owner_removes_what_another_node_brought_for_a_message_that_it_refuses)
{
	struct message none, first, second;
	unsigned before;

	upload_for_nothing(&none);
	CHECK_EQ(0, logkit_run(my.k, NULL));
	before = count("0/payload/");
	first = brought(1);
	second = brought(2);
	CHECK_EQ(0, enqueue(&first));
	my.k->e->ops->away->refuse(my.k->e, &first); /* of a copy of that node: a message names the file */
	my.k->e->ops->away->refuse(my.k->e, &second);
	my.k->e->ops->away->refuse(my.k->e, &second);
	CHECK_EQ(before + 2, count("0/payload/"));
	CHECK_EQ(SLU_EDOWN, enqueue(&second)); /* of a copy of that node */
	CHECK_EQ(before + 1, count("0/payload/"));
	CHECK_EQ(SLU_EDOWN, enqueue(&second));
	end();
}
