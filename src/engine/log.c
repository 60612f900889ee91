/*
 * log.c - the log engine: open, run, read, close.
 */
#include "engine/log_in.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	RESERVE = 2,                   /* G6 */
	MESSAGES_PER_SEGMENT = 500000, /* one more for so many, if segments are as large as may be */
	ROOM_LOW = 1 << 20,            /* with less room than this the disk counts as full */
	KEPT_GUESS = 128,              /* bytes of a remembered key's record */
	MOST = 1 << 20,                /* G7 */
	WAITING_MAX = 64 << 20         /* bytes of payloads that only wait for a sync */
};

static struct log_engine *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct log_engine, engine);
}

/* G5 */
static int
fail(struct log_engine *l, enum slu_code code, struct slu_err *err)
{
	l->failed = l->told = true;
	snprintf(l->why, sizeof l->why, "%s", err->text);
	log_error(l->log, "shard failed", F_STR("why", l->why));
	return slu_fail(err, code, "the shard has failed: %.200s", l->why);
}

static void
begin(struct log_engine *l, slu_time now)
{
	l->now = now > l->now ? now : l->now;
	l->mono = clock_mono(l->clock);
	l->must_sync = false;
	l->owed = 0;
	wal_begin(l->wal, l->now);
}

/* ---- Open and close ---- */

void
log_free(struct log_engine *l)
{
	log_helper_stop(l);
	log_backup_end(l);
	wal_cursor_close(&l->clean.cursor);
	(void)wal_close(l->wal); /* it has logged why not */
	clerk_release(&l->clerk);
	places_release(&l->places);
	log_files_close(&l->files);
	buf_release(&l->scratch);
	mem_free(l->queues);
	mem_free(l->purging);
	mem_free(l);
}

static int
new_books(struct log_engine *l, const struct engine_conf *conf,
	  const struct hash_key *secret, struct locks **locks, struct slu_err *err)
{
	struct ledger_conf lc = {
		.secret = *secret,
		.max_idem = conf->max_idem,
		.max_queues = conf->max_queues,
		.drop = log_drop,
		.size = log_size,
		.drop_arg = l,
	};
	int rc;

	rc = secret->k0 || secret->k1 ? 0 : hash_key_init(&lc.secret, err);
	return rc ? rc : clerk_books(&lc, &l->ledger, locks, err);
}

int
log_new(struct log_engine **out, const struct engine_conf *conf, const struct log_conf *more,
	struct slu_err *err)
{
	struct log_engine *l = mem_zalloc(sizeof *l);
	struct locks *locks;
	uint64_t random;
	int rc;

	if (!l)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	random = more->secret.k0 ^ more->secret.k1; /* what is to be repeated can be */
	rc = random ? 0 : hash_random(&random, sizeof random, err);
	if (!rc)
		rc = new_books(l, conf, &more->secret, &locks, err);
	if (rc) {
		mem_free(l);
		return rc;
	}
	l->engine.ops = &engine_log;
	l->clock = more->clock ? more->clock : &clock_system;
	l->log = conf->log;
	l->clean.kept = KEPT_GUESS;
	l->most = more->most ? more->most : MOST;
	places_init(&l->places);
	buf_init(&l->scratch, SIZE_MAX);
	clerk_init(&l->clerk, &log_keeping, &l->engine, l->ledger, locks, conf, random);
	*out = l;
	return 0;
}

static void
synced(void *arg, slu_time took)
{
	const struct log_engine *l = arg;

	meter_time(&l->clerk.meter, METER_SYNC, took);
}

static bool
reading(void *arg, uint64_t done, uint64_t all)
{
	const struct log_engine *l = arg;

	return l->conf->reading(l->conf->reading_arg, done, all);
}

static const enum wal_mode modes[] = {
	[ENGINE_SYNC] = WAL_SYNC,
	[ENGINE_SYNC_INTERVAL] = WAL_INTERVAL,
	[ENGINE_SYNC_NONE] = WAL_NONE,
};

