/*
 * logengine.c - the log engine: open, run, read, close.
 */
#include "engine/log/logengine_private.h"

#include "engine/tenure.h"

#include <stdio.h>

enum {
	RESERVE = 2,                   /* spare segments: LOGENGINE-6 */
	MESSAGES_PER_SEGMENT = 500000, /* one more spare for so many, if segments have full size */
	ROOM_LOW = 1 << 20,            /* with less room than this the disk counts as full */
	KEPT_GUESS = 128,              /* first guess of the bytes of a remembered key's record */
	MOST = 1 << 20,                /* LOGENGINE-7 */
	BLOCK = 1 << 20,               /* numbers reserved at a time: LOGENGINE-3 */
	STORE_BLOCK = 1 << 24,         /* the same for a log in a store: LOGENGINE-11 */
	WAITING_MAX = 64 << 20         /* sync if doomed payload files have more bytes than this */
};

static struct logengine *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct logengine, engine);
}

/* LOGENGINE-5 */
static int
fail(struct logengine *l, enum slu_code code, struct slu_err *err)
{
	l->failed = l->told = true;
	logengine_note_broken(l);
	logengine_files_shut(&l->files, true);
	snprintf(l->why, sizeof l->why, "%s", err->text);
	log_error(l->log, "shard failed", F_STR("why", l->why));
	return slu_fail(err, code, "the shard has failed: %.200s", l->why);
}

static void
begin(struct logengine *l, slu_time now)
{
	l->now = now > l->now ? now : l->now;
	l->mono = clock_mono(l->clock);
	l->must_sync = false;
	l->owed = l->owed_largest = 0;
	l->prefetch.scans = 0;
	wal_begin(l->wal, l->now);
	logengine_store_begin(l);
}

/* ---- Open and close ---- */

/* Unpin the records and files that the engine reads for its own sake. */
static void
let_go(struct logengine *l)
{
	logengine_backups_end(l);
	logengine_prefetch_end(l);
	wal_cursor_close(&l->clean.cursor);
}

static void
empty(struct logengine *l)
{
	const size_t kept = offsetof(struct logengine, ledgerengine);

	logengine_helper_stop(l);
	logengine_prefetch_stop(l);
	let_go(l);
	logengine_store_close(l);
	(void)wal_close(l->wal); /* logs a failure */
	ledgerengine_release(&l->ledgerengine);
	places_release(&l->places);
	logengine_files_close(&l->files);
	buf_release(&l->scratch);
	mem_free(l->queues);
	mem_free(l->purging);
	memset((char *)l + kept, 0, sizeof *l - kept);
}

void
logengine_free(struct logengine *l)
{
	empty(l);
	logengine_transit_release(&l->transit);
	logengine_files_release(&l->files);
	mem_free(l->leave.folder);
	mem_free(l);
}

static int
new_books(struct logengine *l, const struct engine_conf *conf,
	  const struct hash_key *secret, struct locks **locks, struct slu_err *err)
{
	struct ledger_conf lc = {
		.secret = *secret,
		.max_idem = conf->max_idem,
		.max_queues = conf->max_queues,
		.drop = logengine_drop,
		.size = logengine_size,
		.drop_arg = l,
	};
	int rc;

	rc = secret->k0 || secret->k1 ? 0 : hash_key_init(&lc.secret, err);
	return rc ? rc : ledgerengine_books(&lc, &l->ledger, locks, err);
}

/* An empty ledger; the log is not open. */
static int
fill(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	const struct hash_key *const secret = &l->more.secret;
	uint64_t random = secret->k0 ^ secret->k1; /* with a fixed secret a run can be repeated */
	struct locks *locks;
	int rc;

	rc = random ? 0 : hash_random(&random, sizeof random, err);
	if (!rc)
		rc = new_books(l, conf, secret, &locks, err);
	if (rc)
		return rc;
	l->clock = l->more.clock ? l->more.clock : &clock_system;
	l->log = conf->log;
	l->clean.kept = KEPT_GUESS;
	l->block = logengine_is_stored(l, conf) ? STORE_BLOCK : BLOCK;
	l->renew = logengine_is_stored(l, conf) ? STORE_BLOCK / 2 : 0;
	places_init(&l->places);
	buf_init(&l->scratch, SIZE_MAX);
	ledgerengine_init(&l->ledgerengine, &logengine_keeping, &l->engine, l->ledger, locks, conf, random);
	return 0;
}

