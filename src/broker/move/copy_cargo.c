/*
 * copy_cargo.c - turns the rows of a TAKE into the puts of a GIVE.
 */
#include "broker/move/copy_private.h"

#include "base/mem.h"

void
cargo_release(struct cargo *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		payload_close(c->stored[i]);
		mem_free(c->texts[i]);
		mem_free(c->errors[i]);
	}
	mem_free(c->puts);
	mem_free(c->stored);
	mem_free(c->texts);
	mem_free(c->errors);
	*c = (struct cargo){ 0 };
}

static int
no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
}

static int
reserve(struct cargo *c, uint32_t more, struct slu_err *err)
{
	const uint32_t max = c->n + more;

	if (!mem_resize(&c->puts, max, sizeof *c->puts) || !mem_resize(&c->stored, max, sizeof(struct payload *)) ||
	    !mem_resize(&c->texts, max, sizeof *c->texts) || !mem_resize(&c->errors, max, sizeof *c->errors))
		return no_memory(err);
	c->max = max;
	return 0;
}

/* Reads all bytes of a ref. */
static int
read_ref(struct engine *e, const struct op_ref *ref, char **out, struct slu_err *err)
{
	*out = mem_alloc(ref->size + 1ull);
	if (!*out)
		return no_memory(err);
	return ref->size ? engine_read(e, ref, 0, ref->size, *out, true, err) : 0;
}

/* Copies a payload that has a file of its own, piece by piece. */
static int
carry_payload(struct engine *from, const struct op_ref *ref, uint64_t size, struct payload *p,
	      struct slu_err *err)
{
	char *const room = mem_alloc(ENGINE_PIECE);
	int rc = room ? 0 : no_memory(err);

	for (uint64_t at = 0; !rc && at < size; at += ENGINE_PIECE) {
		const size_t n = size - at < ENGINE_PIECE ? (size_t)(size - at) : ENGINE_PIECE;

		rc = engine_read(from, ref, at, n, room, true, err);
		if (!rc)
			rc = payload_write(p, room, n, err);
	}
	mem_free(room);
	return rc;
}

static int
carry_record(struct engine *from, const struct op_row *row, struct engine *to,
	     struct op_put *put, char **text, struct payload **stored, struct slu_err *err)
{
	int rc = read_ref(from, &row->record, text, err);

	if (!rc)
		rc = message_decode((struct slice){ *text, row->record.size }, &put->m, err);
	if (rc)
		return rc;
	if (!row->payload.pin)
		return payload_is_large(to, put->m.payload.n) ? payload_store(to, &put->m, stored, err)
							      : 0;
	rc = payload_open(to, stored, err);
	if (!rc)
		rc = carry_payload(from, &row->payload, put->m.payload_size, *stored, err);
	return rc ? rc : payload_seal(*stored, &put->m, err);
}

/* A row without a record. */
static int
carry_bytes(struct engine *from, const struct op_row *row, struct op_put *put, char **text,
	    struct slu_err *err)
{
	int rc = 0;

	if (row->payload.pin)
		rc = read_ref(from, &row->payload, text, err);
	if (!rc && row->payload.pin)
		put->m.payload = (struct slice){ *text, row->payload.size };
	put->m.payload_size = put->m.payload.n;
	return rc;
}

static int
carry_error(struct engine *from, const struct op_row *row, struct op_put *put, char **text,
	    struct slu_err *err)
{
	int rc;

	if (!row->error.pin)
		return 0;
	rc = read_ref(from, &row->error, text, err);
	put->stood.error = *text;
	put->stood.error_size = row->error.size;
	return rc;
}

/* As in the table of enum move_kind. */
static void
set_stood(const struct op_row *row, struct op_put *put)
{
	put->stood.kind = row->kind;
	put->stood.state = row->state;
	put->stood.flags = row->flags;
	put->stood.reason = row->reason;
	put->stood.attempts = row->attempts;
	put->stood.failures = row->failures;
	put->stood.version = row->state_version;
	put->m.due = row->due;
	if (row->kind == MOVE_MESSAGE) {
		put->m.expires = row->expires == SLU_NEVER ? 0 : row->expires;
		put->m.prio = row->prio;
	}
	if (!row->record.pin)
		put->m.id = row->id;
}

static int
carry(struct cargo *c, struct engine *from, const struct op_row *row, struct engine *to,
      struct slu_err *err)
{
	const uint32_t i = c->n++;
	int rc;

	c->puts[i] = (struct op_put){ 0 };
	c->stored[i] = NULL;
	c->texts[i] = c->errors[i] = NULL;
	if (row->record.pin)
		rc = carry_record(from, row, to, &c->puts[i], &c->texts[i], &c->stored[i], err);
	else
		rc = carry_bytes(from, row, &c->puts[i], &c->texts[i], err);
	if (!rc)
		rc = carry_error(from, row, &c->puts[i], &c->errors[i], err);
	set_stood(row, &c->puts[i]);
	return rc;
}

int
cargo_add(struct cargo *c, const struct op *taken, struct engine *to, struct slu_err *err)
{
	int rc = reserve(c, taken->n_rows, err);

	for (uint32_t i = 0; !rc && i < taken->n_rows; i++)
		rc = carry(c, taken->engine, &taken->rows[i], to, err);
	return rc;
}
