/*
 * sim_text.c - what messages, results and errors say; all of it follows from ids.
 */
#include "sim_world.h"

#include "engine/attempts.h"

#include <stdio.h>

enum {
	PATTERN = 1 << 15
};

static char pattern[PATTERN + WORLD_PAYLOAD * 20];

const char *
world_payload(uint64_t id)
{
	if (pattern[0] == 0) {
		uint64_t dice = 1;

		EACH(i, pattern)
			pattern[i] = (char)(test_random(&dice) | 1);
	}
	return pattern + id * 2654435761u % PATTERN;
}

void
world_text(char out[static WORLD_TEXT], char what, uint64_t id)
{
	snprintf(out, WORLD_TEXT, "%c-%" PRIu64 "%.*s", what, id, (int)(id % 20),
		 "....................");
}

static bool
read_ref(struct sim_world *w, struct engine *e, const struct op_ref *ref, uint64_t id)
{
	const size_t size = sizeof w->bytes < ref->size ? sizeof w->bytes : ref->size;
	const int rc = engine_read(e, ref, 0, size, w->bytes, true, &w->err);

	if (!rc)
		return true;
	if (w->disk->dead || w->failing)
		return false;
	world_fail(w, "%" PRIu64 " cannot be read: %s", id, w->err.text);
}

void
world_check_record(struct sim_world *w, struct engine *e, const struct op_row *row,
		   const struct sim_msg *x)
{
	struct message got;
	char key[WORLD_KEY] = "", idem[WORLD_KEY] = "";

	if (!read_ref(w, e, &row->record, row->id))
		return;
	if (message_decode((struct slice){ w->bytes, row->record.size }, &got, &w->err))
		world_fail(w, "%" PRIu64 " is no message: %s", row->id, w->err.text);
	if (x->key >= 0)
		snprintf(key, sizeof key, "k%d", x->key);
	if (x->idem >= 0)
		snprintf(idem, sizeof idem, "i%d", x->idem);
	if (got.id != x->id || !slice_eq(got.space, world_space(x->queue)) ||
	    !slice_eq(got.queue, world_queue(x->queue)) || !slice_eq(got.key, slice_of(key)) ||
	    !slice_eq(got.idem, slice_of(idem)) || got.payload.n != x->size ||
	    memcmp(got.payload.p, world_payload(x->id), x->size) != 0)
		world_fail(w, "I1: %" PRIu64 " is not as it came", x->id);
}

bool
world_check_text(struct sim_world *w, struct engine *e, const struct op_ref *ref, char what,
		 uint64_t id)
{
	char want[WORLD_TEXT];
	struct slice got;

	world_text(want, what, id);
	if (!read_ref(w, e, ref, id)) {
		const struct sim_msg *const x = model_find(&w->model, id);

		return x && x->error;
	}
	got = attempts_error((struct slice){ w->bytes, ref->size }); /* a result has no attempts */
	if (what == 'e' && got.n == 0)
		return false;
	if (!slice_eq(slice_of(want), got))
		world_fail(w, "the %c of %" PRIu64 " is not as it came", what, id);
	return true;
}
