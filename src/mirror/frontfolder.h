/*
 * frontfolder.h - the file `front`: the folder of a shard is a front folder.
 *
 *      front folder   groups 1 ......................... 90     the log: synced, answers requests
 *      store          groups 1 ............. 60                 the same log, carried behind
 *
 * The log of a front folder is the plain log in its folder. The mirror carries it to the store later
 * (mirror.h), so the folder may be the only place of the last messages. The file has the uuid of the
 * folder; groups of the line carry it (LINE-17).
 *
 *  FRONT-1  The file is on disk with FRONT_FILLING before the store has a group with its uuid. Until
 *      FRONT_WHOLE the folder is a cache: the store has all of the log. An open that finds FRONT_FILLING fills
 *      it anew: nothing in it was synced.
 *  FRONT-2  With FRONT_WHOLE every segment is synced, and the folder is the log: no program cuts, fills or
 *      empties it, whatever the store has.
 *  FRONT-3  FRONT_LEFT is written after the line has all that the folder has, and an opening behind it
 *      that is not pinned. The folder is a cache that is filled anew; its uuid is never used again.
 *
 * The file, little-endian:
 *      0   8  "sluicefr"
 *      8   4  sum: CRC-32C of bytes 12 to 47
 *      12  4  format, 1
 *      16 16  uuid of the folder
 *      32  4  state: enum front_state
 *      36 12  zero
 */
#ifndef MIRROR_FRONTFOLDER_H
#define MIRROR_FRONTFOLDER_H

#include "base/disk.h"

enum {
	FRONT_UUID = 16
};

enum front_state {
	FRONT_NONE,    /* no file: the folder is not a front */
	FRONT_FILLING, /* the store fills the folder: FRONT-1 */
	FRONT_WHOLE,   /* the folder is the log */
	FRONT_LEFT,    /* the folder was the log: FRONT-3 */
	FRONT_STATES
};

struct frontfolder {
	enum front_state state;
	uint8_t uuid[FRONT_UUID]; /* zeros = FRONT_NONE */
};

/* Reads the file. Returns SLU_ECORRUPT if it is damaged, SLU_EINVAL if its format is newer, SLU_EDOWN. */
int frontfolder_read(struct frontfolder *f, struct disk *disk, int folder, struct slu_err *err);

/* Replaces the file, and syncs it. Returns SLU_EFULL, SLU_EDOWN. */
int frontfolder_write(const struct frontfolder *f, struct disk *disk, int folder, struct slu_err *err);

/* Removes the file: the folder is not a front any more. */
int frontfolder_remove(struct disk *disk, int folder, struct slu_err *err);

/* Whether the folder is the only place of a part of its log: FRONT_WHOLE, or a file that cannot be read. */
bool frontfolder_is_log(struct disk *disk, int folder);

#endif
