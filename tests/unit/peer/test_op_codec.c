/*
 * The codec of ops between nodes: CODEC-1 to CODEC-6 of peer/op_codec.h. Random ops are made from the
 * table of fields itself, so that a new row is tested at once.
 */
#include "test.h"

#include "base/shared_text.h"
#include "peer/fate.h"
#include "peer/op_codec.h"
#include "peer/op_fields.h"

#include <stdio.h>

enum {
	MESSAGE = 1 << 20,
	MOST = 4,       /* elements of a random list */
	TEXT_MOST = 40, /* bytes of a random text */
	TIMES = 300     /* random ops a verb */
};

static uint64_t dice;

static uint64_t
roll(uint64_t n)
{
	return test_random(&dice) % n;
}

/* ---- Random fields ---- */

static struct peer_bytes *source; /* what random records and texts point to */

static void
fill_source(void)
{
	source = peer_bytes_new(4096);
	CHECK(source);
	for (size_t i = 0; i < source->n; i++)
		source->p[i] = (char)(1 + roll(255));
}

static struct slice
random_text(size_t most)
{
	const size_t n = 1 + roll(most < TEXT_MOST ? most : TEXT_MOST);

	return (struct slice){ source->p + roll(2048), n };
}

static uint64_t
random_number(const struct op_field *f)
{
	const uint64_t wide = test_random(&dice) >> roll(64);

	if (f->kind == FIELD_BOOL)
		return roll(2);
	if (f->most)
		return roll(f->most + 1);
	return f->size == 8 ? wide : wide & ((1ull << 8 * f->size) - 1);
}

static void
put_at(const struct op_field *f, void *p, uint64_t value)
{
	switch (f->size) {
	case 1:
		*(uint8_t *)p = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)p = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)p = (uint32_t)value;
		break;
	default:
		*(uint64_t *)p = value;
	}
}

static void
random_field(const struct op_field *f, void *p, bool answer)
{
	struct slice text = random_text(f->kind == FIELD_TEXT ? f->size - 1u : f->most ? f->most
										       : TEXT_MOST);
	struct shared_text *owner;
	const char *limit;

	switch ((enum op_field_kind)f->kind) {
	case FIELD_SLICE:
		*(struct slice *)p = text;
		break;
	case FIELD_TEXT:
		memcpy(p, text.p, text.n);
		((char *)p)[text.n] = '\0';
		break;
	case FIELD_BYTES:
	case FIELD_U32S:
	case FIELD_U64S:
		memcpy(p, source->p + roll(1024), f->size);
		break;
	case FIELD_HOLDER:
		owner = shared_text_new(text);
		memcpy(p, &owner, sizeof owner);
		break;
	case FIELD_LIMIT:
		limit = roll(2) ? "depth" : "move";
		memcpy(p, &limit, sizeof limit);
		break;
	case FIELD_HELD_BY:
		if (answer) {
			memcpy(*(char **)p, text.p, text.n);
			(*(char **)p)[text.n] = '\0';
		}
		break;
	case FIELD_REF:
		*(struct op_ref *)p = peer_bytes_pin(source, roll(2048), roll(100), 0);
		break;
	case FIELD_LIST:
	case FIELD_KINDS:
		break;
	default:
		put_at(f, p, random_number(f));
	}
}

static bool
applies(const struct op_field *f, enum op_verb verb, bool answer)
{
	return (answer ? f->told : f->asked) & 1ull << verb;
}

static void
random_fields(const struct op_field *fields, unsigned n, void *base, enum op_verb verb, bool answer)
{
	for (unsigned i = 0; i < n; i++)
		if (applies(&fields[i], verb, answer) && roll(3))
			random_field(&fields[i], (char *)base + fields[i].at, answer);
}

/* ---- A random op ---- */

struct made {
	struct op op;
	struct op_put puts[MOST];
	struct op_item items[MOST];
	struct op_row rows[MOST];
	struct op_queue queues[MOST];
	struct op_key keys[MOST];
	struct op_use uses[MOST];
	char holder[LOCK_HOLDER_MAX + 1];
};