int
log_open_wal(struct log_engine *l, const struct engine_conf *conf, const struct log_conf *more,
	     bool read_only, struct slu_err *err)
{
	const struct wal_conf wc = {
		.disk = conf->disk,
		.clock = l->clock,
		.log = conf->log,
		.folder = conf->folder,
		.segment_size = more->segment_size,
		.first_size = more->segment_size ? more->first_size : WAL_FIRST_SIZE,
		.least_room = conf->disk ? 0 : LOG_LEAST_ROOM,
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

	if (!conf->folder || more->segment_size > LOG_SEGMENT_SIZE_MAX)
		return slu_fail(err, SLU_EINVAL, "the log needs a folder, and segments of at "
						 "most %d bytes",
				LOG_SEGMENT_SIZE_MAX);
	rc = log_files_open(&l->files, conf->disk, conf->log, conf->folder, read_only, err);
	if (rc)
		return rc;
	l->largest_segment = more->segment_size ? more->segment_size : WAL_SEGMENT_SIZE;
	l->conf = conf;
	rc = wal_open(&l->wal, &wc, log_replay, l, err);
	l->conf = NULL;
	if (rc)
		l->wal = NULL;
	else
		log_locks_replayed(l);
	l->files.wal = l->wal;
	return rc;
}

/* G3, and the grace for leases that were found: the first group of this life. */
static int
start(struct log_engine *l, slu_time wall, struct slu_err *err)
{
	struct wal_stats stats;
	struct change opened;
	int rc;

	wal_stats(l->wal, &stats);
	if (!l->closed)
		ledger_set_counter(l->ledger, l->ceiling);
	begin(l, wall > stats.time ? wall : stats.time);
	ledger_opened(l->ledger, l->now, &opened);
	rc = log_keeping.keep(&l->clerk, &opened, (struct slice){ 0 }, err);
	if (!rc)
		rc = ledger_apply(l->ledger, &opened);
	if (!rc)
		clerk_follow(l->clerk.locks, &opened);
	if (!rc)
		rc = log_reserve(l, WAL_FREE, 0, err);
	if (rc)
		return rc;
	log_put_ceiling(l, ledger_counter(l->ledger));
	l->reserve = RESERVE;
	return wal_commit(l->wal, true, err);
}

/* Batches that are set aside. Some of one may have been moved by cleaning already: C8. */
static int
note_left(struct log_engine *l, const struct engine_conf *conf, struct slu_err *err)
{
	uint32_t q = SLAB_NONE;
	int rc = 0;

	while (!rc && (q = ledger_queue_next(l->ledger, q)) != SLAB_NONE) {
		struct ledger_queue_view view;
		struct ledger_moving moving;

		ledger_moving(l->ledger, q, &moving);
		if (!moving.batch)
			continue;
		rc = log_reserve_queue(l, q, err);
		if (rc)
			break;
		l->queues[q].retake = true;
		ledger_queue_get(l->ledger, q, &view);
		if (conf->left)
			conf->left(conf->left_arg, slice_of(view.space_name), slice_of(view.name));
	}
	return rc;
}

int
log_open(struct engine **out, const struct engine_conf *conf, const struct log_conf *more,
	 struct engine_found *found, struct slu_err *err)
{
	struct clock *const clock = more->clock ? more->clock : &clock_system;
	const slu_time began = clock_boot(clock);
	struct log_engine *l;
	int rc;

	rc = log_new(&l, conf, more, err);
	if (rc)
		return rc;
	rc = log_open_wal(l, conf, more, false, err);
	if (!rc) /* the grace begins when all was read, however long that took */
		rc = start(l, conf->wall + (clock_boot(clock) - began), err);
	if (!rc)
		rc = log_files_settle(&l->files, err);
	if (!rc)
		rc = note_left(l, conf, err);
	if (!rc)
		clerk_limit_end(&l->clerk);
	if (!rc && !more->no_helper)
		rc = log_helper_start(l, err);
	if (rc) {
		log_free(l);
		return rc;
	}
	*found = (struct engine_found){ .now = l->now, .highest_id = l->highest_id };
	*out = &l->engine;
	return 0;
}

static int
open_engine(struct engine **out, const struct engine_conf *conf,
	    struct engine_found *found, struct slu_err *err)
{
	return log_open(out, conf, &(struct log_conf){ 0 }, found, err);
}

/* That all is said saves a block of numbers; without it nothing is lost. */
static void
say_closed(struct log_engine *l)
{
	const struct log_entry entry = {
		.type = LOG_CLOSED,
		.change = { .number = ledger_counter(l->ledger) },
		.highest = l->highest_id,
	};
	struct log_bytes bytes;
	struct slu_err err;

	begin(l, l->now);
	log_encode(&entry, &bytes);
	if (log_reserve(l, WAL_FREE, bytes.size, &err))
		return;
	(void)log_append(l, entry.type, bytes.parts, bytes.n);
	(void)wal_commit(l->wal, true, &err); /* it has logged why not */
}

static int
close_engine(struct engine *e)
{
	struct log_engine *l = of_engine(e);
	int rc;

	log_helper_stop(l);
	if (!l->failed)
		say_closed(l);
	log_files_sweep(&l->files);
	wal_cursor_close(&l->clean.cursor);
	rc = wal_close(l->wal);
	l->wal = NULL;
	log_free(l);
	return rc;
}

/* ---- Run ---- */

static void
set_reserve(struct log_engine *l)
{
	struct ledger_size size;
	struct locks_size locks;
	uint32_t reserve;
	uint64_t each;

	ledger_size(l->ledger, &size);
	locks_size(l->clerk.locks, &locks);
	each = (uint64_t)MESSAGES_PER_SEGMENT * wal_segment_size(l->wal) / l->largest_segment;
	reserve = RESERVE + (uint32_t)((size.messages + locks.keys) / (each ? each : 1));
	if (reserve == l->reserve)
		return;
	l->reserve = reserve;
	wal_set_reserve(l->wal, reserve);
}

/* Payload files whose messages are gone: F3. */
static int
free_files(struct log_engine *l, struct slu_err *err)
{
	struct wal_stats stats;
	int rc = 0;

	if (list_is_empty(&l->files.doomed))
		return 0;
	if (l->files.waiting > WAITING_MAX)
		rc = wal_flush(l->wal, err);
	wal_stats(l->wal, &stats);
	log_files_committed(&l->files, stats.seq, stats.durable);
	return rc;
}

/* The batch is kept. What fails now fails the next one. */
static void
after_commit(struct log_engine *l)
{
	struct slu_err err = { 0 };
	int rc;

	rc = log_clean_end(l, &err);
	if (!rc)
		rc = wal_tick(l->wal, &err);
	if (!rc)
		rc = free_files(l, &err);
	if (rc) {
		(void)fail(l, SLU_EDOWN, &err);
		l->told = false;
	}
	set_reserve(l);
	log_helper_wake(l);
}

static int
run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct log_engine *l = of_engine(e);
	int rc;

	if (l->failed) {
		l->told = true;
		return slu_fail(err, SLU_EDOWN, "the shard has failed: %.200s", l->why);
	}
	begin(l, now);
	log_backup_tick(l);
	log_clean_slice(l);
	rc = clerk_run(&l->clerk, batch, due, l->now, err);
	if (rc) {
		wal_drop(l->wal);
		return fail(l, SLU_EDOWN, err);
	}
	rc = wal_commit(l->wal, l->must_sync, err);
	if (rc)
		return fail(l, l->appended ? SLU_EUNKNOWN : SLU_EDOWN, err);
	after_commit(l);
	return 0;
}

