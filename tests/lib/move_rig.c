#include "move_rig.h"

#include "engine/payload.h"

#include <stdlib.h>

struct move_row *move_rows;
uint32_t move_n;

static uint64_t taken, counter;
static bool unread; /* the engine has failed meanwhile */

int
move_step(struct rig *r, const char *queue, enum move_step step, uint64_t batch)
{
	rig_unpin(r);
	rig_op(&r->op, OP_MOVE, RIG_SPACE, queue);
	r->op.move.step = step;
	r->op.move.batch = batch;
	return rig_do(r, &r->op);
}

void
move_mark(struct rig *r, const char *queue, uint64_t epoch, const char *lives)
{
	rig_unpin(r);
	rig_op(&r->op, OP_MOVE, RIG_SPACE, queue);
	r->op.move.step = MOVE_MARK;
	r->op.home.epoch = epoch;
	r->op.home.lives = lives;
	CHECK_EQ(0, rig_do(r, &r->op));
}

const char *
move_lives(struct rig *r, const char *queue)
{
	CHECK_EQ(0, move_step(r, queue, MOVE_LOOK, 0));
	return r->op.move.lives;
}

/* ---- TAKE ---- */

static char *
read_bytes(struct rig *r, const struct op_ref *ref)
{
	char *bytes;

	if (!ref->pin)
		return NULL;
	bytes = calloc(1, (size_t)ref->size + 1);
	unread |= engine_read(r->e, ref, 0, ref->size, bytes, true, NULL) != 0;
	CHECK(!unread || r->revive);
	return bytes;
}

static void
forget_rows(void)
{
	for (uint32_t i = 0; i < move_n; i++) {
		free(move_rows[i].bytes);
		free(move_rows[i].error);
		free(move_rows[i].large);
	}
	move_n = 0;
}

/* What the mover would have read of it. */
static void
keep_row(struct rig *r, const struct op_row *row)
{
	struct move_row *out;

	move_rows = realloc(move_rows, (move_n + 1) * sizeof *move_rows);
	out = &move_rows[move_n++];
	*out = (struct move_row){ .row = *row };
	out->error = read_bytes(r, &row->error);
	if (row->record.pin) {
		out->bytes = read_bytes(r, &row->record);
		if (unread)
			return;
		CHECK_EQ(0, message_decode((struct slice){ out->bytes, row->record.size }, &out->m, NULL));
		out->large = read_bytes(r, &row->payload);
		if (row->kind == MOVE_MESSAGE)
			CHECK_EQ(row->id, out->m.id);
	} else {
		out->bytes = read_bytes(r, &row->payload);
		out->m = (struct message){ .id = row->id,
					   .payload = { out->bytes, row->payload.size },
					   .payload_size = row->payload.size };
	}
}

static void
take_page(struct rig *r, const char *queue, const struct move_take *how, uint64_t cursor)
{
	rig_unpin(r);
	rig_op(&r->op, OP_MOVE, RIG_SPACE, queue);
	r->op.move.step = MOVE_TAKE;
	r->op.move.force = how->force;
	r->op.rows = r->rows;
	r->op.max_rows = how->max ? how->max : RIG_ROWS;
	r->op.move.max_bytes = how->max_bytes;
	r->op.cursor = cursor;
	for (int i = 0; rig_do(r, &r->op) == SLU_EBUSY && i < 1000; i++)
		CHECK_STR("move", r->op.err.limit); /* the broker would ask again */
	CHECK_EQ(0, r->op.rc, r->op.err.text);
	r->n = r->op.n_rows;
	CHECK(r->n <= r->op.max_rows);
	for (uint32_t i = 0; i < r->n; i++)
		keep_row(r, &r->rows[i]);
}

uint64_t
move_take(struct rig *r, const char *queue, const struct move_take *how)
{
	static const struct move_take plain;
	uint64_t cursor = 0, batch;

	forget_rows();
	unread = false;
	do {
		take_page(r, queue, how ? how : &plain, cursor);
		if (unread) {
			r->revive(r);
			return move_take(r, queue, how);
		}
		batch = r->op.move.batch;
		counter = r->op.move.counter;
		cursor = r->op.cursor;
		CHECK(r->n > 0 || !cursor);
	} while (cursor);
	taken = batch;
	rig_unpin(r);
	return batch;
}

/* ---- GIVE ---- */

static void
fill_put(const struct move_row *row, struct op_put *put)
{
	*put = (struct op_put){
		.m = row->m,
		.stood = {
			.kind = (enum move_kind)row->row.kind,
			.state = row->row.state,
			.flags = row->row.flags,
			.reason = row->row.reason,
			.attempts = row->row.attempts,
			.failures = row->row.failures,
			.error = row->error,
			.error_size = row->row.error.size,
			.version = row->row.state_version,
		},
	};
	if (row->large) {
		put->m.payload = (struct slice){ row->large, row->row.payload.size };
		put->m.file = put->m.mark = 0;
	}
	put->m.due = row->row.due;
	if (row->row.kind == MOVE_MESSAGE)
		put->m.expires = row->row.expires;
}

int
move_give(struct rig *a, struct rig *b, const char *queue)
{
	return move_give_by(a, b, queue, 0);
}

int
move_give_by(struct rig *a, struct rig *b, const char *queue, uint64_t epoch)
{
	struct op_put *puts = calloc(move_n + 1, sizeof *puts);
	struct payload **files = calloc(move_n + 1, sizeof *files);
	int rc;

	b->now = a->now > b->now ? a->now : b->now;
	for (uint32_t i = 0; i < move_n; i++) {
		fill_put(&move_rows[i], &puts[i]);
		if (move_rows[i].large)
			CHECK_EQ(0, payload_store(b->e, &puts[i].m, &files[i], NULL));
	}
	rig_unpin(b);
	rig_op(&b->op, OP_MOVE, RIG_SPACE, queue);
	b->op.move = (struct op_move){ .step = MOVE_GIVE, .batch = taken, .counter = counter };
	b->op.move.peer[0] = a->second ? 'b' : 'a';
	b->op.puts = puts;
	b->op.n_puts = move_n;
	b->op.home.epoch = epoch;
	rc = rig_do(b, &b->op);
	for (uint32_t i = 0; i < move_n; i++)
		payload_close(files[i]);
	free(files);
	free(puts);
	b->op.puts = NULL;
	return rc;
}

bool
move_has(struct rig *a, struct rig *b, const char *queue, uint64_t batch)
{
	rig_unpin(b);
	rig_op(&b->op, OP_MOVE, RIG_SPACE, queue);
	b->op.move = (struct op_move){ .step = MOVE_REFUSE, .batch = batch };
	b->op.move.peer[0] = a->second ? 'b' : 'a';
	CHECK_EQ(0, rig_do(b, &b->op), b->op.err.text);
	return b->op.move.given;
}

unsigned
move_all(struct rig *a, struct rig *b, const char *queue, uint32_t max)
{
	unsigned n = 0;

	while (move_take(a, queue, &(struct move_take){ .max = max })) {
		CHECK_EQ(0, move_give(a, b, queue), b->op.err.text);
		CHECK_EQ(0, move_step(a, queue, MOVE_DROP, taken));
		CHECK(++n < 10000);
	}
	forget_rows();
	a->now = b->now;
	return n;
}
