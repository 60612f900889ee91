/*
 * simdisk_private.h - what simdisk*.c share.
 */
#ifndef TESTS_SIMDISK_PRIVATE_H
#define TESTS_SIMDISK_PRIVATE_H

#include "simdisk.h"

struct sim_write {
	struct sim_write *older;
	size_t at;
	size_t n;
	unsigned long serial;
	bool doomed; /* a sync of it failed: it never reaches the disk */
	char data[];
};

void *sim_grab(size_t n); /* zeroed; the test ends when there is none */
void sim_unref(struct sim_inode *f);
void sim_drop_writes(struct sim_inode *f);
void sim_make_synced(struct sim_inode *f, size_t size);
struct sim_names *sim_names_change(struct simdisk *s);
int sim_names_find(const struct sim_names *n, const char *path); /* -1: none */
void sim_names_drop(struct sim_names *n, int i);
void sim_names_free(struct sim_names *n);
void sim_forget_older(struct sim_names *n);
uint64_t sim_used(const struct simdisk *s); /* under mtx */
void sim_close_all(struct simdisk *s);

#endif
