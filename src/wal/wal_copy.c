/*
 * wal_copy.c - pins the files of a log while a backup copies them.
 */
#include "wal/wal_private.h"

#include "base/mem.h"

#include <inttypes.h>

int
wal_copy_open(struct wal_copy *c, const struct wal *w, struct slu_err *err)
{
	int rc;

	*c = (struct wal_copy){ .seq = w->seq, .time = w->time };
	rc = wal_check(w, err);
	if (rc)
		return rc;
	c->files = mem_array(w->n_segments, sizeof *c->files);
	if (!c->files)
		return slu_fail(err, SLU_ENOMEM, "no memory for a copy of %u segments", w->n_segments);
	for (; c->n < w->n_segments; c->n++) {
		struct segment *s = w->segments[c->n];

		c->files[c->n] = (struct wal_copy_file){ segment_ref(s), s->end };
		c->bytes += s->end;
	}
	return 0;
}

void
wal_copy_close(struct wal_copy *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		segment_unref(c->files[i].segment);
	mem_free(c->files);
	*c = (struct wal_copy){ 0 };
}

int
wal_copy_read(const struct segment *s, uint64_t at, size_t n, char *out,
	      struct slu_err *err)
{
	if (at > s->size || n > s->size - at)
		return slu_fail(err, SLU_EINVAL, "%s: invalid range: %zu bytes at %" PRIu64, s->name, n, at);
	return segment_read(s, out, n, (uint32_t)at, false, err);
}
