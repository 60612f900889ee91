/*
 * manifest.h - the list of a backup's files: backup.json, the last file that is written.
 *
 *      {"sluice_backup":1,"version":"0.1.0","engine":"log","backup":"3802...",
 *       "began_at":"2026-11-15T09:00:00Z",
 *       "shards":[{"name":"default","folder":"","last":812,"time":"2026-11-15T09:00:00Z"}],
 *       "left_out":[{"name":"red","engine":"redis"}],
 *       "files":[{"name":"00000001.log","bytes":70000,"size":67108864,"crc32c":12345}]}
 *
 *  MANIFEST-1  A backup without a manifest is incomplete.
 *  MANIFEST-2  A file has `bytes` bytes with the checksum `crc32c`, then zeros up to `size`. Its name is
 *      its path in the data folder. `folder` has the log of a shard: "" is the data folder itself.
 *      A backup of version 0.1.0 has no `folder`: a single shard is in the data folder, several
 *      shards are in 0, 1, ...
 *  MANIFEST-3  `last` is the last record of a shard. A copy whose log ends at another record is damaged.
 *  MANIFEST-4  `left_out` lists the shards that have no files and are not in the backup.
 */
#ifndef CLI_BACKUP_MANIFEST_H
#define CLI_BACKUP_MANIFEST_H

#include "base/bytes.h"
#include "base/json/json_out.h"

#include <sluice/err.h>

#define MANIFEST_NAME "backup.json"

enum {
	MANIFEST_VERSION = 1,
	MANIFEST_FILE_NAME = 192,
	MANIFEST_SHARD_NAME = 64,
	MANIFEST_FOLDER = 80,
	MANIFEST_ENGINE = 32,
	MANIFEST_BYTES_MAX = 64 << 20,
	MANIFEST_SHARDS_MAX = 1024
};

struct manifest_file {
	char name[MANIFEST_FILE_NAME];
	uint64_t bytes;
	uint64_t size;
	uint64_t crc32c;
};

struct manifest_shard {
	uint64_t shard; /* while the backup is made: the server's index of the shard */
	uint64_t files; /* while the backup is made: how many files the shard has */
	char name[MANIFEST_SHARD_NAME];
	char folder[MANIFEST_FOLDER];
	bool placed; /* the manifest has `folder` */
	uint64_t last;
	slu_time time;
};

/* MANIFEST-4 */
struct manifest_left_out {
	char name[MANIFEST_SHARD_NAME];
	char engine[MANIFEST_ENGINE];
};

struct manifest {
	char backup[24];
	char version[32];
	char engine[MANIFEST_ENGINE];
	slu_time began_at;
	struct manifest_shard *shards;
	uint32_t n_shards;
	struct manifest_left_out *left_out;
	uint32_t n_left_out;
	struct manifest_file *files;
	uint32_t n_files;
	uint64_t bytes; /* total of all files */
};

void manifest_release(struct manifest *m);

/* Returns SLU_ENOMEM if memory runs out. */
int manifest_add_file(struct manifest *m, const struct manifest_file *file);

/* Read a list of the server's answer or of the manifest. Return SLU_EINVAL or SLU_ENOMEM. */
int manifest_read_shards(struct manifest *m, struct slice list, struct slu_err *err);
int manifest_read_left_out(struct manifest *m, struct slice list, struct slu_err *err);

/* Writes the member `left_out`. */
void manifest_write_left_out(const struct manifest *m, struct json_out *w);

void manifest_write(const struct manifest *m, struct buf *out);

/* Returns SLU_EINVAL if the document is not a manifest, has a newer version, or names a path outside of the
 * folder; SLU_ENOMEM if memory runs out. */
int manifest_read(struct manifest *m, struct slice document, struct slu_err *err);

#endif
