#include "engine/log/transit.h"

#include "base/log.h"
#include "engine/log/logengine_private.h"
#include "engine/tenure.h"

#include <stdio.h>

#define FOLDER "transit"

static struct logengine_transit *
transit_of(struct engine *e)
{
	return &CONTAINER(e, struct logengine, engine)->transit;
}

/* ---- The thread that removes ---- */

static void *
sweep(void *arg)
{
	struct logengine_transit *const t = arg;

	pthread_mutex_lock(&t->mtx);
	while (!t->stopping) {
		if (!t->wanted) {
			pthread_cond_wait(&t->cond, &t->mtx);
			continue;
		}
		t->wanted = false;
		pthread_mutex_unlock(&t->mtx);
		logengine_files_sweep(&t->files);
		pthread_mutex_lock(&t->mtx);
	}
	pthread_mutex_unlock(&t->mtx);
	return NULL;
}

static void
wake(void *arg)
{
	struct logengine_transit *const t = arg;

	pthread_mutex_lock(&t->mtx);
	t->wanted = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->mtx);
}

/* Before the first file. */
static int
start(struct logengine_transit *t, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&t->mtx);
	if (!t->started)
		rc = pthread_create(&t->thread, NULL, sweep, t);
	t->started = !rc;
	pthread_mutex_unlock(&t->mtx);
	return rc ? slu_fail(err, SLU_ENOMEM, "cannot start a thread for payloads of other nodes") : 0;
}

/* ---- Open and close ---- */

static int
open_files(struct logengine_transit *t, const struct engine_conf *conf, struct slu_err *err)
{
	struct disk *const disk = conf->disk ? conf->disk : &disk_posix;
	const size_t size = strlen(conf->folder) + sizeof "/" FOLDER;
	char *const path = mem_alloc(size);
	const int parent = disk->ops->folder(disk, conf->folder); /* makes it */
	int rc = parent < 0 ? disk_fail(parent, "open", conf->folder, err) : 0;

	if (parent >= 0)
		disk->ops->close(disk, parent);
	if (!path)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for payload files");
	if (!rc) {
		snprintf(path, size, "%s/" FOLDER, conf->folder);
		rc = logengine_files_open(&t->files, disk, conf->log, path, false, err);
	}
	if (!rc)
		rc = logengine_files_settle(&t->files, err); /* no file is named */
	mem_free(path);
	return rc;
}

void
logengine_transit_open(struct logengine_transit *t, const struct engine_conf *conf)
{
	struct slu_err err = { 0 };

	logengine_files_init(&t->files);
	pthread_mutex_init(&t->mtx, NULL); /* cannot fail without attributes */
	pthread_cond_init(&t->cond, NULL);
	if (!conf->tenure || !conf->tenure->store || !conf->folder)
		return;
	if (open_files(t, conf, &err)) {
		log_warn(conf->log, "no large payloads for other nodes", F_STR("why", err.text));
		return;
	}
	snprintf(t->line, sizeof t->line, "%u", conf->lane);
	logengine_files_keep_in(&t->files, conf->tenure->store, t->line, 0);
	logengine_files_set_wake(&t->files, wake, t);
	logengine_files_shut(&t->files, false);
	t->files.owned = &CONTAINER(t, struct logengine, transit)->files;
	t->files.transit = t->open = true;
}

void
logengine_transit_release(struct logengine_transit *t)
{
	if (t->started) {
		pthread_mutex_lock(&t->mtx);
		t->stopping = true;
		pthread_cond_signal(&t->cond);
		pthread_mutex_unlock(&t->mtx);
		pthread_join(t->thread, NULL);
		logengine_files_sweep(&t->files);
	}
	logengine_files_release(&t->files);
	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->mtx);
}

/* ---- Files ---- */

int
logengine_transit_write(struct logengine_transit *t, struct engine_file **out, struct slu_err *err)
{
	bool away;
	int rc;

	pthread_mutex_lock(&t->files.mtx);
	away = t->open && t->files.epoch;
	pthread_mutex_unlock(&t->files.mtx);
	if (!away)
		return slu_fail(err, SLU_EDOWN, "no node owns the shard now");
	rc = start(t, err);
	return rc ? rc : logengine_writer_open(&t->files, out, err);
}

static void
set_owner(struct engine *e, uint64_t epoch)
{
	struct logengine_transit *const t = transit_of(e);

	pthread_mutex_lock(&t->files.mtx);
	t->files.epoch = epoch;
	pthread_mutex_unlock(&t->files.mtx);
}

static bool
travels(struct engine *e, const struct message *m)
{
	return logengine_files_travels(&transit_of(e)->files, m->file);
}

/* In the table of the owner: this node is the owner. */
static void
refuse(struct engine *e, const struct message *m)
{
	logengine_files_refuse(&CONTAINER(e, struct logengine, engine)->files, m);
}

static bool
name(const struct op_ref *ref, struct engine_stored *out)
{
	const struct logengine_file *const f = ref->pin;

	if (!(ref->where & LOGENGINE_REF_FILE) || !f->home->store)
		return false;
	*out = (struct engine_stored){ f->stored, f->mark, (uint32_t)f->size };
	return true;
}

static int
pin(struct engine *e, const struct engine_stored *file, struct op_ref *out, struct slu_err *err)
{
	struct logengine_transit *const t = transit_of(e);
	struct logengine_file *f = NULL;
	int rc = t->open ? start(t, err) : slu_fail(err, SLU_EDOWN, "this node cannot read payloads of other nodes");

	if (!rc)
		rc = logengine_files_borrow(&t->files, file, &f, err);
	if (!rc)
		*out = (struct op_ref){ .pin = f, .where = LOGENGINE_REF_FILE, .size = file->size };
	return rc;
}

const struct engine_away logengine_away = {
	.set_owner = set_owner,
	.travels = travels,
	.refuse = refuse,
	.name = name,
	.pin = pin,
};
