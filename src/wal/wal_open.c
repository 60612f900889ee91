/*
 * wal_open.c - opens a folder as a log.
 *
 * The order is: take the lock; let the mirror mend the folder; list the files; read the heads of all segments and
 * `durable`; replay, which finds the end of the log and cuts its tail; adopt the spares;
 * make a first segment if the folder is empty. Then everything found is synced: a killed process
 * may have left it only in the kernel's memory, and from now on callers rely on it. The
 * record that begins a new life comes last.
 */
#include "wal/wal_private.h"

#include "base/mem.h"
#include "wal/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	AGAIN = 256 * 1024, /* bytes per write of write_again */
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
				"invalid segment size: %" PRIu32 "; expected a multiple of %d from "
				"%d to %d",
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
		return slu_fail(err, SLU_EBUSY, "%s is in use by this process (%s)",
				w->conf.folder, pid);
	return slu_fail(err, SLU_EBUSY, "%s is in use by another process%s%s",
			w->conf.folder, *pid ? ": " : "", pid);
}

/* WAL-7. The process number in the file is for people; the lock is flock. */
static int
take_lock(struct wal *w, struct slu_err *err)
{
	struct disk *disk = w->conf.disk;
	char pid[16] = "";
	int rc;

	w->lock = disk->ops->open(disk, w->folder, "lock");
	if (w->lock == -ENOENT)
		w->lock = disk->ops->create(disk, w->folder, "lock");
	if (w->lock == -EEXIST) /* another process created it between the two calls */
		w->lock = disk->ops->open(disk, w->folder, "lock");
	if (w->lock < 0)
		return disk_fail(w->lock, "open", "lock", err);
	rc = disk->ops->lock(disk, w->lock);
	if (rc == -EWOULDBLOCK)
		return refuse_second(w, err);
	if (rc)
		return disk_fail(rc, "lock", w->conf.folder, err);
	snprintf(pid, sizeof pid, "%-14ld\n", (long)getpid());
	(void)disk->ops->write(disk, w->lock, pid, sizeof pid - 1, 0); /* a full disk: no number */
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
				"%08" PRIu32 ".log: missing at 0; the next segment is %08" PRIu32 ".log",
				before + 1, number);
	rc = segment_open(&s, w->conf.disk, w->folder, number, err);
	if (rc)
		return rc;
	wal_push(w, s);
	spares_count(&w->spares);
	return 0;
}

/* Removes a spare that was never finished: SPARES-2. */
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

/* Opens the files of one kind. Segments come first: until replay found the log to be sound,
 * nothing is changed. */
static int
open_kind(struct wal *w, const struct folder *f, enum folder_kind kind,
	  struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < f->n && !rc; i++) {
		if (f->at[i].kind != kind)
			continue;
		rc = kind == FOLDER_SEGMENT ? open_segment(w, f->at[i].number, err)
		     : kind == FOLDER_SPARE ? spares_adopt(&w->spares, f->at[i].number, err)
					    : remove_tmp(w, f->at[i].number, err);
	}
	return rc;
}

/* Refuses a new log on a disk that is nearly full, before the first message arrives. */
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
	wal_report_head(w, s);
	spares_use(&w->spares);
	w->n_planned = 0;
	wal_push(w, s);
	return 0;
}

/* If a sync failed in the life before, the kernel may show bytes as written that are not on
 * disk (DISK-2 of disk.h). Writing them again puts them there. */
static int
write_again(struct wal *w, struct slu_err *err)
{
	struct segment *s = wal_current(w);
	const struct disk_ops *ops = s->disk->ops;
	char *p = mem_alloc(AGAIN);
	int rc = p ? 0 : slu_fail(err, SLU_ENOMEM, "log: out of memory");

	for (uint32_t at = w->unsure; !rc && at < s->end; at += AGAIN) {
		const uint32_t n = s->end - at < AGAIN ? s->end - at : AGAIN;

		rc = segment_read(s, p, n, at, false, err);
		if (!rc && ops->write(s->disk, s->file, p, n, at))
			rc = slu_fail(err, SLU_EDOWN, "write %s", s->name);
	}
	mem_free(p);
	return rc;
}

/* Syncs the names and records that open found, before callers rely on them. */
static int
settle(struct wal *w, struct slu_err *err)
{
	struct disk *disk = w->conf.disk;
	int rc;

	if (w->is_cache)
		return 0;
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
	if (!rc && !w->is_cache)
		rc = durable_open(&w->durable, w->conf.disk, w->folder,
				  w->conf.read_only, err);
	if (rc)
		return rc;
	w->time = w->durable.time;
	if (w->n_segments && !w->durable.found && !w->is_cache)
		log_warn(w->conf.log, "log without durable",
			 F_STR("folder", w->conf.folder));
	return wal_replay(w, replay, arg, err);
}

/* WAL-9: new segments are at least as large as the last one. */
static void
choose_size(struct wal *w)
{
	const uint32_t last = w->n_segments ? wal_current(w)->size : 0;

	if (w->smallest < w->conf.segment_size && last > spares_segment_size(&w->spares))
		spares_set_size(&w->spares, last < w->conf.segment_size ? last : w->conf.segment_size);
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
mend(struct wal *w, struct slu_err *err)
{
	const struct wal_mirror *const m = w->conf.mirror;

	return m ? m->mend(m->arg, w->conf.disk, w->folder, err) : 0;
}

static int
open_all(struct wal *w, wal_replay_fn *replay, void *arg, struct slu_err *err)
{
	struct folder f = { 0 };
	int rc;

	rc = open_folder(w, err);
	if (!rc)
		rc = mend(w, err);
	if (!rc)
		rc = folder_read(&f, w->conf.disk, w->folder, err);
	if (rc)
		return rc;
	w->spares.conf.folder = w->folder;
	for (uint32_t i = 0; i < f.n; i++) /* new spares get unused names */
		if (f.at[i].kind != FOLDER_SEGMENT && f.at[i].number > w->spares.last_name)
			w->spares.last_name = f.at[i].number;
	rc = open_log(w, &f, replay, arg, err);
	if (!rc && !w->conf.read_only)
		rc = make_ready(w, &f, err);
	folder_release(&f);
	return rc;
}

/* The initial size of all segments except the first. */
static uint32_t
second_size(const struct wal_conf *conf)
{
	return conf->first_size < conf->segment_size / 2 ? 2 * conf->first_size : conf->segment_size;
}

static struct wal *
new_wal(const struct wal_conf *conf)
{
	struct spares_conf spares = {
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
	const bool is_cache = conf->mirror && !conf->mirror->behind;
	struct wal *w = mem_zalloc(sizeof *w);

	if (w && is_cache)
		spares.disk = unsynced_init(&w->unsynced, conf->disk);
	if (!w || spares_init(&w->spares, &spares)) {
		mem_free(w);
		return NULL;
	}
	w->conf = *conf;
	w->conf.disk = spares.disk;
	w->is_cache = is_cache;
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
	spares_release(&w->spares);
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
