/*
 * manifest.h - what a backup holds: backup.json, the last thing that is written to it.
 *
 *      {"sluice_backup":1,"version":"0.1.0","engine":"log","backup":"3802...",
 *       "began_at":"2026-11-15T09:00:00Z",
 *       "shards":[{"name":"default","folder":"","last":812,"time":"2026-11-15T09:00:00Z"}],
 *       "left_out":[{"name":"red","engine":"redis"}],
 *       "files":[{"name":"00000001.log","bytes":70000,"size":67108864,"crc32c":12345}]}
 *
 *  M1  A backup without it is not whole: it was cut short.
 *  M2  A file has `bytes` that count, with that sum, and zeros up to `size`. Its name is
 *      its place in the data folder. `folder` is where the log of a shard is: "" is the data
 *      folder itself. A backup of version 0.1.0 has no `folder`: then one shard is in the data
 *      folder, and several are in 0, 1, ...
 *  M3  `last` is the last record of a shard: a copy whose log ends elsewhere is wrong.
 *  M4  `left_out` are the shards of the server that keep no files and so are not in the backup.
 */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include "base/bytes.h"
#include "base/json_out.h"

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
	uint32_t sum;
};

struct manifest_shard {
	uint64_t shard, files; /* while the backup is made: the server's number of it */
	char name[MANIFEST_SHARD_NAME];
	char folder[MANIFEST_FOLDER];
	bool placed; /* the folder was given */
	uint64_t last;
	slu_time time;
};

/* M4 */
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
	uint64_t bytes; /* of all files */
};

void manifest_release(struct manifest *m);

/* SLU_ENOMEM. */
int manifest_add_file(struct manifest *m, const struct manifest_file *file);

/* Lists as JSON, as the server's answer and the manifest have them. SLU_EINVAL, SLU_ENOMEM. */
int manifest_read_shards(struct manifest *m, struct slice list, struct slu_err *err);
int manifest_read_left_out(struct manifest *m, struct slice list, struct slu_err *err);

/* Print which shards were left out, as a JSON member of that name. */
void manifest_write_left_out(const struct manifest *m, struct json_out *w);

void manifest_write(const struct manifest *m, struct buf *out);

/* SLU_EINVAL: it is none, of a newer version, or has a name that would lead out of the
 * folder. SLU_ENOMEM. */
int manifest_read(struct manifest *m, struct slice document, struct slu_err *err);

#endif
