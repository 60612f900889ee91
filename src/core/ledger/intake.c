/*
 * intake.c - LEDGER-14: the last batch of every source.
 *
 * The table has at most LEDGER_SOURCES rows, those with the latest times. So replay ends with the same
 * rows, in whatever order cleaning has left the records.
 */
#include "base/mem.h"
#include "core/ledger/ledger_private.h"

#include <string.h>

static struct intake_source *
find(const struct ledger *l, const uint8_t source[static INTAKE_SOURCE])
{
	for (uint32_t i = 0; i < l->n_sources; i++)
		if (memcmp(l->sources[i].said.source, source, INTAKE_SOURCE) == 0)
			return &l->sources[i];
	return NULL;
}

static bool
is_older(const struct change_intake *a, const struct change_intake *b)
{
	if (a->last != b->last)
		return a->last < b->last;
	return memcmp(a->source, b->source, INTAKE_SOURCE) < 0;
}

static struct intake_source *
oldest(const struct ledger *l)
{
	struct intake_source *found = &l->sources[0];

	for (uint32_t i = 1; i < l->n_sources; i++)
		if (is_older(&l->sources[i].said, &found->said))
			found = &l->sources[i];
	return found;
}

uint64_t
ledger_intake_last(const struct ledger *l, const uint8_t source[static INTAKE_SOURCE], uint32_t *count)
{
	const struct intake_source *const s = find(l, source);

	*count = s ? s->said.count : 0;
	return s ? s->said.batch : 0;
}

int
ledger_intake_reserve(struct ledger *l)
{
	return mem_room(&l->sources, &l->max_sources, l->n_sources + 1, sizeof *l->sources) ? 0 : SLU_ENOMEM;
}

/* An outbox that has anything left sends it again and again: it is silent because it is empty. */
static slu_time
idle_of(const struct change_intake *said)
{
	return intake_is_outbox(said->source) ? LEDGER_OUTBOX_IDLE : LEDGER_SOURCE_IDLE;
}

int
ledger_intake(struct ledger *l, const struct change_intake *say, slu_time now, struct change *out)
{
	struct change c = ledger_begin(l, CHANGE_INTAKE, now);

	if (l->n_sources == LEDGER_SOURCES && !find(l, say->source) &&
	    now - oldest(l)->said.last < idle_of(&oldest(l)->said))
		return SLU_EBUSY;
	c.intake = say;
	return ledger_promise(l, &c, out);
}

/* A full table keeps its latest rows. Returns NULL if the new row is not one of them. */
static struct intake_source *
make_row(struct ledger *l, const struct change_intake *said)
{
	struct intake_source *s;

	if (l->n_sources < LEDGER_SOURCES) {
		s = &l->sources[l->n_sources++];
		s->where = 0;
		return s;
	}
	s = oldest(l);
	return is_older(said, &s->said) ? NULL : s;
}

/* A record that cleaning has relocated comes again with the same number. */
void
ledger_put_intake(struct ledger *l, const struct change *c)
{
	struct intake_source *s = find(l, c->intake->source);
	uint64_t old;

	if (!s)
		s = make_row(l, c->intake);
	else if (c->intake->batch < s->said.batch)
		s = NULL;
	if (!s) {
		ledger_drop(l, c->where);
		return;
	}
	old = s->where;
	s->said = *c->intake;
	s->where = c->where;
	if (old != c->where)
		ledger_drop(l, old);
}

uint64_t
ledger_intake_where(const struct ledger *l, const uint8_t source[static INTAKE_SOURCE])
{
	const struct intake_source *const s = find(l, source);

	return s ? s->where : 0;
}

void
ledger_relocate_intake(struct ledger *l, const uint8_t source[static INTAKE_SOURCE], uint64_t where)
{
	struct intake_source *const s = find(l, source);

	ledger_drop(l, s->where);
	s->where = where;
}
