/*
 * watch.h - notices about changes in folders.
 *
 * A watcher is a struct of functions, so that a test, or another source of notices, can replace inotify
 * (handover_conf.watcher). One thread uses it.
 */
#ifndef HANDOVER_WATCH_H
#define HANDOVER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WATCH_NAME = 256,
	WATCH_ALL = -1 /* notices were lost: look at all folders */
};

struct watch_notice {
	int watch;             /* the number of the folder, or WATCH_ALL */
	bool gone;             /* the folder is gone, and its watch with it */
	char name[WATCH_NAME]; /* a file that was moved into the folder; empty: another change */
};

struct handover_watcher {
	void *arg;
	int fd; /* readable when there are notices */

	/* Watches a folder. Returns its number, or -1 with errno. */
	int (*add)(void *arg, const char *folder);
	void (*remove)(void *arg, int watch);

	/* Takes the next notice. Returns false if no notice has come. */
	bool (*next)(void *arg, struct watch_notice *out);
	void (*close)(void *arg);
};

/* Makes a watcher that uses inotify. Returns false, with errno, if the kernel refuses. */
bool watch_open(struct handover_watcher *out);

/* Whether notices miss changes that other machines make on a file system of this type (statfs). */
bool watch_is_blind(uint64_t type);

#endif
