#include "broker/outbox.h"

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker_private.h"
#include "broker/lane_private.h"
#include "core/backoff.h"

#include <ctype.h>

enum {
	ROWS = 64,            /* entries of a batch */
	BATCH_BYTES = 1 << 20 /* of their records; one entry may have more */
};

static const struct slu_backoff again = {
	.kind = SLU_BACKOFF_EXPONENTIAL,
	.base = OUTBOX_RETRY,
	.max = OUTBOX_RETRY_MAX,
};

struct outbox_line {
	struct list node;
	struct outbox *box;
	char queue[NAME_TEXT];
	uint64_t delivered; /* the highest number of this life that the target has; the lane's thread */

	/* Under box->mtx. */
	bool busy;
	bool kicked; /* since the last PEEK was posted */

	/* While busy: of the thread that has the op. */
	struct op op;
	unsigned failures; /* in a row */
	uint32_t target;   /* lane */
	uint32_t n;        /* entries of the batch */
	char *text;        /* their records */
	uint64_t ids[ROWS];
	uint64_t numbers[ROWS];
	uint8_t source[INTAKE_SOURCE];
	struct op_row rows[ROWS];
	struct op_put puts[ROWS];
	struct op_item items[ROWS];
};

struct outbox {
	struct broker *broker;
	uint32_t index; /* of the lane */
	struct lane *lane;
	pthread_mutex_t mtx;
	struct list lines; /* struct outbox_line; under mtx */
	struct list held;  /* struct op: route.mail.node, by route.later; the lane's thread */

	/* Looks for lines with entries. */
	bool looks; /* the op is under way; the lane's thread */
	struct op look;
	struct op_queue queues[8];
};

static void send(struct outbox_line *l);
static void look(struct outbox_line *l);

/* ---- Lines ---- */

static struct outbox_line *
find_line(struct outbox *box, struct slice queue)
{
	LIST_EACH(n, &box->lines) {
		struct outbox_line *const l = CONTAINER(n, struct outbox_line, node);

		if (slice_eq(slice_of(l->queue), queue))
			return l;
	}
	return NULL;
}

static struct outbox_line *
make_line(struct outbox *box, struct slice queue)
{
	struct outbox_line *const l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	l->box = box;
	memcpy(l->queue, queue.p, queue.n);
	list_append(&box->lines, &l->node);
	return l;
}

/* Sets the line idle, unless it was kicked meanwhile and goes on. */
static bool
ends(struct outbox_line *l, bool goes_on)
{
	struct outbox *const box = l->box;
	bool kicked;

	pthread_mutex_lock(&box->mtx);
	kicked = l->kicked && goes_on;
	l->kicked = false;
	l->busy = kicked;
	pthread_mutex_unlock(&box->mtx);
	return !kicked;
}

void
outbox_kick(struct outbox *box, struct slice line)
{
	struct outbox_line *l;
	bool starts;

	if (!box || !box->lane)
		return;
	pthread_mutex_lock(&box->mtx);
	l = find_line(box, line);
	if (!l)
		l = make_line(box, line);
	starts = l && !l->busy;
	if (l) {
		l->kicked = l->busy;
		l->busy = true;
	}
	pthread_mutex_unlock(&box->mtx);
	if (starts)
		look(l);
}

/* Posts an op of the line to the lane of the outbox. */
static void
post_own(struct outbox_line *l)
{
	struct op *const op = &l->op;

	op->route.cost = 1 + op->n_puts + op->n_items;
	op->route.bytes = BATCH_BYTES / ROWS;
	op->route.forwarded = true; /* if the shard has gone to another node, that node has the line */
	if (lane_post(l->box->lane, op))
		(void)ends(l, false); /* the broker stops */
}

/* ---- The name of a line ---- */

static const char *
line_name(const struct broker *b, uint32_t lane, char out[static NAME_TEXT])
{
	char name[BROKER_BATCH_NAME];
	size_t n = 0;

	_Static_assert((int)BROKER_BATCH_NAME <= (int)NAME_TEXT, "a line can have the name of every lane");
	for (const char *p = broker_batch_name(b, lane, name); *p; p++)
		out[n++] = *p == '/' ? '.' : (char)tolower((unsigned char)*p);
	out[n] = '\0';
	return out;
}

