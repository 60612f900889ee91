/*
 * target_disk.h - a small disk and a clock for a started server; for target.c only.
 */
#ifndef TORTURE_TARGET_DISK_H
#define TORTURE_TARGET_DISK_H

#include "torture/target.h"

/* Mounts a small disk on its folder, or sets no_disk to the reason. */
void target_disk_make(struct target *v);
void target_disk_drop(struct target *v);

/* Finds libfaketime, or sets no_clock to the reason. */
void target_clock_make(struct target *v);

/* Called in the new process: enters the namespace of the disk and sets the clock. */
int target_enter(void *target);

#endif