/* A moment of the clock as shard time. */
static slu_time
sync_due(const struct log_engine *l)
{
	const slu_time due = wal_due(l->wal);

	if (due == SLU_NEVER)
		return due;
	return time_add(l->now, due > l->mono ? due - l->mono : 0);
}

static slu_time
next_due(struct engine *e)
{
	struct log_engine *l = of_engine(e);
	slu_time due;

	if (l->failed && l->told)
		return SLU_NEVER;
	if (l->failed || l->clean.again)
		return l->now;
	due = clerk_next_due(&l->clerk);
	due = log_backup_due(l) < due ? log_backup_due(l) : due;
	return sync_due(l) < due ? sync_due(l) : due;
}

/* ---- Payload files ---- */

static uint64_t
most(const struct engine *e)
{
	return CONTAINER(e, const struct log_engine, engine)->most;
}

static int
open_file(struct engine *e, struct engine_file **out, struct slu_err *err)
{
	return log_writer_open(&of_engine(e)->files, out, err);
}

static const struct engine_files payload_files = {
	.most = most,
	.open = open_file,
	.write = log_writer_write,
	.seal = log_writer_seal,
	.close = log_writer_close,
};

/* ---- Looking ---- */

void
log_stats(struct engine *e, struct wal_stats *out)
{
	wal_stats(of_engine(e)->wal, out);
}

static void
measure(struct engine *e, struct op_shard *out)
{
	struct log_engine *l = of_engine(e);
	struct wal_stats stats;

	wal_stats(l->wal, &stats);
	out->segments = stats.segments;
	out->spares = stats.spares;
	out->bytes = stats.bytes;
	out->live = stats.live;
	out->disk_free = wal_disk_free(l->wal);
	out->disk_full = wal_room(l->wal) < ROOM_LOW;
}

struct ledger *
log_ledger(struct engine *e)
{
	return of_engine(e)->ledger;
}

struct locks *
log_locks(struct engine *e)
{
	return of_engine(e)->clerk.locks;
}

bool
log_is_late(struct engine *e)
{
	return of_engine(e)->clerk.late;
}

const struct engine_ops engine_log = {
	.name = "log",
	.durable = true,
	.open = open_engine,
	.close = close_engine,
	.run = run,
	.next_due = next_due,
	.read = log_read,
	.read_near = log_read_near,
	.unpin = log_unpin,
	.read_file = log_backup_read,
	.measure = measure,
	.files = &payload_files,
};
