/*
 * mirror_leave.c - MIRROR-9: what a front folder has goes to the line, and the folder is left.
 */
#include "mirror/mirror_private.h"

#include <inttypes.h>

#define LOOK (100 * SLU_MS) /* how often the mirror tries to carry on, with a budget of puts */

/* Sets *end to the end of the durable groups. Groups behind them are not carried: a power cut may take them
 * from the folder, and the line would have more than the folder. */
static int
find_end(struct mirror *m, struct carry_place *end, uint64_t durable, struct slu_err *err)
{
	struct carry_place at = mirror_home(m).place;
	struct carried done;
	struct carrier c;
	int rc = 0;

	carrier_init(&c, m->conf.disk, m->leaves - 1);
	while (!rc && c.seq < durable && carry_is_before(at, *end)) {
		rc = carrier_next(&c, at, *end, 1, NULL, &done, err);
		if (!rc && c.seq <= durable)
			at = done.place;
	}
	rc = rc == SLU_ECORRUPT && c.seq >= durable ? 0 : rc;
	carrier_release(&c);
	*end = at;
	return rc;
}

static int
carry_all(struct mirror *m, struct carry_place end, uint64_t durable, struct slu_err *err)
{
	int rc = find_end(m, &end, durable, err);

	if (rc)
		return rc;
	mirror_carry(m, end);
	do {
		mirror_nudge(m);
		rc = mirror_wait(m, LOOK, err);
	} while (rc == MIRROR_BUSY);
	return rc;
}

int
mirror_leave(struct mirror *m, struct carry_place end, uint64_t durable, uint8_t *uuid, struct slu_err *err)
{
	struct disk *const disk = m->conf.disk;
	const int folder = disk->ops->folder(disk, m->conf.folder);
	int rc;

	if (folder < 0)
		return disk_fail(folder, "open", m->conf.folder, err);
	m->leaves = folder + 1;
	rc = mirror_mend(m, disk, folder, err);
	if (!rc && m->was_whole)
		rc = carry_all(m, end, durable, err);
	memcpy(uuid, m->front.uuid, LINE_LIFE);
	return rc;
}
