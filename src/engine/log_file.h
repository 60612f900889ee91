/*
 * log_file.h - payloads in files of their own: what is too large for the log.
 *
 *      payloads/00000007
 *      +------+--------------+--------------+- - -+------------+
 *      | head | sum | 65,532 | sum | 65,532 |     | sum | rest |
 *      +------+--------------+--------------+- - -+------------+
 *      0      4096           + 65536
 *
 *      any thread that may wait            the shard's thread
 *      open ─ write ─ write ─ seal ──op──> a record names it ──> none does any more
 *        │             (synced)              ^          │            │ that is synced,
 *        └─ close before that: removed       └ cleaning ┘            v nobody reads it
 *                                                                 removed
 *
 * docs/log-format.md has the bytes.
 *
 *  F1  A file and its name are synced before the op that names it enters the inbox.
 *  F2  What counts is the log: at open, files that no record names are removed.
 *  F3  A file goes when the log is synced that says so, and nobody has it pinned. Being
 *      removed needs no sync: if it comes back, F2.
 *  F4  Every block has a sum of its own, seeded with the file's mark and the number of
 *      the block. The mark is random and stands in the record, too: neither another
 *      file of that number nor a block in the wrong place passes for it. So a piece of a
 *      payload is read, and checked, without the rest.
 *  F5  Writing one leaves the room that the log's own reserve still needs (W4).
 *
 * Files are known by a handle while something names, writes or reads them. All of it
 * is under one mutex: large payloads are few.
 */
#ifndef ENGINE_LOG_FILE_H
#define ENGINE_LOG_FILE_H

#include "base/disk.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "engine/engine.h"

#include <pthread.h>

struct wal;

enum {
	LOG_FILE_HEAD = 4096,
	LOG_FILE_BLOCK = 65536,              /* with its sum */
	LOG_FILE_BYTES = LOG_FILE_BLOCK - 4, /* of the payload; a multiple of 3 */
	LOG_FILE_NAME = 32                   /* "payloads/00000007" */
};

struct log_file {
	struct log_files *home;
	uint64_t number;
	uint64_t size; /* of the payload */
	uint32_t mark; /* F4 */

	/* shared, under home->mtx */
	uint32_t names; /* places that name it */
	uint32_t pins;
	uint64_t id;    /* of the message, for people */
	uint64_t until; /* F3: the log has to be synced up to this record; 0: not known */
	int fd;         /* open for reading, or -1 */
	uint8_t state;  /* enum log_file_state */
	struct list node;
};

enum log_file_state {
	LOG_FILE_MADE,   /* its maker's: no record names it */
	LOG_FILE_NAMED,  /* by a record */
	LOG_FILE_DOOMED, /* by none any more, in `doomed` until F3 */
	LOG_FILE_GONE    /* may be removed, in `gone` once nobody has it pinned */
};

struct log_files {
	struct disk *disk;
	struct slu_log *log;
	struct wal *wal;         /* for F5; NULL: nothing is written */
	char *path;              /* of payloads/ */
	int folder;              /* of the log */
	int own;                 /* payloads/ in it, or -1: there is none, or none is needed */
	bool replaying;          /* what is not named any more is only forgotten: F2 */
	void (*wake)(void *arg); /* there is something to sweep; any thread */
	void *wake_arg;

	/* The shard thread's. */
	struct list doomed;
	uint64_t waiting; /* bytes in those */

	/* shared, under mtx */
	pthread_mutex_t mtx;
	struct slab slab; /* of struct log_file */
	struct map map;   /* by number */
	uint64_t last;    /* number given */
	struct list gone;
};

const char *log_file_name(uint64_t number, char out[static LOG_FILE_NAME]);

/* read_only: nothing is made or removed. SLU_EDOWN, SLU_ENOMEM. */
int log_files_open(struct log_files *s, struct disk *disk, struct slu_log *log,
		   const char *folder, bool read_only, struct slu_err *err);
void log_files_close(struct log_files *s); /* zeroed is fine */

/* A record names the file of m: one place more. The file is one that was sealed, or
 * (when replaying) any. SLU_EINVAL: there is none. SLU_ENOMEM: replaying. */
int log_files_name(struct log_files *s, const struct message *m, uint32_t *handle,
		   struct slu_err *err);
void log_files_name_again(struct log_files *s, uint32_t handle);
void log_files_unname(struct log_files *s, uint32_t handle);

/* After all was read back: remove what no record names (F2), say what is missing. */
int log_files_settle(struct log_files *s, struct slu_err *err);

/* F3, after a commit: the last record that was written, and the last that is synced. */
void log_files_committed(struct log_files *s, uint64_t seq, uint64_t durable);

/* Remove what may go. Any thread that may wait. */
void log_files_sweep(struct log_files *s);

/* Bytes of the payload. */
uint64_t log_files_size(struct log_files *s, uint32_t handle);

/* For reading; any thread may read and unpin. */
struct log_file *log_files_pin(struct log_files *s, uint32_t handle);
void log_file_pin(struct log_file *f); /* once more, or by who found it */
void log_file_unpin(struct log_file *f);

/* As engine_ops.read. */
int log_file_read(struct log_file *f, uint64_t at, size_t n, char *out, bool may_block,
		  struct slu_err *err);

/* All that a copy of the log as it was committed may name, pinned: *n of them in an
 * array that is the caller's. NULL and *n 0: none. SLU_ENOMEM. */
int log_files_pin_all(struct log_files *s, struct log_file ***out, uint32_t *n);

/* Bytes of the file itself, head and sums included; and how many there are. */
int log_file_raw(struct log_file *f, uint64_t at, size_t n, char *out, struct slu_err *err);
uint64_t log_file_length(const struct log_file *f);

/* Head and every block. */
int log_file_check(struct log_file *f, struct slu_err *err);

/* The next file that a record names, from *handle (0 at first) on; NULL: no more. For
 * who has the engine to himself. */
struct log_file *log_files_next(struct log_files *s, uint32_t *handle);

/* log_file_write.c: as engine_files has them. */
int log_writer_open(struct log_files *s, struct engine_file **out, struct slu_err *err);
int log_writer_write(struct engine_file *w, const void *p, size_t n, struct slu_err *err);
int log_writer_seal(struct engine_file *w, struct message *m, struct slu_err *err);
void log_writer_close(struct engine_file *w);

/* Copy the file that m names to another log's folder: whole, synced, under the same
 * name. SLU_EEXISTS: it was asked for before (from counts those as names, as when
 * replaying). SLU_ECORRUPT as for reading; SLU_EFULL, SLU_EDOWN. */
int log_file_copy(struct log_files *from, const struct message *m, struct log_files *to,
		  struct slu_err *err);

/* For who writes: see to it that there is a folder. */
int log_files_folder(struct log_files *s, struct slu_err *err);

/* For the writer: a file of a new number, which is the caller's; and that it is not
 * wanted, unless a record names it. */
int log_files_make(struct log_files *s, struct log_file **out, struct slu_err *err);
void log_files_unmake(struct log_file *f);

/* The sum of a block of n bytes. */
uint32_t log_file_sum(const struct log_file *f, uint64_t block, const char *p, size_t n);

#endif
