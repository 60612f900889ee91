/*
 * file.h - payload files: payloads that are too large for the log.
 *
 *      payloads/00000007
 *      +------+--------------+--------------+- - -+------------+
 *      | head | sum | 65,532 | sum | 65,532 |     | sum | rest |
 *      +------+--------------+--------------+- - -+------------+
 *      0      4096           + 65536
 *
 *      any thread that may wait            the shard's thread
 *      open ─ write ─ write ─ seal ──op──> a record names it ──> no record names it
 *        │             (synced)              ^          │            │ when that is synced
 *        └─ close before that: removed       └ cleaning ┘            v and no pin is left
 *           (in a store: FILE-9)                                  removed
 *
 * docs/log-format.md has the bytes.
 *
 *  FILE-1  A file and its name are synced before the op that names the file enters the mailbox.
 *  FILE-2  The log decides: open removes files that no record names.
 *  FILE-3  A file is removed when its last name is gone, the log is synced up to that point,
 *      and no reader has the file pinned. The removal needs no sync: if the file comes back, FILE-2
 *      applies.
 *  FILE-4  Every block has a sum of its own, seeded with the file's mark and the number of
 *      the block. The mark is random and is in the record, too: another file with that
 *      number, or a block in the wrong place, does not pass. So a reader can check a part of
 *      a payload without the rest.
 *  FILE-5  A writer leaves the room that the log's reserve still needs (WAL-4).
 *  FILE-6  When the log has failed, logengine_files_shut ends writing: writers get SLU_EDOWN.
 *      The engine closes the files, and opens them again, when logengine_files_is_idle.
 *  FILE-7  If the log lives in a store, so do the files, as objects; the folder is a cache and is
 *      not synced. FILE-1 then means that the objects are in the store. A reader that misses a
 *      file fetches it. The number of a file begins with the epoch in which it was written, so
 *      two nodes never give one name to two files. Open removes the objects of older epochs
 *      that no record names (LINE-9).
 *  FILE-8  A node that does not own the shard writes files for the owner, and reads files of the
 *      owner, through a table of its own (transit.h). It gives a file a random number in the epoch
 *      of the owner, so the owner and other nodes do not give it, too. The owner names a file of
 *      another node only if it is of the current epoch, and not among the last LOGENGINE_FILE_SPENT
 *      files that the owner has removed: objects of other epochs may be gone. So seal gives the file
 *      a number of the epoch of that moment, whichever node owns the shard then.
 *  FILE-9  A node removes an object of its epoch only if it owned the shard after it had decided
 *      to: a group that it sent after the decision is confirmed. A virtual machine may be copied
 *      with its memory (LINE-1). Then two nodes have the same files and decide each for itself,
 *      but only one of them gets a group confirmed. A node that has lost the shard, or does not
 *      own it, leaves the objects to the next open of the shard; the owner removes the files of
 *      other nodes whose messages it refuses.
 *
 * A file has a handle while a record, a writer or a reader uses it. One mutex protects
 * the table: large payloads are few.
 */
#ifndef ENGINE_LOG_FILE_H
#define ENGINE_LOG_FILE_H

#include "base/disk.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "engine/engine.h"

#include <pthread.h>

struct store;
struct wal;

enum {
	LOGENGINE_FILE_HEAD = 4096,
	LOGENGINE_FILE_BLOCK = 65536,                    /* with its sum */
	LOGENGINE_FILE_BYTES = LOGENGINE_FILE_BLOCK - 4, /* bytes of the payload; a multiple of 3 */
	LOGENGINE_FILE_NAME = 32,                        /* "payloads/00000007" */
	LOGENGINE_FILE_EPOCH = 40,                       /* bits of a number below the epoch: FILE-7 */
	LOGENGINE_FILE_SPENT = 16384                     /* FILE-8 */
};

/* Set in the number of a file that another node than the owner has written: FILE-8. */
#define LOGENGINE_FILE_BROUGHT ((uint64_t)1 << (LOGENGINE_FILE_EPOCH - 1))

struct logengine_file {
	struct logengine_files *home;
	uint64_t number;
	uint64_t stored; /* number in the names of its objects */
	uint64_t size;   /* of the payload */
	uint32_t mark;   /* FILE-4 */

	/* shared, under home->mtx */
	uint32_t names; /* how many places name the file */
	uint32_t pins;  /* how many readers and writers use it */
	uint64_t id;    /* of the message, for error texts */
	uint64_t until; /* FILE-3: the log must be synced up to this record; 0 = not known.
			 * FILE-9: the line must have confirmed this group */
	int fd;         /* open for reading, or -1 */
	uint8_t state;  /* enum logengine_file_state */
	bool here;      /* the folder has it; false: not known */
	bool left;      /* FILE-9: this node does not remove the objects */
	struct list node;
};