static void
begin(struct made *m, enum op_verb verb)
{
	memset(m, 0, sizeof *m);
	op_init(&m->op, verb, (struct slice){ 0 }, (struct slice){ 0 }, NULL, NULL);
	m->op.engine = &peer_engine;
	m->op.puts = m->puts;
	m->op.items = m->items;
	m->op.rows = m->rows;
	m->op.queues = m->queues;
	m->op.keys = m->keys;
	m->op.uses = m->uses;
	if (verb == OP_DESCRIBE || verb == OP_KEEPALIVE)
		m->op.lock.held_by = m->holder;
}

static void
each_list(struct made *m, bool answer)
{
	for (unsigned i = 0; i < n_op_fields; i++) {
		const struct op_field *const f = &op_fields[i];
		char *const elements = f->kind == FIELD_LIST ? *(char **)((char *)&m->op + f->at) : NULL;
		uint32_t *const count = elements ? (uint32_t *)((char *)&m->op + f->list->count) : NULL;

		if (!elements || !applies(f, m->op.verb, answer) || m->op.rc)
			continue;
		if (!answer || !f->list->same)
			*count = (uint32_t)(1 + roll(MOST));
		for (uint32_t k = 0; k < *count; k++)
			random_fields(f->list->fields, f->list->n_fields, elements + k * f->list->size, m->op.verb, answer);
	}
}

static void
make_question(struct made *m, enum op_verb verb)
{
	begin(m, verb);
	random_fields(op_fields, n_op_fields, &m->op, verb, false);
	each_list(m, false);
	if (m->op.max_rows)
		m->op.max_rows = MOST;
	if (m->op.max_queues || verb == OP_STATS)
		m->op.max_queues = MOST;
	if (m->op.max_keys)
		m->op.max_keys = MOST;
	if (m->op.max_uses)
		m->op.max_uses = MOST;
}

static void
make_answer(struct made *m)
{
	if (m->op.verb != OP_RETURN)
		m->op.max_rows = MOST;
	m->op.max_queues = m->op.max_keys = m->op.max_uses = MOST;
	random_fields(op_fields, n_op_fields, &m->op, m->op.verb, true);
	m->op.rc = roll(4) ? 0 : SLU_EBUSY;
	m->op.err.code = (enum slu_code)m->op.rc;
	each_list(m, true);
}

static void
answer_to(const struct made *asked, struct made *answered)
{
	*answered = *asked;
	answered->op.puts = answered->puts;
	answered->op.items = answered->items;
	answered->op.rows = answered->rows;
	answered->op.queues = answered->queues;
	answered->op.keys = answered->keys;
	answered->op.uses = answered->uses;
	if (asked->op.verb == OP_DESCRIBE || asked->op.verb == OP_KEEPALIVE)
		answered->op.lock.held_by = answered->holder;
	make_answer(answered);
}

/* ---- Comparing ---- */

static bool
same_ref(const struct op_ref *a, const struct op_ref *b)
{
	const struct peer_bytes *const x = a->pin, *const y = b->pin;

	if (!x || !y)
		return x == y;
	return a->size == b->size && a->sum == b->sum && memcmp(x->p + a->where, y->p + b->where, a->size) == 0;
}

static bool
same_owner(const struct shared_text *a, const struct shared_text *b)
{
	return a && b ? slice_eq(shared_text_slice(a), shared_text_slice(b)) : a == b;
}