int
logengine_new(struct logengine **out, const struct engine_conf *conf, const struct logengine_conf *more,
	      struct slu_err *err)
{
	struct logengine *l = mem_zalloc(sizeof *l);
	int rc;

	if (!l)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	l->engine.ops = &engine_log;
	l->more = *more;
	l->lag.in_store = logengine_is_stored(l, conf);
	l->lag.has_front = logengine_has_front(l, conf);
	l->most = more->most ? more->most : MOST;
	logengine_files_init(&l->files);
	logengine_transit_open(&l->transit, conf);
	rc = fill(l, conf, err);
	if (rc) {
		logengine_transit_release(&l->transit);
		logengine_files_release(&l->files);
		mem_free(l);
		return rc;
	}
	*out = l;
	return 0;
}

static void
synced(void *arg, slu_time took)
{
	struct logengine *l = arg;

	meter_time(&l->ledgerengine.meter, METER_SYNC, took);
	ledgerengine_synced(&l->ledgerengine, took);
}

static bool
reading(void *arg, uint64_t done, uint64_t all)
{
	const struct logengine *l = arg;

	return l->conf->reading(l->conf->reading_arg, done, all);
}

static const enum wal_mode modes[] = {
	[ENGINE_SYNC] = WAL_SYNC,
	[ENGINE_SYNC_INTERVAL] = WAL_INTERVAL,
	[ENGINE_SYNC_NONE] = WAL_NONE,
};

/* Prepares the log for a store, if it lives in one: LOGENGINE-11. */
static int
find_place(struct logengine *l, const struct engine_conf *conf, struct wal_conf *wc,
	   struct slu_err *err)
{
	int rc;

	if (!logengine_is_stored(l, conf))
		return logengine_refuse_cache(conf, err);
	rc = logengine_store_open(l, conf, err);
	if (rc)
		return rc;
	wc->mirror = mirror_hook(l->stored.mirror);
	if (l->stored.front.on)
		return 0;
	wc->synced = NULL; /* nothing is synced */
	if (!wc->segment_size)
		wc->segment_size = wc->first_size = MIRROR_SEGMENT_SIZE;
	return 0;
}

int
logengine_open_wal(struct logengine *l, const struct engine_conf *conf, bool read_only,
		   struct slu_err *err)
{
	const struct logengine_conf *const more = &l->more;
	struct wal_conf wc = {
		.disk = conf->disk,
		.clock = l->clock,
		.log = conf->log,
		.folder = conf->folder,
		.segment_size = more->segment_size,
		.first_size = more->segment_size ? more->first_size : WAL_FIRST_SIZE,
		.least_room = conf->disk ? 0 : LOGENGINE_LEAST_ROOM,
		.max_segments = more->max_segments,
		.mode = modes[conf->sync],
		.interval = conf->sync == ENGINE_SYNC_INTERVAL ? conf->sync_interval : 0,
		.reserve = RESERVE,
		.read_only = read_only,
		.synced = synced,
		.reading = conf->reading ? reading : NULL,
		.arg = l,
	};
	int rc;

	if (!conf->folder || more->segment_size > LOGENGINE_SEGMENT_SIZE_MAX)
		return slu_fail(err, SLU_EINVAL,
				"invalid log settings; expected a folder, and segments of at most "
				"%d bytes",
				LOGENGINE_SEGMENT_SIZE_MAX);
	rc = logengine_files_open(&l->files, conf->disk, conf->log, conf->folder, read_only, err);
	if (rc)
		return rc;
	l->largest_segment = more->segment_size ? more->segment_size : WAL_SEGMENT_SIZE;
	l->conf = conf;
	rc = read_only ? 0 : find_place(l, conf, &wc, err);
	if (!rc)
		rc = wal_open(&l->wal, &wc, logengine_replay, l, err);
	l->conf = NULL;
	if (rc)
		l->wal = NULL;
	else
		logengine_locks_replayed(l);
	l->files.wal = l->wal;
	return rc;
}

