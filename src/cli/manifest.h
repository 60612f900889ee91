/*
 * manifest.h - what a backup holds: backup.json, the last thing that is written to it.
 *
 *      {"sluice_backup":1,"version":"0.1.0","engine":"log","backup":"3802...",
 *       "began_at":"2026-11-15T09:00:00Z",
 *       "shards":[{"last":812,"time":"2026-11-15T09:00:00Z"}],
 *       "files":[{"name":"00000001.log","bytes":70000,"size":67108864,"crc32c":12345}]}
 *
 *  M1  A backup without it is not whole: it was cut short.
 *  M2  A file has `bytes` that count, with that sum, and zeros up to `size`. Its name is
 *      its place in the data folder; with several shards each has a folder, 0, 1, ...
 *  M3  `last` is the last record of a shard: a copy whose log ends elsewhere is wrong.
 */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include "base/bytes.h"

#include <sluice/err.h>

#define MANIFEST_NAME "backup.json"

enum {
	MANIFEST_VERSION = 1,
	MANIFEST_FILE_NAME = 128,
	MANIFEST_BYTES_MAX = 64 << 20,
	MANIFEST_SHARDS_MAX = 1024
};

struct manifest_file {
	char name[MANIFEST_FILE_NAME];
	uint64_t bytes;
	uint64_t size;
	uint32_t sum;
};

struct manifest_shard {
	uint64_t files; /* while the backup is made */
	uint64_t last;
	slu_time time;
};

struct manifest {
	char backup[24];
	char version[32];
	char engine[32];
	slu_time began_at;
	struct manifest_shard *shards;
	uint32_t n_shards;
	struct manifest_file *files;
	uint32_t n_files;
	uint64_t bytes; /* of all files */
};

void manifest_release(struct manifest *m);

/* SLU_ENOMEM. */
int manifest_add_shard(struct manifest *m, const struct manifest_shard *shard);
int manifest_add_file(struct manifest *m, const struct manifest_file *file);

void manifest_write(const struct manifest *m, struct buf *out);

/* SLU_EINVAL: it is none, of a newer version, or has a name that would lead out of the
 * folder. SLU_ENOMEM. */
int manifest_read(struct manifest *m, struct slice document, struct slu_err *err);

#endif
