/*
 * wal_open.c - from a folder to a log that can be appended to.
 *
 * In this order: the lock; the names; the heads of all segments; `durable`; replay,
 * which finds the end of the log and cuts its tail; the spares; a first segment when
 * there is none. Then what was found is synced, for a process that was killed may
 * have left it in the kernel's memory alone, and from now on others rely on it. Last,
 * and only then, comes the record that begins a new life.
 */
#include "wal/wal_inner.h"

#include "base/mem.h"
#include "wal/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	AGAIN = 256 * 1024, /* bytes written again at a time */
	SMALLEST = 2 * SEGMENT_PAGE,
	LARGEST = 1024 * 1024 * 1024
};

static int
fill_conf(struct wal_conf *c, const struct wal_conf *conf, struct slu_err *err)
{
	*c = *conf;
	c->disk = c->disk ? c->disk : &disk_posix;
	c->clock = c->clock ? c->clock : &clock_system;
	c->segment_size = c->segment_size ? c->segment_size : WAL_SEGMENT_SIZE;
	c->first_size = c->first_size ? c->first_size : c->segment_size;
	c->interval = c->interval ? c->interval : SLU_SEC;
	c->ahead = c->ahead ? c->ahead : 1;
	if (c->segment_size % SEGMENT_PAGE || c->segment_size < SMALLEST ||
	    c->segment_size > LARGEST || c->first_size % SEGMENT_PAGE ||
	    c->first_size < SMALLEST || c->first_size > c->segment_size)
		return slu_fail(err, SLU_EINVAL,
				"a segment size of %" PRIu32 ": a multiple of %d from %d to %d",
				c->segment_size, SEGMENT_PAGE, SMALLEST, LARGEST);
	return 0;
}

static int
refuse_second(struct wal *w, struct slu_err *err)
{
	char pid[16] = "";
	const int64_t got = w->conf.disk->ops->read(w->conf.disk, w->lock, pid,
						    sizeof pid - 1, 0);

	if (got > 0)
		pid[strspn(pid, "0123456789")] = 0;
	if (*pid && strtol(pid, NULL, 10) == (long)getpid())
		return slu_fail(err, SLU_EBUSY, "%s is in use by this process (%s): it is open already",
				w->conf.folder, pid);
	return slu_fail(err, SLU_EBUSY, "%s is in use by another process%s%s",
			w->conf.folder, *pid ? ": " : "", pid);
}

/* W7. The number in the file is for people; the lock is the kernel's. */
static int
take_lock(struct wal *w, struct slu_err *err)
{
	struct disk *disk = w->conf.disk;
	char pid[16] = "";
	int rc;

	w->lock = disk->ops->open(disk, w->folder, "lock");
	if (w->lock == -ENOENT)
		w->lock = disk->ops->create(disk, w->folder, "lock");
	if (w->lock == -EEXIST) /* somebody was faster, between the two */
		w->lock = disk->ops->open(disk, w->folder, "lock");
	if (w->lock < 0)
		return disk_fail(w->lock, "open", "lock", err);
	rc = disk->ops->lock(disk, w->lock);
	if (rc == -EWOULDBLOCK)
		return refuse_second(w, err);
	if (rc)
		return disk_fail(rc, "lock", w->conf.folder, err);
	snprintf(pid, sizeof pid, "%-14ld\n", (long)getpid());
	(void)disk->ops->write(disk, w->lock, pid, sizeof pid - 1, 0); /* full: no name */
	return 0;
}

static int
open_folder(struct wal *w, struct slu_err *err)
{
	w->folder = w->conf.disk->ops->folder(w->conf.disk, w->conf.folder);
	if (w->folder < 0)
		return disk_fail(w->folder, "open", w->conf.folder, err);
	return take_lock(w, err);
}

static int
open_segment(struct wal *w, uint32_t number, struct slu_err *err)
{
	const uint32_t before = w->n_segments ? wal_current(w)->number : 0;
	struct segment *s;
	int rc;

	if (before && number != before + 1)
		return slu_fail(err, SLU_ECORRUPT,
				"%08" PRIu32 ".log is missing at 0, there is %08" PRIu32 ".log",
				before + 1, number);
	rc = segment_open(&s, w->conf.disk, w->folder, number, err);
	if (rc)
		return rc;
	wal_push(w, s);
	stock_count(&w->stock);
	return 0;
}

