#include "wal/group.h"

#include "base/le.h"
#include "base/mem.h"

#include <assert.h>

enum {
	KEEP = 2 * 1024 * 1024, /* group_clear keeps a buffer up to this; a batch is about 1 MiB */
	FIRST_SIZE = 64 * 1024,
	FIRST_PIECES = 4
};

int
group_init(struct group *g)
{
	memset(g, 0, sizeof *g);
	g->pieces = mem_array(FIRST_PIECES, sizeof *g->pieces);
	if (!g->pieces)
		return SLU_ENOMEM;
	g->max_pieces = FIRST_PIECES;
	return 0;
}

void
group_release(struct group *g)
{
	mem_free(g->p);
	mem_free(g->pieces);
	memset(g, 0, sizeof *g);
}

void
group_clear(struct group *g)
{
	g->n = 0;
	g->n_pieces = 0;
	g->records = 0;
	g->last = NULL;
	if (g->size > KEEP) {
		mem_free(g->p);
		g->p = NULL;
		g->size = 0;
	}
}

int
group_reserve(struct group *g, uint64_t bytes, uint32_t pieces)
{
	const uint64_t need = g->n + bytes + (pieces + 1ull) * SEGMENT_PAGE;
	uint64_t size = g->size ? g->size : FIRST_SIZE;
	char *p;

	if (!mem_room(&g->pieces, &g->max_pieces, g->n_pieces + pieces + 1, sizeof *g->pieces))
		return SLU_ENOMEM;
	if (group_fits(g, bytes, pieces))
		return 0;
	while (size < need)
		size *= 2;
	p = mem_realloc(g->p, size);
	if (!p)
		return SLU_ENOMEM;
	if (g->last)
		g->last = p + (g->last - g->p);
	g->p = p;
	g->size = size;
	return 0;
}

/* Fills the page of the last record with zeros, unless the segment has zeros there. */
static void
pad(struct group *g)
{
	const struct group_piece *piece = group_piece(g);
	const size_t over = piece->end % SEGMENT_PAGE;
	const bool clear = piece->end == piece->at || piece->end <= piece->segment->clear;
	const size_t n = over && !clear ? SEGMENT_PAGE - over : 0;

	assert(g->size - g->n >= n);
	if (n)
		memset(g->p + g->n, 0, n);
	g->n += n;
}

void
group_add_piece(struct group *g, struct segment *s, uint32_t at)
{
	if (g->n_pieces)
		pad(g);
	assert(g->n_pieces < g->max_pieces);
	g->pieces[g->n_pieces++] = (struct group_piece){
		.segment = s, .at = at, .end = at, .from = g->n
	};
}

static void
seal_last(struct group *g, bool is_last)
{
	if (g->last)
		record_seal(g->last, g->last_salt, is_last);
	g->last = NULL;
}

void
group_put(struct group *g, const struct record *r, const struct slice *parts, unsigned n)
{
	struct group_piece *piece = group_piece(g);
	char *p = g->p + g->n;
	char *to = p + RECORD_HEAD + (r->flags & RECORD_HAS_TIME ? RECORD_TIME : 0);

	assert(g->size - g->n >= r->size && piece->segment->size - piece->end >= r->size);
	seal_last(g, false);
	le64_put(p + r->size - RECORD_ALIGN, 0); /* the padding, and bytes before it */
	record_put_head(p, r);
	for (unsigned i = 0; i < n; i++) {
		if (parts[i].n)
			memcpy(to, parts[i].p, parts[i].n);
		to += parts[i].n;
	}
	g->last = p;
	g->last_salt = segment_salt(piece->segment, piece->end);
	g->n += r->size;
	piece->end += r->size;
	g->records++;
}

const char *
group_find(const struct group *g, const struct segment *s, uint32_t offset)
{
	for (uint32_t i = 0; i < g->n_pieces; i++) {
		const struct group_piece *const piece = &g->pieces[i];

		if (piece->segment == s && offset >= piece->at && offset < piece->end)
			return g->p + piece->from + (offset - piece->at);
	}
	return NULL;
}

void
group_finish(struct group *g)
{
	seal_last(g, true);
	if (g->n_pieces)
		pad(g);
}

size_t
group_piece_size(const struct group *g, uint32_t i)
{
	const size_t end = i + 1 < g->n_pieces ? g->pieces[i + 1].from : g->n;

	return end - g->pieces[i].from;
}
