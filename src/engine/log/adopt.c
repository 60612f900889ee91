/*
 * adopt.c - moves the log of a folder, with its payload files, into a store.
 */
#include "engine/log/logengine_private.h"

#include "mirror/adopt.h"
#include "mirror/cache.h"

struct logengine_adopt {
	struct logengine *l; /* read-only */
	const char *folder;
};

int
logengine_adopt_open(struct logengine_adopt **out, const char *folder, struct logengine_facts *facts,
		     struct slu_err *err)
{
	const struct engine_conf conf = { .folder = folder };
	struct logengine_adopt *const a = mem_zalloc(sizeof *a);
	int rc;

	if (!a)
		return logengine_no_memory(err);
	a->folder = folder;
	rc = logengine_refuse_cache(&conf, err);
	if (!rc)
		rc = logengine_new(&a->l, &conf, &(struct logengine_conf){ 0 }, err);
	if (!rc)
		rc = logengine_examine(a->l, &conf, facts, err);
	if (rc)
		logengine_adopt_close(a);
	else
		*out = a;
	return rc;
}

void
logengine_adopt_close(struct logengine_adopt *a)
{
	if (!a)
		return;
	if (a->l)
		logengine_free(a->l);
	mem_free(a);
}

static int
put_files(struct logengine_adopt *a, const struct adopt_conf *to, struct slu_err *err)
{
	struct logengine_files *const files = &a->l->files;
	struct logengine_file *f;
	uint32_t next = 0;
	int rc = 0;

	logengine_files_keep_in(files, to->store, to->shard, 0);
	while (!rc && (f = logengine_files_next(files, &next)) != NULL) {
		logengine_file_pin(f);
		rc = logengine_file_store(f, err);
		logengine_file_unpin(f);
		if (!rc && to->progress)
			to->progress(to->arg, logengine_file_length(f));
	}
	logengine_files_keep_in(files, NULL, NULL, 0);
	return rc;
}

uint64_t
logengine_adopt_bytes(struct logengine_adopt *a)
{
	struct wal_copy copy = { 0 };
	struct logengine_file *f;
	struct slu_err err;
	uint64_t bytes = 0;
	uint32_t next = 0;

	if (!wal_copy_open(&copy, a->l->wal, &err))
		bytes = copy.bytes;
	wal_copy_close(&copy);
	while ((f = logengine_files_next(&a->l->files, &next)) != NULL)
		bytes += logengine_file_length(f);
	return bytes;
}

int
logengine_adopt_put(struct logengine_adopt *a, const struct adopt_conf *to, uint64_t *epoch, struct slu_err *err)
{
	const int rc = put_files(a, to, err);

	return rc ? rc : adopt_log(to, a->l->wal, epoch, err);
}

int
logengine_adopt_claim(struct logengine_adopt *a, const uint8_t *uuid, const char *shard, struct slu_err *err)
{
	struct disk *const disk = &disk_posix;
	struct cache_conf conf = {
		.disk = disk,
		.folder = disk->ops->folder(disk, a->folder),
		.path = a->folder,
		.shard = shard,
	};
	int rc;

	if (conf.folder < 0)
		return disk_fail(conf.folder, "open", a->folder, err);
	memcpy(conf.uuid, uuid, CACHE_UUID);
	rc = cache_claim(&conf, err);
	disk->ops->close(disk, conf.folder);
	return rc;
}