/* Writes the first group of this life: the ceiling (LOGENGINE-3), and that the log was opened, which
 * extends the leases that replay found. */
static int
start(struct logengine *l, slu_time wall, struct slu_err *err)
{
	struct wal_stats stats;
	struct change opened;
	int rc;

	wal_stats(l->wal, &stats);
	if (!l->closed || l->stored.mirror)
		ledger_set_counter(l->ledger, l->ceiling);
	begin(l, wall > stats.time ? wall : stats.time);
	ledger_opened(l->ledger, l->now, &opened);
	rc = logengine_keeping.keep(&l->ledgerengine, &opened, (struct slice){ 0 }, err);
	if (!rc)
		rc = ledger_apply(l->ledger, &opened);
	if (!rc)
		ledgerengine_update_state(l->ledgerengine.locks, &opened);
	if (!rc)
		rc = logengine_reserve(l, WAL_FREE, 0, err);
	if (rc)
		return rc;
	logengine_put_ceiling(l, ledger_counter(l->ledger));
	l->reserve = RESERVE;
	rc = wal_commit(l->wal, true, err);
	return rc ? rc : logengine_store_wait(l, err);
}

/* The time of the shard at open: of the wall clock, or of the store's clock (LOGENGINE-11). Leases
 * are extended from then on, however long the replay took. */
static int
time_at_open(struct logengine *l, slu_time wall, slu_time began, slu_time *now, struct slu_err *err)
{
	*now = wall + (clock_boot(l->clock) - began);
	return l->stored.mirror ? logengine_store_now(l, now, err) : 0;
}

/* Reports batches that are set aside. Cleaning may have relocated a part of one: CLEAN-8. */
static int
note_left(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	uint32_t q = SLAB_NONE;
	int rc = 0;

	while (!rc && (q = ledger_queue_next(l->ledger, q)) != SLAB_NONE) {
		struct ledger_queue_view view;
		struct ledger_moving moving;

		ledger_moving(l->ledger, q, &moving);
		if (!moving.batch)
			continue;
		rc = logengine_reserve_queue(l, q, err);
		if (rc)
			break;
		l->queues[q].retake = true;
		ledger_queue_get(l->ledger, q, &view);
		if (conf->left)
			conf->left(conf->left_arg, slice_of(view.space_name), slice_of(view.name));
	}
	return rc;
}

/* Read the log back into the empty ledger, and begin a new life of it. */
static int
read_back(struct logengine *l, const struct engine_conf *conf, struct engine_found *found,
	  struct slu_err *err)
{
	const slu_time began = clock_boot(l->clock);
	slu_time now = 0;
	int rc;

	rc = logengine_open_wal(l, conf, false, err);
	if (!rc)
		rc = time_at_open(l, conf->wall, began, &now, err);
	if (!rc)
		rc = start(l, now, err);
	if (!rc) {
		logengine_store_files(l);
		rc = logengine_files_settle(&l->files, err);
	}
	if (!rc)
		rc = note_left(l, conf, err);
	if (!rc)
		ledgerengine_limit_end(&l->ledgerengine);
	if (!rc && !l->more.no_helper)
		rc = logengine_helper_start(l, err);
	if (!rc && !l->more.no_helper)
		rc = logengine_prefetch_start(l, conf, err);
	if (rc)
		return rc;
	logengine_files_shut(&l->files, false);
	*found = (struct engine_found){
		.now = l->now,
		.highest_id = l->highest_id,
		.own_time = l->stored.mirror,
		.patience = logengine_store_patience(l, conf),
		.epoch = conf->tenure ? mirror_facts(l->stored.mirror).line.epoch : 0,
	};
	l->ledgerengine.era = (uint16_t)found->epoch;
	if (conf->tenure && conf->tenure->pins)
		conf->tenure->pins(conf->tenure->arg, conf->lane, l->stored.front.on);
	return 0;
}

/* The same. If the folder of a log in a store is damaged, the store fills it. */
static int
read_back_or_refill(struct logengine *l, const struct engine_conf *conf,
		    struct engine_found *found, struct slu_err *err)
{
	int rc;