/* A file that was being made when the power went: K2. */
static int
remove_tmp(struct wal *w, uint32_t number, struct slu_err *err)
{
	char spare[SEGMENT_NAME], name[SEGMENT_NAME + 4];
	int rc;

	segment_spare_name(number, spare);
	snprintf(name, sizeof name, "%s.tmp", spare);
	rc = w->conf.disk->ops->remove(w->conf.disk, w->folder, name);
	return rc ? disk_fail(rc, "remove", name, err) : 0;
}

/* kind by kind: nothing is changed before the log was found to be sound. */
static int
open_kind(struct wal *w, const struct folder *f, enum folder_kind kind,
	  struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < f->n && !rc; i++) {
		if (f->at[i].kind != kind)
			continue;
		rc = kind == FOLDER_SEGMENT ? open_segment(w, f->at[i].number, err)
		     : kind == FOLDER_SPARE ? stock_adopt(&w->stock, f->at[i].number, err)
					    : remove_tmp(w, f->at[i].number, err);
	}
	return rc;
}

/* Better now than when the first messages have come. */
static int
check_room(struct wal *w, struct slu_err *err)
{
	const int64_t room = w->conf.disk->ops->room(w->conf.disk, w->folder);

	if (room < 0 || (uint64_t)room >= w->conf.least_room)
		return 0;
	return slu_fail(err, SLU_EFULL, "%s: the volume has %" PRId64 " KiB free; a new log "
					"needs at least %" PRIu64 " KiB",
			w->conf.folder, room / 1024, w->conf.least_room / 1024);
}

static int
first_segment(struct wal *w, struct slu_err *err)
{
	struct segment *s;
	int rc;

	rc = check_room(w, err);
	if (!rc)
		rc = wal_make_room(w, 1, err);
	if (!rc)
		rc = wal_plan(w, 1, w->conf.first_size, WAL_FREE, err);
	if (rc)
		return rc;
	s = w->planned[0];
	rc = segment_begin(s, w->folder, 1, clock_wall(w->conf.clock), err);
	if (rc)
		return rc;
	stock_use(&w->stock);
	w->n_planned = 0;
	wal_push(w, s);
	return 0;
}

/* A sync may have failed in the life before: then the kernel shows bytes that it takes
 * for written and that are not on disk (D2 of disk.h), and only writing them again gets
 * them there. */
static int
write_again(struct wal *w, struct slu_err *err)
{
	struct segment *s = wal_current(w);
	const struct disk_ops *ops = s->disk->ops;
	char *p = mem_alloc(AGAIN);
	int rc = p ? 0 : slu_fail(err, SLU_ENOMEM, "the log is out of memory");

	for (uint32_t at = w->unsure; !rc && at < s->end; at += AGAIN) {
		const uint32_t n = s->end - at < AGAIN ? s->end - at : AGAIN;

		rc = segment_read(s, p, n, at, false, err);
		if (!rc && ops->write(s->disk, s->file, p, n, at))
			rc = slu_fail(err, SLU_EDOWN, "write %s", s->name);
	}
	mem_free(p);
	return rc;
}

/* Everything that was found, names and records, is on disk before anybody relies on
 * it. */
static int
settle(struct wal *w, struct slu_err *err)
{
	struct disk *disk = w->conf.disk;
	int rc;

	rc = disk->ops->sync_folder(disk, w->folder);
	if (rc)
		return disk_fail(rc, "sync", w->conf.folder, err);
	if (!w->dirty && w->durable.seq >= w->seq)
		return 0;
	rc = w->unsure ? write_again(w, err) : 0;
	return rc ? rc : wal_sync(w, err);
}

static int
open_log(struct wal *w, const struct folder *f, wal_replay_fn *replay, void *arg,
	 struct slu_err *err)
{
	int rc;

	rc = wal_make_room(w, f->n + 1, err);
	if (!rc)
		rc = open_kind(w, f, FOLDER_SEGMENT, err);
	if (!rc)
		rc = durable_open(&w->durable, w->conf.disk, w->folder,
				  w->conf.read_only, err);
	if (rc)
		return rc;
	w->time = w->durable.time;
	if (w->n_segments && !w->durable.found)
		log_warn(w->conf.log, "log without durable",
			 F_STR("folder", w->conf.folder));
	return wal_replay(w, replay, arg, err);
}

