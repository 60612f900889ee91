/*
 * backup.c - pins the files of the log while a client copies them.
 *
 * A backup has everything that was committed before the run that began it. The group of
 * that run is not in it, and has not been answered. The backup pins its segments
 * (segment.h, SEGMENT-3), so a segment that cleaning recycles is not overwritten, and the payload
 * files that its records name; these come after the segments. Until the backup ends, the
 * disk holds that much more.
 */
#include "engine/log/logengine_private.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns NULL if no backup has this id; 0: a free place. */
static struct logengine_backup *
find(struct logengine *l, uint64_t id)
{
	for (unsigned i = 0; i < LOGENGINE_BACKUPS; i++)
		if (id ? l->backups[i].copy.files && l->backups[i].id == id : !l->backups[i].copy.files)
			return &l->backups[i];
	return NULL;
}

static void
end(struct logengine_backup *own)
{
	wal_copy_close(&own->copy);
	while (own->n_files > 0)
		logengine_file_unpin(own->files[--own->n_files]);
	mem_free(own->files);
	own->files = NULL;
}

static int
hold(struct logengine *l, struct logengine_backup *own, struct slu_err *err)
{
	int rc;

	rc = wal_copy_open(&own->copy, l->wal, err);
	if (rc || logengine_files_pin_all(&l->files, &own->files, &own->n_files) == 0)
		return rc;
	end(own);
	return slu_fail(err, SLU_ENOMEM, "no memory to copy payload files");
}

static int
begin(struct logengine *l, struct op_backup *b, struct slu_err *err)
{
	struct logengine_backup *own = find(l, 0);
	int rc;

	if (!own)
		return slu_fail(err, SLU_ECONFLICT,
				"%d backups are running, one of them is backup %" PRIu64 "; a backup ends when "
				"the client ends it, or after %d s without a read",
				LOGENGINE_BACKUPS, l->backups[0].id, (int)(OP_BACKUP_IDLE / SLU_SEC));
	rc = hold(l, own, err);
	if (rc)
		return rc;
	own->id = b->id;
	own->until = time_add(l->now, OP_BACKUP_IDLE);
	b->files = own->copy.n + own->n_files;
	b->bytes = own->copy.bytes;
	for (uint32_t i = 0; i < own->n_files; i++)
		b->bytes += logengine_file_length(own->files[i]);
	b->last = own->copy.seq;
	b->time = own->copy.time;
	return 0;
}

static void
read_payload(struct logengine_file *f, struct op *op)
{
	struct op_backup *b = &op->backup;
	char name[LOGENGINE_FILE_NAME];

	b->bytes = b->size = logengine_file_length(f);
	snprintf(b->name, sizeof b->name, "%s", logengine_file_name(f->number, name));
	logengine_file_pin(f);
	op->result = (struct op_ref){
		.pin = f,
		.where = LOGENGINE_REF_FILE,
		.size = (uint32_t)b->bytes,
	};
}

static int
read_one(const struct logengine_backup *own, struct op *op, struct slu_err *err)
{
	struct op_backup *b = &op->backup;
	const struct wal_copy_file *file;

	if (b->file >= own->copy.n + own->n_files)
		return slu_fail(err, SLU_EINVAL, "invalid file of the backup: %" PRIu32 "; expected less than %" PRIu32,
				b->file, own->copy.n + own->n_files);
	if (b->file >= own->copy.n) {
		read_payload(own->files[b->file - own->copy.n], op);
		return 0;
	}
	file = &own->copy.files[b->file];
	b->bytes = file->bytes;
	b->size = file->segment->size;
	snprintf(b->name, sizeof b->name, "%s", file->segment->name);
	op->result = (struct op_ref){ .pin = segment_ref(file->segment), .size = file->bytes };
	return 0;
}

static int
run_step(struct logengine *l, struct op *op, struct slu_err *err)
{
	struct logengine_backup *own;

	if (op->backup.step == BACKUP_BEGIN)
		return begin(l, &op->backup, err);
	own = op->backup.id ? find(l, op->backup.id) : NULL;
	if (!own)
		return slu_fail(err, SLU_ENOTFOUND,
				"no backup %" PRIu64 "; a backup ends after %d s without a read",
				op->backup.id, (int)(OP_BACKUP_IDLE / SLU_SEC));
	own->until = time_add(l->now, OP_BACKUP_IDLE);
	if (op->backup.step == BACKUP_READ)
		return read_one(own, op, err);
	end(own);
	return 0;
}

void
logengine_backup(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	const int rc = run_step(logengine_of(k), op, &err);

	if (rc)
		op_fail(op, rc, &err);
}

void
logengine_backups_end(struct logengine *l)
{
	for (unsigned i = 0; i < LOGENGINE_BACKUPS; i++)
		end(&l->backups[i]);
}

void
logengine_backups_tick(struct logengine *l)
{
	for (unsigned i = 0; i < LOGENGINE_BACKUPS; i++) {
		struct logengine_backup *own = &l->backups[i];

		if (!own->copy.files || l->now < own->until)
			continue;
		log_warn(l->log, "backup abandoned", F_U64("backup", own->id), F_STR("why", "not read in time"));
		end(own);
	}
}

slu_time
logengine_backups_due(const struct logengine *l)
{
	slu_time due = SLU_NEVER;

	for (unsigned i = 0; i < LOGENGINE_BACKUPS; i++)
		if (l->backups[i].copy.files && l->backups[i].until < due)
			due = l->backups[i].until;
	return due;
}

int
logengine_backup_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
		      struct slu_err *err)
{
	(void)e;
	if (ref->where & LOGENGINE_REF_FILE)
		return logengine_file_raw(ref->pin, at, n, out, err);
	return wal_copy_read(ref->pin, at, n, out, err);
}