	rc = read_back(l, conf, found, err);
	if (rc && logengine_store_refill(l, rc)) {
		log_warn(l->log, "folder damaged, filled from the store", F_STR("why", err->text));
		empty(l);
		rc = fill(l, conf, err);
		if (!rc)
			rc = read_back(l, conf, found, err);
	}
	l->owned |= !rc && l->stored.mirror;
	l->refilled = false;
	return rc;
}

/* LOGENGINE-15 */
static int
read_back_in_spare(struct logengine *l, const struct engine_conf *conf, struct engine_found *found,
		   struct slu_err *err)
{
	struct engine_conf spare;
	int rc = logengine_in_spare(l, conf, &spare, err);

	if (!rc)
		rc = read_back_or_refill(l, &spare, found, err);
	if (!rc)
		logengine_mark_left(l, conf);
	else if (!l->leave.broken)
		l->leave.left = false; /* the next open tries the front folder again */
	return rc;
}

/* The same in the folder of the settings, or in the spare folder. */
static int
read_back_somewhere(struct logengine *l, const struct engine_conf *conf, struct engine_found *found,
		    struct slu_err *err)
{
	int rc = 0;

	if (l->leave.broken && !l->leave.left) {
		rc = logengine_leave(l, conf, err);
	} else if (!l->leave.left) {
		rc = read_back_or_refill(l, conf, found, err);
		if (!rc || !logengine_may_leave(l, conf, rc))
			return rc;
		empty(l);
		rc = fill(l, conf, err);
	}
	return rc ? rc : read_back_in_spare(l, conf, found, err);
}

static void
stay_closed(struct logengine *l, const char *why)
{
	l->failed = l->told = l->given = true;
	logengine_files_shut(&l->files, true);
	snprintf(l->why, sizeof l->why, "%s", why);
}

/* LOGENGINE-12 */
static void
wait_for_order(struct logengine *l, const struct engine_conf *conf, struct engine_found *found)
{
	stay_closed(l, "this node has not taken the shard");
	if (conf->tenure->waits)
		conf->tenure->waits(conf->tenure->arg, conf->lane, conf->folder, logengine_is_pinned(l, conf));
	*found = (struct engine_found){
		.own_time = true,
		.patience = logengine_store_patience(l, conf),
	};
}

int
logengine_open(struct engine **out, const struct engine_conf *conf, const struct logengine_conf *more,
	       struct engine_found *found, struct slu_err *err)
{
	struct logengine *l = NULL;
	int rc = logengine_new(&l, conf, more, err);

	if (rc)
		return rc;
	if (conf->tenure) {
		wait_for_order(l, conf, found);
		*out = &l->engine;
		return 0;
	}
	rc = read_back_somewhere(l, conf, found, err);
	if (rc) {
		logengine_free(l);
		return rc;
	}
	*out = &l->engine;
	return 0;
}

/* LOGENGINE-9 */
static int
reopen_engine(struct engine *e, const struct engine_conf *conf, struct engine_found *found,
	      struct slu_err *err)
{
	struct logengine *l = of_engine(e);
	int rc;

	let_go(l);
	if (!logengine_files_is_idle(&l->files)) /* so that no thread wakes the helper */
		return slu_fail(err, SLU_EBUSY, "payload files are in use");
	logengine_helper_stop(l);
	if (!logengine_files_is_idle(&l->files) || wal_is_pinned(l->wal))
		return slu_fail(err, SLU_EBUSY, "records are being read");
	empty(l);
	rc = fill(l, conf, err);
	if (!rc)
		rc = read_back_somewhere(l, conf, found, err);
	if (rc) {
		snprintf(l->why, sizeof l->why, "%s", err->text);
		empty(l);
		return rc;
	}
	l->failed = l->told = l->given = false;
	return 0;
}

/* LOGENGINE-12 */
static uint64_t
release(struct engine *e)
{
	struct logengine *l = of_engine(e);

	logengine_front_drain(l);
	logengine_store_end(l);
	stay_closed(l, "this node has given the shard up");
	let_go(l);
	logengine_helper_stop(l);
	logengine_store_give(l);
	if (logengine_files_is_idle(&l->files) && !wal_is_pinned(l->wal))
		empty(l);
	return l->put_epoch;
}

