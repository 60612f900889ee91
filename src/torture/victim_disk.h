/*
 * victim_disk.h - a small disk and a clock for a server of our own; for victim.c alone.
 */
#ifndef TORTURE_VICTIM_DISK_H
#define TORTURE_VICTIM_DISK_H

#include "torture/victim.h"

/* Mount one on its folder, or say in no_disk why not. */
void victim_disk_make(struct victim *v);
void victim_disk_drop(struct victim *v);

/* Find what can move its clock, or say in no_clock why not. */
void victim_clock_make(struct victim *v);

/* In the new process: go where the disk is and take the clock along. */
int victim_enter(void *victim);

#endif