/* W9: as large as the last one, which is what an older version had for all. */
static void
choose_size(struct wal *w)
{
	const uint32_t last = w->n_segments ? wal_current(w)->size : 0;

	if (w->smallest < w->conf.segment_size && last > stock_segment_size(&w->stock))
		stock_set_size(&w->stock, last < w->conf.segment_size ? last : w->conf.segment_size);
}

static int
make_ready(struct wal *w, const struct folder *f, struct slu_err *err)
{
	int rc;

	choose_size(w);
	rc = open_kind(w, f, FOLDER_TMP, err);
	if (!rc)
		rc = open_kind(w, f, FOLDER_SPARE, err);
	if (!rc && w->n_segments == 0)
		rc = first_segment(w, err);
	if (!rc)
		rc = settle(w, err);
	return rc ? rc : wal_begin_life(w, err);
}

static int
open_all(struct wal *w, wal_replay_fn *replay, void *arg, struct slu_err *err)
{
	struct folder f = { 0 };
	int rc;

	rc = open_folder(w, err);
	if (!rc)
		rc = folder_read(&f, w->conf.disk, w->folder, err);
	if (rc)
		return rc;
	w->stock.conf.folder = w->folder;
	for (uint32_t i = 0; i < f.n; i++) /* new names are new */
		if (f.at[i].kind != FOLDER_SEGMENT && f.at[i].number > w->stock.last_name)
			w->stock.last_name = f.at[i].number;
	rc = open_log(w, &f, replay, arg, err);
	if (!rc && !w->conf.read_only)
		rc = make_ready(w, &f, err);
	folder_release(&f);
	return rc;
}

/* Of all segments but the first, to begin with. */
static uint32_t
second_size(const struct wal_conf *conf)
{
	return conf->first_size < conf->segment_size / 2 ? 2 * conf->first_size : conf->segment_size;
}

static struct wal *
new_wal(const struct wal_conf *conf)
{
	const struct stock_conf stock = {
		.disk = conf->disk,
		.clock = conf->clock,
		.log = conf->log,
		.size = second_size(conf),
		.smallest = second_size(conf),
		.largest = conf->segment_size,
		.reserve = conf->reserve,
		.ahead = conf->ahead,
		.max_segments = conf->max_segments,
	};
	struct wal *w = mem_zalloc(sizeof *w);

	if (!w || stock_init(&w->stock, &stock)) {
		mem_free(w);
		return NULL;
	}
	w->conf = *conf;
	w->smallest = second_size(conf);
	w->folder = w->lock = w->durable.file = -1;
	w->sync_by = SLU_NEVER;
	return w;
}

static void
free_wal(struct wal *w)
{
	struct disk *disk = w->conf.disk;

	for (uint32_t i = 0; i < w->n_segments; i++)
		segment_unref(w->segments[i]);
	for (uint32_t i = 0; i < w->n_planned; i++)
		segment_unref(w->planned[i]);
	mem_free(w->segments);
	mem_free(w->planned);
	group_release(&w->group);
	stock_release(&w->stock);
	durable_close(&w->durable);
	if (w->lock >= 0)
		disk->ops->close(disk, w->lock);
	if (w->folder >= 0)
		disk->ops->close(disk, w->folder);
	mem_free(w);
}

int
wal_open(struct wal **out, const struct wal_conf *conf, wal_replay_fn *replay,
	 void *arg, struct slu_err *err)
{
	struct slu_err local = { 0 };
	struct wal_conf full;
	struct wal *w;
	int rc;

	err = err ? err : &local;
	rc = fill_conf(&full, conf, err);
	if (rc)
		return rc;
	w = new_wal(&full);
	if (!w)
		return slu_fail(err, SLU_ENOMEM, "open %s: out of memory", conf->folder);
	rc = group_init(&w->group);
	rc = rc ? slu_fail(err, rc, "open %s: out of memory", conf->folder)
		: open_all(w, replay, arg, err);
	if (rc) {
		free_wal(w);
		return rc;
	}
	w->conf.folder = NULL;
	*out = w;
	return 0;
}

int
wal_close(struct wal *w)
{
	struct slu_err err;
	bool failed;

	if (!w)
		return 0;
	if (w->dirty && !w->failed)
		(void)wal_sync(w, &err); /* wal_fail has logged and marked it */
	failed = w->failed;
	free_wal(w);
	return failed ? SLU_EDOWN : 0;
}