/* The lane that the line goes to; UINT32_MAX if this node does not have it. */
static uint32_t
find_target(const struct outbox_line *l)
{
	const struct broker *const b = l->box->broker;
	char name[NAME_TEXT];

	for (uint32_t i = 0; i < broker_lanes(b); i++)
		if (strcmp(line_name(b, i, name), l->queue) == 0)
			return i;
	return UINT32_MAX;
}

static bool
takes_batches(const struct broker *b, uint32_t lane)
{
	return !b->lanes[lane]->engine->ops->shared;
}

int
outbox_home(void *arg, struct slice space, struct slice queue, struct engine_home *out, struct slu_err *err)
{
	const struct outbox *const box = arg;
	struct broker *const b = box->broker;
	struct broker_place places[SUPPLIED_MAX];
	unsigned n;
	int rc;

	out->here = true;
	if (!out->line_always && broker_lanes(b) == 1 && !follows_any(b->follows))
		return 0;
	rc = broker_places(b, NULL, space, queue, places, &n, err);
	out->lane = places[0].lane;
	if (!rc && n > 1)
		rc = broker_home(b, NULL, space, queue, &out->lane, err);
	out->here = n == 1 && out->lane == box->index;
	if (rc || (out->here && !out->line_always))
		return rc;
	if (!takes_batches(b, out->lane))
		return slu_fail(err, SLU_ETOGETHER, "queue %.*s is on shard %s, which takes no messages from other shards; nothing was done",
				(int)queue.n, queue.p, broker_shard_name(b, out->lane));
	(void)line_name(b, out->lane, out->line);
	out->id = broker_new_lane_id(b, box->index);
	return 0;
}

/* ---- Ops that wait for their messages ---- */

static struct op *
first_held(const struct outbox *box)
{
	return box && !list_is_empty(&box->held) ? CONTAINER(box->held.next, struct op, route.mail.node) : NULL;
}

static bool
has_pending(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].pending)
			return true;
	return false;
}

bool
outbox_holds(struct outbox *box, struct op *op, slu_time now)
{
	if (!box || op->verb != OP_FINISH || op->rc || !has_pending(op))
		return false;
	op->route.later = now + OUTBOX_WAIT;
	list_append(&box->held, &op->route.mail.node);
	return true;
}

static void
let_one_go(struct outbox *box, struct op *op)
{
	list_remove(&op->route.mail.node);
	op->route.later = 0;
	lane_answer(box->lane, op);
}

void
outbox_let_go(struct outbox *box, slu_time now, bool all)
{
	struct op *op;

	while ((op = first_held(box)) != NULL && (all || op->route.later <= now))
		let_one_go(box, op);
}

slu_time
outbox_next(const struct outbox *box)
{
	const struct op *const op = first_held(box);

	return op ? op->route.later : SLU_NEVER;
}

/* The target has all entries up to l->delivered. */
static void
tell_delivered(struct outbox_line *l)
{
	struct outbox *const box = l->box;

	LIST_EACH_SAFE(n, &box->held) {
		struct op *const op = CONTAINER(n, struct op, route.mail.node);

		for (uint32_t i = 0; i < op->n_puts; i++)
			if (op->puts[i].pending && op->puts[i].line == l->target && op->puts[i].m.number <= l->delivered)
				op->puts[i].pending = false;
		if (!has_pending(op))
			let_one_go(box, op);
	}
}

/* ---- The steps of a line ---- */

/* Waits, then starts with the first entry again. */
static void
retry(struct outbox_line *l, int rc, const struct slu_err *err)
{
	if (l->failures++ == 4)
		log_warn(l->box->lane->log, "outbox waits for a shard", F_U64("shard", l->box->index), F_STR("target", l->queue),
			 F_STR("why", err->text[0] ? err->text : slu_err_row(rc)->text));
	look(l);
}

static void
on_dropped(struct op *op)
{
	struct outbox_line *const l = op->owner;

	if (op->rc) {
		(void)ends(l, false); /* the shard has failed or gone: what opens it looks for entries */
		return;
	}
	l->failures = 0;
	l->delivered = l->numbers[l->n - 1];
	tell_delivered(l);
	look(l);
}

