/*
 * file_private.h - the parts of the file store.
 */
#ifndef STORE_FILE_FILE_PRIVATE_H
#define STORE_FILE_FILE_PRIVATE_H

#include "store/file/file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
	FILE_OWNER = 17,  /* bytes of the name of an open store below .tmp, with the NUL */
	FILE_TEMP = 48,   /* bytes of the name of a temporary file, with the NUL */
	FILE_FOLDERS = 64 /* folders that a store remembers */
};

/* The temporary files of one open store (temp.c). */
struct file_temp {
	int folder; /* .tmp; -1: not open */
	int lock;   /* the file <owner>.lock, locked; -1: not open */
	char owner[FILE_OWNER];
	_Atomic uint64_t next; /* number of the next temporary file */
};

struct file_store {
	struct store store; /* first */
	int root;           /* -1: not open */
	char *path;         /* of the root */
	dev_t device;       /* of the root, as inode */
	ino_t inode;
	struct file_temp temp;

	/* Folders whose own names are known to survive a power cut. Shared, under mtx. */
	pthread_mutex_t mtx;
	char *folders[FILE_FOLDERS]; /* NULL: free */
	unsigned next_folder;        /* the next place in folders, in turn */
};

/* Sets err to "what: strerror" and returns what errno `number` means: STORE_REFUSED if a repetition
 * cannot help, otherwise STORE_FAILED. */
enum store_result file_fail(int number, const char *what, struct slu_err *err);

/* STORE_FAILED if the path of the store does not lead to its root any more: the folder was moved, or
 * another one is in its place. Every function of the driver but clock calls it first. */
enum store_result file_check(const struct file_store *f, struct slu_err *err);

/* Opens a folder below the root for reading. That makes an NFS client look at the server, so that
 * names in it are fresh. Returns the descriptor, or -1 with errno. */
int file_open_folder(const struct file_store *f, const char *folder);

/* Opens the folder of a new object, and makes it if it is missing. Returns the descriptor, or -1
 * with errno. */
int file_need_folder(struct file_store *f, const char *folder);

/* Returns 0, or -1 with errno. */
int file_sync_folder(const struct file_store *f, const char *folder);

/* Opens <root>/.tmp, removes temporary files of dead processes, and locks a name of its own. */
enum store_result file_temp_open(struct file_temp *t, int root, struct slu_err *err);
void file_temp_close(struct file_temp *t);

/* Creates a temporary file for writing. Returns its descriptor, or -1 with errno. */
int file_temp_create(struct file_temp *t, char name[static FILE_TEMP]);

/* Sets *wall to the clock of the file system. Returns 0, or -1 with errno. */
int file_temp_clock(const struct file_temp *t, slu_time *wall);

/* The file system of a folder. */
struct file_place {
	unsigned long type; /* statfs.f_type */
	char mount[256];    /* NFS: type and options of its mount, "nfs4 rw,vers=4.2,hard,..." */
};

enum store_result file_place_read(struct file_place *p, int folder, struct slu_err *err);

/* STORE_REFUSED if the file system cannot be trusted. Pure. */
enum store_result file_place_check(const struct file_place *p, bool unsafe, struct slu_err *err);

/* The function `list` of the driver (list.c). */
enum store_result file_list(struct store *s, const char *prefix, const char *after, uint32_t max,
			    struct store_names *out, struct slu_err *err);

#endif