static bool
same_name(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool
same_field(const struct op_field *f, const void *a, const void *b)
{
	switch ((enum op_field_kind)f->kind) {
	case FIELD_SLICE:
		return slice_eq(*(const struct slice *)a, *(const struct slice *)b);
	case FIELD_TEXT:
		return strcmp(a, b) == 0;
	case FIELD_HOLDER:
		return same_owner(*(struct shared_text *const *)a, *(struct shared_text *const *)b);
	case FIELD_LIMIT:
		return same_name(*(const char *const *)a, *(const char *const *)b);
	case FIELD_HELD_BY:
		return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
	case FIELD_REF:
		return same_ref(a, b);
	case FIELD_LIST:
		return true;
	default:
		return memcmp(a, b, f->size) == 0;
	}
}

static void
check_same(const struct op_field *fields, unsigned n, const void *a, const void *b, enum op_verb verb, bool answer)
{
	for (unsigned i = 0; i < n; i++)
		if (applies(&fields[i], verb, answer) && (fields[i].kind != FIELD_HELD_BY || answer) &&
		    !same_field(&fields[i], (const char *)a + fields[i].at, (const char *)b + fields[i].at))
			test_fail(__FILE__, __LINE__, "%s of %s differs", fields[i].name, op_verb_name(verb));
}

static void
check_same_op(const struct op *a, const struct op *b, bool answer)
{
	check_same(op_fields, n_op_fields, a, b, a->verb, answer);
	for (unsigned i = 0; i < n_op_fields; i++) {
		const struct op_field *const f = &op_fields[i];

		if (f->kind != FIELD_LIST || !applies(f, a->verb, answer))
			continue;
		CHECK_EQ(*(const uint32_t *)((const char *)a + f->list->count),
			 *(const uint32_t *)((const char *)b + f->list->count), f->name);
		for (uint32_t k = 0; k < *(const uint32_t *)((const char *)a + f->list->count); k++)
			check_same(f->list->fields, f->list->n_fields,
				   *(char *const *)((const char *)a + f->at) + k * f->list->size,
				   *(char *const *)((const char *)b + f->at) + k * f->list->size, a->verb, answer);
	}
}

/* ---- Round trips ---- */

static struct peer_bytes *
message_of(const struct buf *b)
{
	struct peer_bytes *const m = peer_bytes_new(b->n);

	CHECK(m);
	memcpy(m->p, b->p, b->n);
	return m;
}

static void
check_question(const struct made *asked, struct op *got)
{
	struct buf bytes, again;
	struct slu_err err = { 0 };

	buf_init(&bytes, MESSAGE);
	buf_init(&again, MESSAGE);
	op_encode_question(&asked->op, &bytes);
	CHECK(!bytes.failed);
	if (op_decode_question(got, buf_slice(&bytes), &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	check_same_op(&asked->op, got, false);
	op_encode_question(got, &again);
	CHECK(slice_eq(buf_slice(&bytes), buf_slice(&again))); /* CODEC-1 */
	op_release_question(got);
	buf_release(&bytes);
	buf_release(&again);
}

static void
check_answer(struct made *answered, struct made *asked)
{
	struct buf bytes;
	struct peer_bytes *message;
	struct slu_err err = { 0 };

	buf_init(&bytes, MESSAGE);
	CHECK_EQ(0, op_encode_answer(&answered->op, false, &bytes));
	message = message_of(&bytes);
	if (op_decode_answer(&asked->op, message, NULL, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	check_same_op(&answered->op, &asked->op, true);
	CHECK_EQ(answered->op.rc, asked->op.err.code);
	op_unpin(&asked->op);
	op_unpin(&answered->op);
	CHECK_EQ(1, message->pins, "nothing is pinned any more");
	peer_bytes_unpin(message);
	buf_release(&bytes);
}

TEST(every_verb_comes_back_as_it_was)
{
	static struct made asked, answered;
	struct op got;

	dice = test_seed();
	fill_source();
	for (int v = 0; v < OP_VERBS; v++)
		for (int i = 0; op_wire[v] && i < TIMES; i++) {
			make_question(&asked, (enum op_verb)v);
			check_question(&asked, &got);
			answer_to(&asked, &answered);
			asked.op.max_rows = answered.op.max_rows;
			asked.op.max_queues = asked.op.max_keys = asked.op.max_uses = MOST;
			check_answer(&answered, &asked);
		}
	CHECK_EQ(1, source->pins);
	peer_bytes_unpin(source);
}

/* Cuts the message anywhere, or changes one of its bytes. */
static struct peer_bytes *
spoilt(const struct buf *answer)
{
	struct peer_bytes *const message = message_of(answer);
	const size_t at = roll(message->n);

	if (roll(2))
		message->n = at;
	else
		message->p[at] = (char)(message->p[at] + 1 + (int)roll(255));
	return message;
}

/* CODEC-6 */
static void
check_spoilt(struct made *asked, const struct buf *answer)
{
	struct peer_bytes *const message = spoilt(answer);
	struct buf before, after;
	struct slu_err err = { 0 };

	buf_init(&before, MESSAGE);
	buf_init(&after, MESSAGE);
	op_encode_question(&asked->op, &before);
	if (op_decode_answer(&asked->op, message, NULL, &err) == 0) {
		op_unpin(&asked->op);
	} else {
		op_encode_question(&asked->op, &after);
		if (!slice_eq(buf_slice(&before), buf_slice(&after)))
			test_fail(__FILE__, __LINE__, "the question %s differs: %s", op_verb_name(asked->op.verb), err.text);
		CHECK_EQ(0, asked->op.rc);
		CHECK_EQ(0, asked->op.err.code);
	}
	CHECK_EQ(1, message->pins);
	peer_bytes_unpin(message);
	buf_release(&before);
	buf_release(&after);
}

TEST(a_malformed_answer_leaves_the_question_of_a_read_as_it_was)
{
	static struct made asked, answered;
	struct buf answer;

	dice = test_seed();
	fill_source();
	buf_init(&answer, MESSAGE);
	for (int v = 0; v < OP_VERBS; v++)
		for (int i = 0; op_wire[v] && peer_may_repeat((enum op_verb)v, true) && i < TIMES; i++) {
			make_question(&asked, (enum op_verb)v);
			answer_to(&asked, &answered);
			buf_clear(&answer);
			CHECK_EQ(0, op_encode_answer(&answered.op, false, &answer));
			op_unpin(&answered.op);
			check_spoilt(&asked, &answer);
		}
	CHECK_EQ(1, source->pins);
	peer_bytes_unpin(source);
	buf_release(&answer);
}

/* ---- The table ---- */

static void
check_table(const struct op_field *fields, unsigned n, const char *of)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK(fields[i].tag > 0 && fields[i].name && fields[i].kind < FIELD_KINDS);
		if (i > 0 && fields[i].tag <= fields[i - 1].tag)
			test_fail(__FILE__, __LINE__, "%s: %s is out of order", of, fields[i].name);
		if (fields[i].kind == FIELD_LIST)
			check_table(fields[i].list->fields, fields[i].list->n_fields, fields[i].name);
	}
}

TEST(fields_are_in_the_order_of_their_tags)
{
	check_table(op_fields, n_op_fields, "op");
}

TEST(a_number_of_a_verb_is_given_once)
{
	for (int a = 0; a < OP_VERBS; a++)
		for (int b = 0; b < a; b++)
			CHECK(!op_wire[a] || op_wire[a] != op_wire[b]);
}

/* ---- Golden bytes ---- */

static const char *
hex(struct slice s)
{
	static char out[1024];
	size_t n = 0;

	for (size_t i = 0; i < s.n && n + 3 < sizeof out; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%02x", (uint8_t)s.p[i]);
	return out;
}

TEST(the_bytes_of_version_1)
{
	static struct made m;
	struct buf out;

	buf_init(&out, MESSAGE);
	begin(&m, OP_ENQUEUE);
	m.op.space = SLICE("ns");
	m.op.queue = SLICE("mail");
	m.op.n_puts = 1;
	m.puts[0].m.id = 7; /* CODEC-4 */
	m.puts[0].m.key = SLICE("k");
	m.puts[0].m.prio = -3;
	m.puts[0].m.payload = SLICE("hello");
	m.puts[0].m.payload_size = 5;
	op_encode_question(&m.op, &out);
	CHECK_STR("0101"         /* version, verb */
		  "01026e73"     /* namespace */
		  "02046d61696c" /* queue */
		  "c801"         /* puts: one */
		  "04016b"       /* key */
		  "0a05"         /* priority */
		  "1205"         /* payload_size */
		  "130568656c6c6f"
		  "00",
		  hex(buf_slice(&out)));
	buf_clear(&out);
	m.puts[0].m.number = 300;
	m.puts[0].max_attempts = 5;
	CHECK_EQ(0, op_encode_answer(&m.op, false, &out));
	CHECK_STR("0101c801"
		  "0107"   /* id */
		  "14ac02" /* number */
		  "1805"   /* attempts in force */
		  "00",
		  hex(buf_slice(&out)));
	buf_clear(&out);
	begin(&m, OP_CLAIM);
	m.op.space = SLICE("ns");
	m.op.queue = SLICE("mail");
	m.op.wait = SLU_SEC;
	m.op.max_rows = 2;
	op_encode_question(&m.op, &out);
	CHECK_STR("010201026e7302046d61696c0380a8d6b907"
		  "0b02", /* max_rows */
		  hex(buf_slice(&out)));
	buf_clear(&out);
	begin(&m, OP_STATE_PUT);
	m.op.lock.key = SLICE("k");
	m.op.lock.if_version = 0;
	op_encode_question(&m.op, &out);
	CHECK_STR("011b3c016b4300", hex(buf_slice(&out)));
	buf_release(&out);
}

/* ---- Refusals ---- */

TEST(malformed_questions_are_refused_by_name)
{
	static const struct {
		const char *label;
		struct slice bytes;
		const char *why;
	} cases[] = {
		{ "nothing", { "", 0 }, "invalid length of a message" },
		{ "a version of tomorrow", SLICE("\x02\x01"), "version 2 of a message from another node; expected 1" },
		{ "a verb of tomorrow", SLICE("\x01\xfe"), "unknown verb 254" },
		{ "no verb", SLICE("\x01\x00"), "unknown verb 0" },
		{ "a field of tomorrow", SLICE("\x01\x02\xfa\x01"), "unknown field 250 of claim" },
		{ "a field of another verb", SLICE("\x01\x02\x06\x01"), "unknown field 6 of claim" },
		{ "a field twice", SLICE("\x01\x02\x03\x02\x03\x02"), "unknown field 3 of claim" },
		{ "a field that is zero", SLICE("\x01\x02\x03\x00"), "invalid field wait of claim" },
		{ "a number with superfluous bytes", SLICE("\x01\x02\x03\x82\x00"), "invalid field wait" },
		{ "a number without an end", SLICE("\x01\x02\x03\x82"), "invalid field wait" },
		{ "a text behind the end", SLICE("\x01\x02\x01\x05nsp"), "invalid field namespace" },
		{ "an empty list", SLICE("\x01\x01\xc8\x00"), "invalid field puts of enqueue" },
		{ "more elements than bytes", SLICE("\x01\x01\xc8\xff\x7f"), "invalid field puts of enqueue" },
		{ "an element without an end", SLICE("\x01\x01\xc8\x01\x04\x01k"), "unknown field 0 of enqueue" },
		{ "room for too many rows", SLICE("\x01\x02\x0b\x81\x80\x01"), "invalid room for an answer" },
	};
	struct op op;

	EACH(i, cases) {
		struct slu_err err = { 0 };

		CHECK_EQ(SLU_EINVAL, op_decode_question(&op, cases[i].bytes, &err), cases[i].label);
		CHECK_CONTAINS(cases[i].why, err.text);
	}
}

TEST(an_answer_fits_its_question)
{
	static const struct {
		const char *label;
		enum op_verb verb;
		struct slice bytes;
	} cases[] = {
		{ "of another verb", OP_GET, SLICE("\x01\x02") },
		{ "more rows than there is room", OP_GET, SLICE("\x01\x0a\xca\x02\x00\x00") },
		{ "fewer puts than were sent", OP_ENQUEUE, SLICE("\x01\x01\xc8\x01\x00") },
		{ "no puts", OP_ENQUEUE, SLICE("\x01\x01") },
		{ "rows of a failure", OP_GET, SLICE("\x01\x0a\x14\xe9\x07\xca\x01\x00") },
	};

	EACH(i, cases) {
		static struct made m;
		struct buf bytes;
		struct peer_bytes *message;
		struct slu_err err = { 0 };

		begin(&m, cases[i].verb);
		m.op.max_rows = 1;
		m.op.n_puts = cases[i].verb == OP_ENQUEUE ? 2 : 0;
		buf_init(&bytes, MESSAGE);
		buf_put(&bytes, cases[i].bytes.p, cases[i].bytes.n);
		message = message_of(&bytes);
		CHECK_EQ(SLU_EINVAL, op_decode_answer(&m.op, message, NULL, &err), cases[i].label);
		CHECK_EQ(0, m.op.n_rows, cases[i].label);
		CHECK_EQ(1, message->pins, cases[i].label);
		peer_bytes_unpin(message);
		buf_release(&bytes);
	}
}

/* A record that the owner cannot read is an error where the entry node reads it. */
TEST(a_damaged_record_is_damaged_on_the_other_node)
{
	static const struct slice text = SLICE("bad sum");
	static struct made m;
	struct peer_bytes *const damaged = peer_bytes_new(text.n), *message;
	struct slu_err err = { 0 };
	struct buf bytes;
	char out[16];

	CHECK(damaged);
	memcpy(damaged->p, text.p, text.n);
	begin(&m, OP_GET);
	m.op.max_rows = m.op.n_rows = 1;
	m.rows[0].record = peer_bytes_pin(damaged, 0, text.n, SLU_ECORRUPT);
	buf_init(&bytes, MESSAGE);
	CHECK_EQ(0, op_encode_answer(&m.op, false, &bytes));
	op_unpin(&m.op);
	message = message_of(&bytes);
	CHECK_EQ(0, op_decode_answer(&m.op, message, NULL, &err));
	CHECK_EQ(SLU_ECORRUPT, engine_read(m.op.engine, &m.rows[0].record, 0, 1, out, true, &err));
	CHECK_STR("bad sum", err.text);
	op_unpin(&m.op);
	peer_bytes_unpin(message);
	peer_bytes_unpin(damaged);
	buf_release(&bytes);
}

/* ---- Payload files ---- */

/* An engine whose payload file 7 has the mark 9. */
static uint32_t stored_pins;

static bool
stored_name(const struct op_ref *ref, struct engine_stored *out)
{
	*out = (struct engine_stored){ 7, 9, ref->size };
	return ref->where == 1;
}

static int
stored_pin(struct engine *e, const struct engine_stored *file, struct op_ref *out, struct slu_err *err)
{
	(void)err;
	CHECK(file->number == 7 && file->mark == 9);
	stored_pins++;
	*out = (struct op_ref){ .pin = e, .where = 1, .size = file->size };
	return 0;
}

static bool
stored_travels(struct engine *e, const struct message *m)
{
	(void)e;
	return m->file == 7;
}

static int
stored_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out, bool may_block,
	    struct slu_err *err)
{
	CHECK(ref->pin == e && ref->where == 1);
	(void)may_block;
	(void)err;
	memset(out, (int)at, n);
	return 0;
}

static void
stored_unpin(struct engine *e, struct op_ref *ref)
{
	(void)e;
	stored_pins--;
	ref->pin = NULL;
}

static const struct engine_away stored_away = { .travels = stored_travels, .name = stored_name, .pin = stored_pin };
static const struct engine_ops stored_ops = { .read = stored_read, .unpin = stored_unpin, .away = &stored_away };

/* CODEC-5 */
TEST(the_name_of_a_payload_file_travels_and_its_bytes_do_not)
{
	static struct made m;
	struct engine owner = { &stored_ops }, entry = { &stored_ops };
	struct peer_bytes *message;
	struct slu_err err = { 0 };
	struct buf bytes;
	char out[4];

	begin(&m, OP_GET);
	m.op.max_rows = m.op.n_rows = 1;
	m.op.engine = &owner;
	m.rows[0].payload = (struct op_ref){ .pin = &owner, .where = 1, .size = 100 << 20 };
	buf_init(&bytes, 100);
	CHECK_EQ(0, op_encode_answer(&m.op, false, &bytes));
	CHECK(!bytes.failed);
	message = message_of(&bytes);
	CHECK_EQ(0, op_decode_answer(&m.op, message, &entry, &err));
	CHECK_EQ(100 << 20, m.rows[0].payload.size);
	CHECK_EQ(0, engine_read(m.op.engine, &m.rows[0].payload, 65, 4, out, true, &err));
	CHECK(memcmp(out, "AAAA", 4) == 0);
	CHECK_EQ(1, stored_pins);
	op_unpin(&m.op);
	CHECK_EQ(0, stored_pins);
	CHECK_EQ(SLU_EINVAL, op_decode_answer(&m.op, message, NULL, &err), "no file without an engine");
	peer_bytes_unpin(message);
	buf_release(&bytes);
}

TEST(a_payload_in_a_file_travels_if_the_owner_can_name_it)
{
	static struct made m;
	struct engine entry = { &stored_ops };

	begin(&m, OP_ENQUEUE);
	m.op.n_puts = 1;
	m.puts[0].m.file = 7;
	CHECK(!op_travels(&m.op));
	m.puts[0].m.keeper = &entry;
	CHECK(op_travels(&m.op));
	m.puts[0].m.file = 8;
	CHECK(!op_travels(&m.op));
	begin(&m, OP_BACKUP);
	CHECK(!op_travels(&m.op));
}

TORTURE(a_question_without_memory)
{
	static const struct slice bytes = SLICE("\x01\x01\x01\x01n\xc8\x01\x04\x01k\x00");
	struct slu_err err = { 0 };
	struct op op;
	const int rc = op_decode_question(&op, bytes, &err);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	op_release_question(&op);
}