/* Deletes the first n entries: the target has them. */
static void
drop(struct outbox_line *l, uint32_t n)
{
	l->n = n;
	op_init(&l->op, OP_DELETE, SLICE(OUTBOX_SPACE), slice_of(l->queue), on_dropped, l);
	for (uint32_t i = 0; i < n; i++)
		l->items[i] = (struct op_item){ .id = l->ids[i] };
	l->op.items = l->items;
	l->op.n_items = n;
	post_own(l);
}

static void
on_moved(struct op *op)
{
	struct outbox_line *const l = op->owner;

	if (op->rc && op->rc != SLU_ENOTFOUND)
		retry(l, op->rc, &op->err);
	else
		look(l);
}

/* The queue of the message has moved: the entry changes its line. */
static void
change_line(struct outbox_line *l, uint32_t i)
{
	op_init(&l->op, OP_FINISH, SLICE(OUTBOX_SPACE), slice_of(l->queue), on_moved, l);
	l->items[0] = (struct op_item){ .id = l->ids[i], .remove = true };
	l->op.items = l->items;
	l->op.n_items = 1;
	l->op.puts = &l->puts[i];
	l->op.n_puts = 1;
	l->op.home.epoch = broker_routes(l->box->broker)->epoch;
	post_own(l);
}

static bool
has_moved(const struct outbox_line *l, uint32_t i)
{
	const struct message *const m = &l->puts[i].m;
	uint32_t lane;

	return i < l->n && !broker_home(l->box->broker, NULL, m->space, m->queue, &lane, NULL) && lane != l->target;
}

static uint32_t
count_known(const struct outbox_line *l, uint64_t last)
{
	uint32_t n = 0;

	while (n < l->n && l->numbers[n] <= last)
		n++;
	return n;
}

static void
sent(struct outbox_line *l, int rc)
{
	struct op *const op = &l->op;

	if (!rc)
		drop(l, op->intake.known ? count_known(l, op->intake.last) : l->n);
	else if (rc == SLU_EMOVED && has_moved(l, op->failed))
		change_line(l, op->failed);
	else
		retry(l, rc, &op->err);
}

static void
on_sent(struct op *op)
{
	sent(op->owner, op->rc);
}

static void
send(struct outbox_line *l)
{
	struct op *const op = &l->op;
	int rc;

	op_init(op, OP_INTAKE, (struct slice){ 0 }, (struct slice){ 0 }, on_sent, l);
	memcpy(op->intake.source, l->source, INTAKE_SOURCE);
	op->intake.first = l->numbers[0];
	op->intake.batch = l->numbers[l->n - 1];
	op->puts = l->puts;
	op->n_puts = l->n;
	l->target = find_target(l);
	op->cursor = (uint64_t)l->target << BROKER_CURSOR_BITS;
	if (l->target == UINT32_MAX)
		rc = slu_fail(&op->err, SLU_EMOVED, "unknown shard: %s", l->queue);
	else
		rc = broker_post(l->box->broker, op);
	if (rc == SLU_ECLOSED)
		(void)ends(l, false);
	else if (rc)
		sent(l, rc);
}

/* Reads entry i from its record. Returns SLU_ECORRUPT. */
static int
read_entry(struct outbox_line *l, uint32_t i, struct slice record, struct slu_err *err)
{
	struct op_put *const put = &l->puts[i];
	uint8_t source[INTAKE_SOURCE];
	struct message entry;
	int rc = message_decode(record, &entry, err);

	if (!rc)
		rc = outbox_source_read(entry.correlation, source);
	*put = (struct op_put){ 0 };
	if (!rc)
		rc = message_decode(entry.payload, &put->m, err);
	if (rc)
		return rc;
	if (i > 0 && memcmp(source, l->source, sizeof source) != 0)
		return SLU_EINVAL; /* the batch ends */
	memcpy(l->source, source, sizeof source);
	put->given = put->m.id;
	put->deadline = put->m.expires;
	put->m.expires = 0;
	return 0;
}

static size_t
all_bytes(const struct op *op)
{
	size_t n = 1;

	for (uint32_t i = 0; i < op->n_rows; i++)
		n += op->rows[i].record.size;
	return n;
}

