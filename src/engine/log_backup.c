/*
 * log_backup.c - the files of the log, held while somebody copies them.
 *
 * A backup is what was committed before the run that began it: the run's own group is
 * not in it, and has not been answered. Its segments are pinned (segment.h, S3), so what
 * cleaning recycles meanwhile is not written to, and so are the payload files that its
 * records name, which come behind them; the disk holds that much more until the backup
 * ends.
 */
#include "engine/log_in.h"

#include <inttypes.h>
#include <stdio.h>

static struct log_engine *
of_clerk(struct clerk *k)
{
	return CONTAINER(k, struct log_engine, clerk);
}

static int
begin(struct log_engine *l, struct op_backup *b, struct slu_err *err)
{
	struct log_backup *own = &l->backup;
	int rc;

	if (own->copy.files)
		return slu_fail(err, SLU_ECONFLICT,
				"backup %" PRIu64 " is under way; it ends when it is whole, or "
				"when nobody has read it for %d s",
				own->id, (int)(OP_BACKUP_IDLE / SLU_SEC));
	rc = wal_copy_open(&own->copy, l->wal, err);
	if (rc)
		return rc;
	if (log_files_pin_all(&l->files, &own->files, &own->n_files)) {
		log_backup_end(l);
		return slu_fail(err, SLU_ENOMEM, "no memory to copy payload files");
	}
	own->id = b->id;
	b->files = own->copy.n + own->n_files;
	b->bytes = own->copy.bytes;
	for (uint32_t i = 0; i < own->n_files; i++)
		b->bytes += log_file_length(own->files[i]);
	b->last = own->copy.seq;
	b->time = own->copy.time;
	return 0;
}

static void
read_payload(struct log_file *f, struct op *op)
{
	struct op_backup *b = &op->backup;
	char name[LOG_FILE_NAME];

	b->bytes = b->size = log_file_length(f);
	snprintf(b->name, sizeof b->name, "%s", log_file_name(f->number, name));
	log_file_pin(f);
	op->result = (struct op_ref){
		.pin = f,
		.where = LOG_REF_FILE,
		.size = (uint32_t)b->bytes,
	};
}

static int
read_one(struct log_engine *l, struct op *op, struct slu_err *err)
{
	struct op_backup *b = &op->backup;
	const struct wal_copy_file *file;

	if (b->file >= l->backup.copy.n + l->backup.n_files)
		return slu_fail(err, SLU_EINVAL, "the backup has %" PRIu32 " files, no %" PRIu32,
				l->backup.copy.n + l->backup.n_files, b->file);
	if (b->file >= l->backup.copy.n) {
		read_payload(l->backup.files[b->file - l->backup.copy.n], op);
		return 0;
	}
	file = &l->backup.copy.files[b->file];
	b->bytes = file->bytes;
	b->size = file->segment->size;
	snprintf(b->name, sizeof b->name, "%s", file->segment->name);
	op->result = (struct op_ref){ .pin = segment_ref(file->segment), .size = file->bytes };
	return 0;
}

static int
run_step(struct log_engine *l, struct op *op, struct slu_err *err)
{
	if (op->backup.step == BACKUP_BEGIN)
		return begin(l, &op->backup, err);
	if (!l->backup.copy.files || l->backup.id != op->backup.id)
		return slu_fail(err, SLU_ENOTFOUND,
				"there is no backup %" PRIu64 " here; one that nobody has read "
				"for %d s is over",
				op->backup.id, (int)(OP_BACKUP_IDLE / SLU_SEC));
	if (op->backup.step == BACKUP_READ)
		return read_one(l, op, err);
	log_backup_end(l);
	return 0;
}

void
log_backup(struct clerk *k, struct op *op)
{
	struct log_engine *l = of_clerk(k);
	struct slu_err err = { 0 };
	const int rc = run_step(l, op, &err);

	if (rc)
		op_fail(op, rc, &err);
	else
		l->backup.until = time_add(l->now, OP_BACKUP_IDLE);
}

void
log_backup_end(struct log_engine *l)
{
	wal_copy_close(&l->backup.copy);
	while (l->backup.n_files > 0)
		log_file_unpin(l->backup.files[--l->backup.n_files]);
	mem_free(l->backup.files);
	l->backup.files = NULL;
}

void
log_backup_tick(struct log_engine *l)
{
	if (!l->backup.copy.files || l->now < l->backup.until)
		return;
	log_warn(l->log, "backup given up", F_U64("backup", l->backup.id),
		 F_STR("why", "nobody reads it"));
	log_backup_end(l);
}

slu_time
log_backup_due(const struct log_engine *l)
{
	return l->backup.copy.files ? l->backup.until : SLU_NEVER;
}

int
log_backup_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
		struct slu_err *err)
{
	(void)e;
	if (ref->where & LOG_REF_FILE)
		return log_file_raw(ref->pin, at, n, out, err);
	return wal_copy_read(ref->pin, at, n, out, err);
}
