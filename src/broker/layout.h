/*
 * layout.h - how the logs of a shard lie in its folder.
 *
 *      data/00000001.log ...     one log: --shards 1
 *      data/0/00000001.log ...   several logs: --shards 2
 *      data/1/00000001.log ...
 *      data/shards               how many there are, as text: "2\n"
 *      data/heavy/ ...           another shard, an entry of `shards`
 *
 * A queue lives in the log that its hash names, modulo the number of logs. Opened with
 * another number, a folder would look empty and take new messages beside the old ones.
 *
 *  LAYOUT-1  A folder that holds logs is opened with the number of logs that it was
 *            written with, or refused.
 *  LAYOUT-2  `shards` is written before the first log. Version 0.1.0 did not write it:
 *            then the number follows from the folders.
 *  LAYOUT-3  A folder without logs is left as it is if its volume has no room for all of them.
 *
 * Real files only: a simulated disk is not looked at.
 */
#ifndef BROKER_LAYOUT_H
#define BROKER_LAYOUT_H

#include <sluice/err.h>

/* Checks that `folder`, which may be missing, can be opened with that many logs.
 * setting: the name of the number in the settings, "--shards" or "poolSize"; NULL: it has none.
 * Returns SLU_EINVAL (LAYOUT-1), SLU_EFULL (LAYOUT-3), SLU_EDOWN or SLU_ENOMEM if not. */
int layout_fits(const char *folder, uint32_t logs, const char *setting, struct slu_err *err);

/* The same, and notes the number in the folder if it is not there yet. */
int layout_check(const char *folder, uint32_t logs, const char *setting, struct slu_err *err);

/* Call fn for `data` if it holds logs, and for each folder in it that is a shard of its own.
 * A folder that is missing holds nothing. Returns SLU_EDOWN, SLU_ENOMEM. */
typedef void layout_fn(void *arg, const char *folder);
int layout_each(const char *data, layout_fn *fn, void *arg, struct slu_err *err);

#endif