enum logengine_file_state {
	LOGENGINE_FILE_MADE,   /* belongs to its writer: no record names it yet */
	LOGENGINE_FILE_NAMED,  /* a record names it */
	LOGENGINE_FILE_UNUSED, /* no record has named it; in `unused`, then in `doomed` until FILE-9 */
	LOGENGINE_FILE_DOOMED, /* no record names it any more; in `doomed` until FILE-3 */
	LOGENGINE_FILE_GONE    /* may be removed; in `gone` once it has no pin */
};

struct logengine_files {
	struct disk *disk;
	struct slu_log *log;
	struct wal *wal;   /* for FILE-5; NULL = no log */
	char *path;        /* of payloads/ */
	int folder;        /* the log's folder */
	int own;           /* the folder payloads/; -1 = it is missing or not needed */
	bool replaying;    /* a file without a name is forgotten, not removed: FILE-2 */
	_Atomic bool shut; /* FILE-6: no more writing */

	/* FILE-7 */
	struct store *store;           /* NULL = the folder keeps the files */
	const char *line;              /* name of the shard in the store */
	bool front;                    /* LOGENGINE-13: the folder has the files as well, synced */
	bool transit;                  /* FILE-8: another node owns the shard */
	struct logengine_files *owned; /* transit: the files of this node while it owns the shard */
	pthread_mutex_t fetching;      /* one file is fetched at a time */

	/* Used by the shard's thread only. */
	struct list doomed;
	uint64_t waiting; /* bytes of the doomed files */
	uint64_t group;   /* FILE-9: the next group has at least this number; 0 = no store */

	/* shared, under mtx */
	pthread_mutex_t mtx;
	uint64_t epoch;          /* FILE-7; transit: of the owner, 0 = no other node owns the shard */
	uint32_t users;          /* threads in this module that have no file pinned */
	void (*wake)(void *arg); /* called on any thread: logengine_files_sweep has work */
	void *wake_arg;
	struct slab slab; /* of struct logengine_file */
	struct map map;   /* by number */
	uint64_t last;    /* highest number of a file */
	struct list gone;
	struct list unused;
	_Atomic bool wants_group; /* FILE-9: `unused` is not empty */
	void (*poke)(void *arg);  /* called on any thread: wants_group is true */
	void *poke_arg;
	uint64_t *spent; /* FILE-8: a ring of numbers; NULL = no file of another node was removed */
	uint64_t n_spent;
};

/* "payloads/00000007" */
const char *logengine_file_name(uint64_t number, char out[static LOGENGINE_FILE_NAME]);

void logengine_files_init(struct logengine_files *s); /* before the first open; shut */
void logengine_files_release(struct logengine_files *s);

/* With read_only no file or folder is made or removed. Returns SLU_EDOWN, SLU_ENOMEM. */
int logengine_files_open(struct logengine_files *s, struct disk *disk, struct slu_log *log,
			 const char *folder, bool read_only, struct slu_err *err);
void logengine_files_close(struct logengine_files *s); /* also when it is not open */

/* file_store.c: FILE-7. After open and before settle. `line` is kept by the caller. */
void logengine_files_keep_in(struct logengine_files *s, struct store *store, const char *line,
			     uint64_t epoch);

/* Removes all files of the folder: they may be damaged, and the store has them. */
void logengine_files_drop(struct logengine_files *s);

/* Whether a record names the file with that number and mark. */
bool logengine_files_has(struct logengine_files *s, uint64_t number, uint32_t mark);

/* FILE-9: sets the function to call when files wait for a group. */
void logengine_files_set_poke(struct logengine_files *s, void (*fn)(void *arg), void *arg);

/* FILE-9: the shard's thread begins a run, whose group has at least this number. Returns true if files
 * wait for that group, so it must be put even if it is empty. */
bool logengine_files_begin(struct logengine_files *s, uint64_t group);

/* FILE-8: the owner does not accept m, which names a file of another node. Any thread. */
void logengine_files_refuse(struct logengine_files *s, const struct message *m);

/* Put the objects of a file, which is open as fd; fetch them; remove them. Any thread that may wait. */
int logengine_file_upload(struct logengine_file *f, int fd, struct slu_err *err);
int logengine_file_fetch(struct logengine_file *f, struct slu_err *err);
void logengine_file_unstore(struct logengine_file *f);

/* Removes objects of older epochs that no record names. */
int logengine_files_settle_store(struct logengine_files *s, struct slu_err *err);

/* FILE-6 */
void logengine_files_shut(struct logengine_files *s, bool shut);

/* True if no file is pinned and no other thread is in this module. */
bool logengine_files_is_idle(struct logengine_files *s);

/* Sets the function to call when logengine_files_sweep has work; NULL = sweep at once. */
void logengine_files_set_wake(struct logengine_files *s, void (*fn)(void *arg), void *arg);

/* A thread that has no file pinned enters (SLU_EDOWN: FILE-6) and leaves. */
int logengine_files_enter(struct logengine_files *s, struct slu_err *err);
void logengine_files_leave(struct logengine_files *s);