/* Fills the batch. */
static int
read_entries(struct outbox_line *l, struct slu_err *err)
{
	const struct op *const op = &l->op;
	char *p;
	int rc = 0;

	l->n = 0;
	if (!mem_resize(&l->text, all_bytes(op), 1))
		return slu_fail(err, SLU_ENOMEM, "no memory for entries of the outbox");
	p = l->text;
	for (uint32_t i = 0; i < op->n_rows && !rc; i++) {
		const struct op_ref *const ref = &op->rows[i].record;

		rc = engine_read(op->engine, ref, 0, ref->size, p, true, err);
		if (!rc)
			rc = read_entry(l, i, (struct slice){ p, ref->size }, err);
		if (rc)
			break;
		l->ids[i] = op->rows[i].id;
		l->numbers[i] = op->rows[i].number;
		l->n++;
		p += ref->size;
	}
	return l->n ? 0 : rc;
}

static void
on_looked(struct op *op)
{
	struct outbox_line *const l = op->owner;
	const bool none = op->rc || op->n_rows == 0;
	struct slu_err err = { 0 };
	int rc;

	if (none) {
		if (!ends(l, op->rc == 0))
			look(l);
		return;
	}
	rc = read_entries(l, &err);
	op_unpin(op);
	if (rc)
		retry(l, rc, &err);
	else
		send(l);
}

static void
look(struct outbox_line *l)
{
	op_init(&l->op, OP_PEEK, SLICE(OUTBOX_SPACE), slice_of(l->queue), on_looked, l);
	l->op.rows = l->rows;
	l->op.max_rows = ROWS;
	l->op.claim.max_bytes = BATCH_BYTES;
	l->op.route.later = l->failures ? backoff_delay(&again, l->failures, 0) : 0;
	post_own(l);
}

/* ---- Lines that have entries when the shard is opened ---- */

static void look_for_lines(struct outbox *box, uint64_t cursor);

static void
on_found(struct op *op)
{
	struct outbox *const box = op->owner;

	box->looks = false;
	for (uint32_t i = 0; !op->rc && i < op->n_queues; i++)
		if (op->queues[i].count[MSG_READY])
			outbox_kick(box, slice_of(op->queues[i].name));
	if (!op->rc && op->cursor)
		look_for_lines(box, op->cursor);
}

static void
look_for_lines(struct outbox *box, uint64_t cursor)
{
	struct op *const op = &box->look;

	if (box->looks)
		return;
	op_init(op, OP_QUEUES, SLICE(OUTBOX_SPACE), (struct slice){ 0 }, on_found, box);
	op->queues = box->queues;
	op->max_queues = COUNT(box->queues);
	op->cursor = cursor;
	op->route.cost = 1;
	op->route.bytes = sizeof *op;
	op->route.forwarded = true;
	box->looks = lane_post(box->lane, op) == 0;
}

void
outbox_opened(struct outbox *box)
{
	if (box && box->lane)
		look_for_lines(box, 0);
}

/* ---- Open and close ---- */

int
outbox_new(struct outbox **out, struct broker *b, uint32_t lane, struct slu_err *err)
{
	struct outbox *const box = mem_zalloc(sizeof *box);

	if (!box)
		return slu_fail(err, SLU_ENOMEM, "no memory for an outbox");
	box->broker = b;
	box->index = lane;
	pthread_mutex_init(&box->mtx, NULL); /* cannot fail with these attributes */
	list_init(&box->lines);
	list_init(&box->held);
	*out = box;
	return 0;
}

void
outbox_start(struct outbox *box, struct lane *s)
{
	box->lane = s;
	s->outbox = box;
	if (!s->conf.tenure && s->engine->ops->durable && !s->engine->ops->shared)
		outbox_opened(box);
}

void
outbox_free(struct outbox *box)
{
	if (!box)
		return;
	while (!list_is_empty(&box->lines)) {
		struct outbox_line *const l = CONTAINER(box->lines.next, struct outbox_line, node);

		list_remove(&l->node);
		mem_free(l->text);
		mem_free(l);
	}
	pthread_mutex_destroy(&box->mtx);
	mem_free(box);
}
