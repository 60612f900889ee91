/*
 * drop_private.h - what the files of the file driver share; for them alone.
 */
#ifndef HANDOVER_DROP_PRIVATE_H
#define HANDOVER_DROP_PRIVATE_H

#include "handover/handover.h"
#include "handover/watch.h"

#include <limits.h>

/* A folder inbox/NAMESPACE/QUEUE. */
struct drop_queue {
	char space[WATCH_NAME];
	char queue[WATCH_NAME];
	int watch;     /* -1: none */
	bool refused;  /* the kernel refused a watch: the folder is polled */
	bool there;    /* the look at the tree has found it */
	bool waits;    /* it has files that have not settled */
	slu_time look; /* when to look at it */
	char **moved;  /* files that were moved into it */
	uint32_t n_moved, max_moved;
};

struct handover_place {
	char folder[PATH_MAX / 2];
	struct slu_log *log;
	struct handover_conf conf;
	int lock; /* -1: not held */
	char source[HANDOVER_UUID];
	uint64_t number;  /* the last number */
	uint64_t ceiling; /* no number above it was given */
	uint64_t random;

	bool watches;                    /* there is a watcher */
	bool own_watcher;                /* close it */
	struct handover_watcher watcher; /* of folders */
	bool logged;                     /* a log line has said that the folders are polled */

	struct drop_queue *queues;
	uint32_t n_queues, max_queues;
	int tree;           /* the watch of inbox/, or -1 */
	slu_time look_tree; /* when to look for new folders */
};

enum {
	DROP_PATH = PATH_MAX
};

/* ---- drop_disk.c ---- */

/* Sets err to the reason in errno. Returns SLU_EFORBIDDEN or SLU_EDOWN. */
int drop_fail(struct slu_err *err, const char *path);

int drop_sync_folder(const char *path, struct slu_err *err);

/* Writes a file whole and synced. */
int drop_write(const char *path, const char *text, struct slu_err *err);

/* Reads a file of at most `most` bytes, with a NUL behind. Returns SLU_ENOTFOUND, SLU_ETOOBIG. */
int drop_read(const char *path, size_t most, char **out, size_t *n, struct slu_err *err);

/* Removes a folder with all that it has. */
int drop_remove_tree(const char *path, struct slu_err *err);

/* ---- drop_queues.c: which folders there are, and when to look at them ---- */

/* Opens the watcher, if the file system sends notices of all changes. */
void drop_watch_begin(struct handover_place *p);

/* Reads notices, and finds new folders if it is time. Returns SLU_EDOWN, SLU_ENOMEM. */
int drop_look_around(struct handover_place *p, struct slu_err *err);

/* The look at a queue has found no file: sets the time of the next one. unsettled: the time until a file of it has
 * settled; SLU_NEVER: none. */
void drop_looked(struct handover_place *p, struct drop_queue *q, slu_time unsettled);

/* Whether the file was moved into the queue, as a whole. */
bool drop_was_moved(const struct drop_queue *q, const char *name);

/* How long to wait for the next look. */
slu_time drop_until_look(const struct handover_place *p);

void drop_queues_free(struct handover_place *p);

/* When a folder is looked at again. random: for the jitter. */
slu_time drop_poll_after(slu_time interval, slu_time jitter, uint64_t random);

#endif
