/*
 * adopt.h - puts the log of a folder into a store, as the line of a shard that has none.
 *
 *      00000003.log  00000004.log            group 2   group 3   group 4
 *      +------+----+ +------+---- -          head, 4 MiB  ...    head, rest
 *      | head | ..   | head | ..    ──────>
 *
 * The groups hold the bytes of the segments as they are, in pieces (body.h). A server that takes
 * the shard fills its folder with them and reads the log, as after a takeover.
 *
 * Blocks. For a command that has the log to itself.
 */
#ifndef MIRROR_ADOPT_H
#define MIRROR_ADOPT_H

#include "line/line.h"
#include "store/store.h"
#include "wal/wal.h"

struct adopt_conf {
	struct store *store;
	const char *shard;       /* name of the shard in the store */
	uint8_t life[LINE_LIFE]; /* of the command */

	/* So many more bytes of the log are in the store. May be NULL. */
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
};

/* Takes a pinned shard without its front folder, which is lost (LINE-17): puts an opening that is not pinned
 * behind `newest`, the newest group of the shard. Sets *epoch to the epoch of the shard. Returns SLU_EBUSY if a
 * node takes the shard meanwhile, SLU_EDOWN if the store fails for 30 s, SLU_ENOMEM. */
int adopt_unpin(const struct adopt_conf *conf, const struct line_group *newest, uint64_t *epoch,
		struct slu_err *err);

/* Takes the shard, and appends the whole log. Sets *epoch to the epoch of the shard. Returns SLU_EEXISTS if
 * the shard has groups already, SLU_EBUSY if another node takes it meanwhile, SLU_EDOWN if the store
 * fails for 30 s, SLU_ENOMEM, or the codes of wal_copy_read. */
int adopt_log(const struct adopt_conf *conf, const struct wal *log, uint64_t *epoch, struct slu_err *err);

#endif