static int
open_engine(struct engine **out, const struct engine_conf *conf,
	    struct engine_found *found, struct slu_err *err)
{
	return logengine_open(out, conf, &(struct logengine_conf){ 0 }, found, err);
}

/* Writes CLOSED, so that the next open does not skip a block of numbers. Nothing is lost
 * without it. */
static void
say_closed(struct logengine *l)
{
	const struct logengine_entry entry = {
		.type = LOGENGINE_CLOSED,
		.change = { .number = ledger_counter(l->ledger) },
		.highest = l->highest_id,
	};
	struct logengine_bytes bytes;
	struct slu_err err;

	begin(l, l->now);
	logengine_encode(&entry, &bytes);
	if (logengine_reserve(l, WAL_FREE, bytes.size, &err))
		return;
	(void)logengine_append(l, entry.type, bytes.parts, bytes.n);
	(void)wal_commit(l->wal, true, &err); /* logs a failure */
}

static int
close_engine(struct engine *e)
{
	struct logengine *l = of_engine(e);
	int rc;

	logengine_helper_stop(l);
	logengine_prefetch_stop(l);
	logengine_front_drain(l);
	if (!l->failed && !l->stored.mirror) /* LOGENGINE-11: the next open would not rely on it */
		say_closed(l);
	logengine_files_sweep(&l->files);
	let_go(l);
	logengine_store_close(l);
	rc = l->failed && !l->given ? SLU_EDOWN : 0;
	rc = wal_close(l->wal) ? SLU_EDOWN : rc;
	l->wal = NULL;
	logengine_free(l);
	return rc;
}

/* ---- Run ---- */

static void
set_reserve(struct logengine *l)
{
	struct ledger_size size;
	struct locks_size locks;
	uint32_t reserve;
	uint64_t each;

	ledger_size(l->ledger, &size);
	locks_size(l->ledgerengine.locks, &locks);
	each = (uint64_t)MESSAGES_PER_SEGMENT * wal_segment_size(l->wal) / l->largest_segment;
	reserve = RESERVE + (uint32_t)((size.messages + locks.keys) / (each ? each : 1));
	if (reserve == l->reserve)
		return;
	l->reserve = reserve;
	wal_set_reserve(l->wal, reserve);
}

/* Releases payload files whose messages are gone: FILE-3. With a front folder when the store has the record
 * that ends the message. */
static int
free_files(struct logengine *l, struct slu_err *err)
{
	struct wal_stats stats;
	int rc = 0;

	if (list_is_empty(&l->files.doomed))
		return 0;
	if (l->files.waiting > WAITING_MAX)
		rc = wal_flush(l->wal, err);
	wal_stats(l->wal, &stats);
	if (l->stored.mirror && !l->stored.front.on)
		stats.seq = stats.durable = mirror_facts(l->stored.mirror).line.last;
	else if (l->stored.mirror)
		stats.durable = l->stored.front.home_seq;
	logengine_files_committed(&l->files, stats.seq, stats.durable);
	return rc;
}

/* Work after the commit. The batch has succeeded: a failure here fails the next run. Part of commit,
 * because it may write and sync. */
static void
after_commit(struct logengine *l)
{
	struct slu_err err;
	int rc;

	no_err(&err);
	rc = logengine_clean_end(l, &err);
	if (!rc)
		rc = wal_tick(l->wal, &err);
	if (!rc)
		rc = free_files(l, &err);
	if (!rc)
		rc = logengine_front_full(l, &err);
	if (rc) {
		(void)fail(l, SLU_EDOWN, &err);
		l->told = false;
	}
	set_reserve(l);
	logengine_helper_wake(l);
}

static int
run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct logengine *l = of_engine(e);
	int rc;

	if (l->failed) {
		l->told = true;
		return slu_fail(err, SLU_EDOWN, "the shard has failed: %.200s", l->why);
	}
	begin(l, now);
	logengine_backups_tick(l);
	logengine_clean_slice(l);
	rc = ledgerengine_run(&l->ledgerengine, batch, due, l->now, err);
	if (rc) {
		wal_drop(l->wal);
		return fail(l, SLU_EDOWN, err);
	}
	return ENGINE_LATER;
}

