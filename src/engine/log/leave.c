/*
 * leave.c - front.down: slow. The engine leaves a front folder that does not work (LOGENGINE-15).
 *
 *      front folder ──fails──> what it has answered goes to the store ──> opened again in front.spare,
 *                                                                        as a log in a store
 */
#include "engine/log/logengine_private.h"

#include "engine/tenure.h"
#include "mirror/frontfolder.h"

#include <stdio.h>

enum {
	PATH = 4096
};

const char *
logengine_spare(const struct logengine *l, const struct engine_conf *conf)
{
	const struct logengine_options *const own = conf->options;

	if (!own || !own->store)
		return l->more.spare;
	return own->front_down == LOGENGINE_DOWN_SLOW ? own->front_spare : NULL;
}

/* ---- When ---- */

void
logengine_note_broken(struct logengine *l)
{
	const struct logengine_front *const f = &l->stored.front;
	struct wal_stats stats;

	if (!f->on || !f->slow || !l->wal)
		return;
	wal_stats(l->wal, &stats);
	if (!stats.failed && !f->full)
		return;
	l->leave.broken = true;
	l->leave.end = f->end;
	l->leave.durable = stats.durable;
}

/* While the store lacks something, the folder goes on: acks and claims have room. */
int
logengine_front_full(struct logengine *l, struct slu_err *err)
{
	const struct logengine_front *const f = &l->stored.front;

	if (!f->on || !f->slow || !f->full)
		return 0;
	atomic_store(&l->flush_wanted, true);
	if (f->carries || f->lag > 0)
		return 0;
	return slu_fail(err, SLU_EFULL, "the front folder has no room for new work");
}

bool
logengine_may_leave(struct logengine *l, const struct engine_conf *conf, int rc)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	struct frontfolder front = { 0 };
	struct slu_err err;
	int folder;

	if (!l->stored.mirror || !l->stored.front.slow)
		return false;
	folder = disk->ops->folder(disk, conf->folder);
	if (folder < 0 || frontfolder_read(&front, disk, folder, &err))
		front.state = FRONT_WHOLE; /* for all that is known */
	if (folder >= 0)
		disk->ops->close(disk, folder);
	if (!mirror_facts(l->stored.mirror).superseded &&
	    (front.state == FRONT_WHOLE || (rc != SLU_EFULL && rc != SLU_EDOWN)))
		return false;
	l->leave.left = true;
	memcpy(l->leave.uuid, front.uuid, sizeof l->leave.uuid);
	return true;
}

/* ---- Leaving ---- */

int
logengine_leave(struct logengine *l, const struct engine_conf *conf, struct slu_err *err)
{
	int rc = logengine_store_open(l, conf, err);

	if (!rc)
		rc = mirror_leave(l->stored.mirror, l->leave.end, l->leave.durable, l->leave.uuid, err);
	logengine_store_close(l);
	l->leave.left = !rc;
	return rc;
}

/* Makes the path: each store and each shard has a folder of its own. */
static int
name_folder(struct logengine *l, const struct engine_conf *conf, const char *spare, struct slu_err *err)
{
	const uint8_t *const u = conf->tenure ? conf->tenure->uuid : NULL;
	char path[PATH];
	int n;

	if (u)
		n = snprintf(path, sizeof path, "%s/%02x%02x%02x%02x-%u", spare, u[0], u[1], u[2], u[3], conf->lane);
	else
		n = snprintf(path, sizeof path, "%s/%u", spare, conf->lane);
	if (n >= (int)sizeof path)
		return slu_fail(err, SLU_EINVAL, "invalid front.spare: %.100s...; expected a shorter path", spare);
	l->leave.folder = mem_strdup(path);
	return l->leave.folder ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

int
logengine_in_spare(struct logengine *l, const struct engine_conf *conf, struct engine_conf *to,
		   struct slu_err *err)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	const char *const spare = logengine_spare(l, conf);
	const int above = disk->ops->folder(disk, spare);
	int rc = above < 0 ? disk_fail(above, "open", spare, err) : 0;

	if (above >= 0)
		disk->ops->close(disk, above);
	if (!rc && !l->leave.folder)
		rc = name_folder(l, conf, spare, err);
	*to = *conf;
	to->folder = l->leave.folder;
	return rc;
}

/* Without the mark the next start refuses the folder, and opens the spare one. */
void
logengine_mark_left(struct logengine *l, const struct engine_conf *conf)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	const int folder = disk->ops->folder(disk, conf->folder);
	struct frontfolder front;
	struct slu_err err = { 0 };
	int rc = folder < 0 ? disk_fail(folder, "open", conf->folder, &err) : 0;

	log_warn(l->log, "front folder left, requests wait for the store", F_STR("shard", l->stored.line),
		 F_STR("folder", conf->folder), F_STR("spare", l->leave.folder));
	if (!rc)
		rc = frontfolder_read(&front, disk, folder, &err);
	if (!rc && l->leave.broken && memcmp(front.uuid, l->leave.uuid, sizeof front.uuid) == 0) {
		front.state = FRONT_LEFT;
		rc = frontfolder_write(&front, disk, folder, &err);
	}
	if (rc)
		log_warn(l->log, "front folder not marked", F_STR("why", err.text));
	if (folder >= 0)
		disk->ops->close(disk, folder);
}