/* Counts one more record that names the file of m. The file was sealed; during replay it
 * may be unknown. Returns SLU_EINVAL if there is no such file, SLU_ENOMEM during replay. */
int logengine_files_name(struct logengine_files *s, const struct message *m, uint32_t *handle,
			 struct slu_err *err);

/* Counts one more, or one less, record that names the file. */
void logengine_files_name_again(struct logengine_files *s, uint32_t handle);
void logengine_files_unname(struct logengine_files *s, uint32_t handle);

/* Ends the replay: removes files that no record names (FILE-2). */
int logengine_files_settle(struct logengine_files *s, struct slu_err *err);

/* FILE-3, after a commit. `seq`: of the last written record; `durable`: of the last synced one. In a
 * store both are the number of the last confirmed group. */
void logengine_files_committed(struct logengine_files *s, uint64_t seq, uint64_t durable);

/* Removes the files in `gone`. Any thread that may wait. */
void logengine_files_sweep(struct logengine_files *s);

/* Bytes of the payload. */
uint64_t logengine_files_size(struct logengine_files *s, uint32_t handle);

/* Pin a file to read it. Any thread may read and unpin it. */
struct logengine_file *logengine_files_pin(struct logengine_files *s, uint32_t handle);
void logengine_file_pin(struct logengine_file *f);
void logengine_file_unpin(struct logengine_file *f);

/* engine_ops.read for a payload file. */
int logengine_file_read(struct logengine_file *f, uint64_t at, size_t n, char *out, bool may_block,
			struct slu_err *err);

/* FILE-7: fetches the file unless the folder has it. Any thread that may wait, with the file pinned. */
int logengine_file_bring(struct logengine_file *f, struct slu_err *err);

/* Whether the folder has the file, as far as this process knows. Any thread, with the file pinned. */
bool logengine_file_is_here(struct logengine_file *f);

/* How many files have a handle. */
uint32_t logengine_files_count(struct logengine_files *s);

/* Pins every file that the committed log may name. Sets *out to an array of *n files, which
 * the caller frees; NULL if *n is 0. Returns SLU_ENOMEM. */
int logengine_files_pin_all(struct logengine_files *s, struct logengine_file ***out, uint32_t *n);

/* Reads bytes of the file itself, with head and sums. */
int logengine_file_raw(struct logengine_file *f, uint64_t at, size_t n, char *out, struct slu_err *err);

/* The length of the file itself. */
uint64_t logengine_file_length(const struct logengine_file *f);

/* Checks the head and every block. */
int logengine_file_check(struct logengine_file *f, struct slu_err *err);

/* Puts the objects of a file of the folder into the store of logengine_files_keep_in. */
int logengine_file_store(struct logengine_file *f, struct slu_err *err);

/* The next file that a record names, from *handle (0 at first) on; NULL at the end. Only
 * while no other thread uses the engine. */
struct logengine_file *logengine_files_next(struct logengine_files *s, uint32_t *handle);

/* file_io.c: engine_files.open, .write, .seal and .close. */
int logengine_writer_open(struct logengine_files *s, struct engine_file **out, struct slu_err *err);
int logengine_writer_write(struct engine_file *file, const void *p, size_t n, struct slu_err *err);
int logengine_writer_seal(struct engine_file *file, struct message *m, struct slu_err *err);
void logengine_writer_close(struct engine_file *file);

/* Copies the file that m names to another log's folder, whole, synced, under the same name.
 * Counts a name in `from`, which is replaying. Returns SLU_EEXISTS if an earlier call named
 * the same file, SLU_ECORRUPT if the file is missing or damaged, SLU_EFULL, SLU_EDOWN. */
int logengine_file_copy(struct logengine_files *from, const struct message *m, struct logengine_files *to,
			struct slu_err *err);

/* Makes the folder payloads/ if it is missing. */
int logengine_files_folder(struct logengine_files *s, struct slu_err *err);

/* FILE-8: pins a file of the owner in the table of another node. Returns SLU_ENOMEM. */
int logengine_files_borrow(struct logengine_files *s, const struct engine_stored *from,
			   struct logengine_file **out, struct slu_err *err);

/* FILE-8: whether the owner of now can name a file with this number. */
bool logengine_files_travels(struct logengine_files *s, uint64_t number);

/* FILE-8: gives a file of transit that is being written a number of the current epoch. Returns SLU_EDOWN if no node
 * owns the shard now. */
int logengine_file_renumber(struct logengine_file *f, struct slu_err *err);

/* FILE-8: whether the file has a number of the current epoch. */
bool logengine_file_is_current(struct logengine_file *f);

/* Makes a file with a new number for a writer. */
int logengine_files_make(struct logengine_files *s, struct logengine_file **out, struct slu_err *err);

/* The writer is done with the file. Removes it if no record names it; its objects: FILE-9. */
void logengine_files_unmake(struct logengine_file *f);

/* The sum of a block of n bytes. */
uint32_t logengine_file_sum(const struct logengine_file *f, uint64_t block, const char *p, size_t n);

#endif