/* LOGENGINE-11 */
static int
commit(struct engine *e, struct slu_err *err)
{
	struct logengine *l = of_engine(e);
	int rc = 0;

	if (!l->stored.sent)
		rc = wal_commit(l->wal, l->must_sync, err);
	if (rc)
		return fail(l, l->appended ? SLU_EUNKNOWN : SLU_EDOWN, err);
	rc = logengine_store_commit(l, err);
	if (rc == ENGINE_LATER)
		return rc;
	if (rc) /* SLU_EBUSY: the line does not have this group; a front folder may hand it in later */
		return fail(l, rc == SLU_EBUSY && !l->stored.front.on ? SLU_EDOWN : SLU_EUNKNOWN, err);
	after_commit(l);
	return 0;
}

/* When the next sync is due, in shard time. */
static slu_time
sync_due(const struct logengine *l)
{
	const slu_time due = wal_due(l->wal);

	if (due == SLU_NEVER)
		return due;
	return time_add(l->now, due > l->mono ? due - l->mono : 0);
}

static slu_time
next_due(struct engine *e)
{
	struct logengine *l = of_engine(e);
	slu_time due;

	if (l->failed && l->told)
		return SLU_NEVER;
	if (l->failed || l->clean.again || l->files.wants_group)
		return l->now;
	due = ledgerengine_next_due(&l->ledgerengine);
	due = logengine_backups_due(l) < due ? logengine_backups_due(l) : due;
	if (l->stored.front.on && logengine_front_due(l) < due)
		due = logengine_front_due(l);
	return sync_due(l) < due ? sync_due(l) : due;
}

/* ---- Payload files ---- */

static uint64_t
most(const struct engine *e)
{
	return CONTAINER(e, const struct logengine, engine)->most;
}

/* FILE-8: while another node owns the shard, the file is for that node. */
static int
open_file(struct engine *e, struct engine_file **out, struct slu_err *err)
{
	struct logengine *l = of_engine(e);
	struct slu_err away;
	int rc = logengine_writer_open(&l->files, out, err);

	if (rc == SLU_EDOWN && logengine_transit_write(&l->transit, out, &away) == 0)
		rc = 0;
	return rc;
}

static const struct engine_files payload_files = {
	.most = most,
	.open = open_file,
	.write = logengine_writer_write,
	.seal = logengine_writer_seal,
	.close = logengine_writer_close,
};

/* ---- Looking ---- */

void
logengine_stats(struct engine *e, struct wal_stats *out)
{
	wal_stats(of_engine(e)->wal, out);
}

static void
measure(struct engine *e, struct op_shard *out)
{
	struct logengine *l = of_engine(e);
	struct wal_stats stats;

	wal_stats(l->wal, &stats);
	out->segments = stats.segments;
	out->spares = stats.spares;
	out->bytes = stats.bytes;
	out->live = stats.live;
	out->disk_free = wal_disk_free(l->wal);
	out->disk_size = wal_disk_size(l->wal);
	out->disk_full = wal_room(l->wal) < ROOM_LOW;
}

struct ledger *
logengine_ledger(struct engine *e)
{
	return of_engine(e)->ledger;
}

struct locks *
logengine_locks(struct engine *e)
{
	return of_engine(e)->ledgerengine.locks;
}

bool
logengine_is_late(struct engine *e)
{
	return of_engine(e)->ledgerengine.late;
}

const struct engine_ops engine_log = {
	.name = "log",
	.doc = "in files on disk",
	.durable = true,
	.folder = true,
	.quotas = true,
	.observed = true,
	.options = &logengine_options,
	.open = open_engine,
	.reopen = reopen_engine,
	.release = release,
	.close = close_engine,
	.run = run,
	.commit = commit,
	.next_due = next_due,
	.read = logengine_read,
	.read_near = logengine_read_near,
	.unpin = logengine_unpin,
	.read_file = logengine_backup_read,
	.lag = logengine_store_lag,
	.rest = logengine_store_rest,
	.flush = logengine_flush,
	.measure = measure,
	.files = &payload_files,
	.away = &logengine_away,
};
