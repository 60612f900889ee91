#include "peer/link.h"

#include "base/le.h"
#include "base/mem.h"
#include "peer/op_codec.h"

#include <assert.h>

#define MAGIC "sluicepr"

enum {
	MORE = 1, /* flag of a frame */
	MAGIC_SIZE = sizeof MAGIC - 1,
	HELLO_SIZE = MAGIC_SIZE + 1 + HELLO_LIFE + HELLO_NONCE,
	CHALLENGE_SIZE = 1 + HELLO_NONCE,
	PARTIALS = 1024, /* messages that are not whole */
	SLOTS_MIN = 64
};

/* A frame that came. */
struct frame {
	uint8_t type;
	bool more;
	uint64_t number;
	struct slice body;
};

/* A message whose first frames have come; its last frame has not. */
struct link_partial {
	struct list node;
	uint64_t number;
	struct buf bytes;
};

static int
broken(struct peer_link *l, const char *why)
{
	if (l->state != LINK_BROKEN)
		(void)slu_fail(&l->err, SLU_EDOWN, "link to another node: %s", why);
	l->state = LINK_BROKEN;
	return SLU_EDOWN;
}

/* ---- Frames out ---- */

static void
put_head(struct buf *out, uint8_t type, bool more, size_t n, uint64_t number)
{
	char head[LINK_HEAD] = { (char)type, more ? MORE : 0 };

	le32_put(head + 4, (uint32_t)n);
	le64_put(head + 8, number);
	buf_put(out, head, sizeof head);
}

static void
control(struct peer_link *l, enum link_frame type, uint64_t number, struct slice body)
{
	put_head(&l->control, (uint8_t)type, false, body.n, number);
	buf_put(&l->control, body.p, body.n);
	if (l->control.failed)
		(void)broken(l, "out of memory");
}

static void
send_hello(struct peer_link *l)
{
	char body[HELLO_SIZE];

	memcpy(body, MAGIC, MAGIC_SIZE);
	body[MAGIC_SIZE] = LINK_VERSION;
	memcpy(body + MAGIC_SIZE + 1, l->hello.caller, HELLO_LIFE);
	memcpy(body + MAGIC_SIZE + 1 + HELLO_LIFE, l->hello.caller_nonce, HELLO_NONCE);
	control(l, LINK_HELLO, 0, (struct slice){ body, sizeof body });
}

static void
send_proof(struct peer_link *l)
{
	uint8_t proof[HELLO_PROOF];

	if (hello_proof(&l->hello, l->role, proof))
		control(l, LINK_PROOF, 0, (struct slice){ (const char *)proof, sizeof proof });
	else
		(void)broken(l, "no proof from libcrypto");
}

/* ---- Ops on their way ---- */

static struct link_op **
slot_of(const struct peer_link *l, uint64_t number)
{
	return &l->slots[number & (l->n_slots - 1)];
}

static struct link_op *
find(const struct peer_link *l, uint64_t number)
{
	struct link_op *const op = l->n_slots ? *slot_of(l, number) : NULL;

	return op && op->number == number ? op : NULL;
}

/* Numbers that differ modulo n also differ modulo 2 n. */
static int
grow(struct peer_link *l)
{
	const uint32_t n = l->n_slots ? 2 * l->n_slots : SLOTS_MIN;
	struct link_op **const old = l->slots;
	const uint32_t had = l->n_slots;

	if (n > LINK_OPS)
		return SLU_EBUSY;
	l->slots = mem_array(n, sizeof(struct link_op *));
	if (!l->slots) {
		l->slots = old;
		return SLU_ENOMEM;
	}
	l->n_slots = n;
	for (uint32_t i = 0; i < had; i++)
		if (old[i])
			*slot_of(l, old[i]->number) = old[i];
	mem_free(old);
	return 0;
}

static void
enter(struct peer_link *l, struct link_op *op, uint64_t number)
{
	*op = (struct link_op){ .number = number };
	list_init(&op->node);
	*slot_of(l, number) = op;
	l->ops++;
}

static void
leave(struct peer_link *l, struct link_op *op)
{
	list_remove(&op->node);
	*slot_of(l, op->number) = NULL;
	op->number = 0;
	l->ops--;
}

/* ---- Begin and end ---- */

void
link_init(struct peer_link *l, const struct link_conf *conf, slu_time now)
{
	const bool calls = conf->role == HELLO_CALLER;

	*l = (struct peer_link){
		.role = conf->role,
		.events = conf->events,
		.hello = { .secret = conf->secret, .version = LINK_VERSION },
		.state = calls ? LINK_AWAITS_CHALLENGE : LINK_AWAITS_HELLO,
		.began = now,
		.received = now,
		.pinged = now,
		.ticked = now,
	};
	memcpy(calls ? l->hello.caller : l->hello.owner, conf->life, HELLO_LIFE);
	memcpy(calls ? l->hello.caller_nonce : l->hello.owner_nonce, conf->nonce, HELLO_NONCE);
	list_init(&l->sending);
	list_init(&l->partial);
	buf_init(&l->control, LINK_PARTIAL);
	buf_init(&l->in, LINK_HEAD + LINK_FRAME);
	if (calls) {
		memcpy(l->hello.owner, conf->other, HELLO_LIFE);
		send_hello(l);
	}
}

void
link_bind(struct peer_link *l, const uint8_t binding[static HELLO_BINDING])
{
	memcpy(l->hello.binding, binding, HELLO_BINDING);
}

void
link_lose(struct peer_link *l, const char *why)
{
	(void)broken(l, why);
}

static void
free_partial(struct peer_link *l, struct link_partial *p)
{
	l->partial_bytes -= p->bytes.n;
	list_remove(&p->node);
	buf_release(&p->bytes);
	mem_free(p);
}

void
link_release(struct peer_link *l)
{
	if (!l->events)
		return;
	LIST_EACH_SAFE(n, &l->partial)
		free_partial(l, CONTAINER(n, struct link_partial, node));
	buf_release(&l->control);
	buf_release(&l->in);
	mem_free(l->slots);
	l->slots = NULL;
	l->events = NULL;
}

struct link_op *
link_leave(struct peer_link *l)
{
	struct link_op *op;

	if (l->ops == 0)
		return NULL;
	do
		op = l->slots[l->leaving++ & (l->n_slots - 1)];
	while (!op);
	leave(l, op);
	return op;
}

/* ---- The caller ---- */

int
link_ask(struct peer_link *l, struct link_op *op, struct slice message)
{
	int rc = 0;

	if (l->state == LINK_BROKEN || l->stopping)
		return SLU_EDOWN;
	if (l->ops >= l->n_slots / 2)
		rc = grow(l);
	if (rc && l->ops == l->n_slots)
		return rc;
	do
		l->last++;
	while (*slot_of(l, l->last));
	enter(l, op, l->last);
	op->message = message;
	list_append(&l->sending, &op->node);
	return 0;
}

void
link_cancel(struct peer_link *l, struct link_op *op)
{
	const bool leaves = !list_is_empty(&op->node); /* or the cancel would overtake the question */

	if (op->canceled)
		return;
	op->canceled = true;
	if (!leaves)
		control(l, LINK_CANCEL, op->number, (struct slice){ 0 });
}

/* ---- The owner ---- */

int
link_accept(struct peer_link *l, struct link_op *op, uint64_t number)
{
	int rc = 0;

	if (find(l, number))
		return broken(l, "a number was used twice");
	while (!rc && (l->n_slots == 0 || *slot_of(l, number)))
		rc = grow(l);
	if (rc)
		return broken(l, "too many ops");
	enter(l, op, number);
	return 0;
}

void
link_answer(struct peer_link *l, struct link_op *op, struct slice message)
{
	op->message = message;
	op->sent = 0;
	list_append(&l->sending, &op->node);
}

void
link_not_owner(struct peer_link *l, uint64_t number, const struct peer_target *hint)
{
	struct link_op *const op = find(l, number);
	const struct slice none = { 0 };
	struct buf body;

	if (op)
		leave(l, op);
	buf_init(&body, TARGET_BYTES);
	if (hint)
		target_put(hint, &body);
	control(l, LINK_NOT_OWNER, number, body.failed ? none : buf_slice(&body)); /* a hint may be lost */
	buf_release(&body);
}

void
link_stop(struct peer_link *l)
{
	if (!l->stopping && l->state == LINK_OPEN)
		control(l, LINK_STOP, 0, (struct slice){ 0 });
	l->stopping = true;
}

/* ---- Bytes out ---- */

/* Sends the next frame of the first message, which then waits for its next turn. */
static void
give_frame(struct peer_link *l, struct buf *out)
{
	struct link_op *const op = CONTAINER(l->sending.next, struct link_op, node);
	const size_t left = op->message.n - op->sent;
	const size_t n = left < LINK_FRAME ? left : LINK_FRAME;
	const bool more = n < left;

	op->began = true;
	put_head(out, l->role == HELLO_CALLER ? LINK_ASK : LINK_ANSWER, more, n, op->number);
	buf_put(out, op->message.p + op->sent, n);
	op->sent += n;
	list_remove(&op->node);
	if (more) {
		list_append(&l->sending, &op->node);
	} else if (l->role == HELLO_OWNER) {
		leave(l, op);
	} else if (op->canceled) {
		put_head(out, LINK_CANCEL, false, 0, op->number);
	}
}

bool
link_give(struct peer_link *l, struct buf *out)
{
	const size_t before = out->n;

	if (l->state == LINK_BROKEN)
		return false;
	buf_put(out, l->control.p, l->control.n);
	buf_clear(&l->control);
	while (l->state == LINK_OPEN && !list_is_empty(&l->sending) && out->n - before < LINK_GIVE && !out->failed)
		give_frame(l, out);
	if (out->failed)
		(void)broken(l, "out of memory");
	return l->state != LINK_BROKEN && out->n > before;
}

/* ---- The hello ---- */

static void
open_link(struct peer_link *l)
{
	l->state = LINK_OPEN;
	if (l->stopping)
		control(l, LINK_STOP, 0, (struct slice){ 0 });
	if (l->events->opened)
		l->events->opened(l);
}

static int
take_hello(struct peer_link *l, const struct frame *f)
{
	const char *const p = f->body.p;

	if (f->body.n != HELLO_SIZE || memcmp(p, MAGIC, MAGIC_SIZE) != 0 || p[MAGIC_SIZE] != LINK_VERSION)
		return broken(l, "unknown version");
	memcpy(l->hello.caller, p + MAGIC_SIZE + 1, HELLO_LIFE);
	memcpy(l->hello.caller_nonce, p + MAGIC_SIZE + 1 + HELLO_LIFE, HELLO_NONCE);
	if (memcmp(l->hello.caller_nonce, l->hello.owner_nonce, HELLO_NONCE) == 0)
		return broken(l, "the nonce of this node came back");
	l->state = LINK_AWAITS_PROOF;
	put_head(&l->control, LINK_CHALLENGE, false, CHALLENGE_SIZE, 0);
	buf_putc(&l->control, LINK_VERSION);
	buf_put(&l->control, l->hello.owner_nonce, HELLO_NONCE);
	return l->control.failed ? broken(l, "out of memory") : 0;
}

static int
take_challenge(struct peer_link *l, const struct frame *f)
{
	if (f->body.n != CHALLENGE_SIZE || f->body.p[0] != LINK_VERSION)
		return broken(l, "unknown version");
	memcpy(l->hello.owner_nonce, f->body.p + 1, HELLO_NONCE);
	l->state = LINK_AWAITS_PROOF;
	send_proof(l);
	return l->state == LINK_BROKEN ? SLU_EDOWN : 0;
}

static int
take_proof(struct peer_link *l, const struct frame *f)
{
	const enum hello_role other = l->role == HELLO_CALLER ? HELLO_OWNER : HELLO_CALLER;

	if (f->body.n != HELLO_PROOF || !hello_is_proof(&l->hello, other, (const uint8_t *)f->body.p))
		return broken(l, "wrong proof");
	if (l->role == HELLO_OWNER)
		send_proof(l);
	if (l->state != LINK_BROKEN)
		open_link(l);
	return l->state == LINK_BROKEN ? SLU_EDOWN : 0;
}

/* ---- Messages in ---- */

static struct link_partial *
find_partial(struct peer_link *l, uint64_t number, unsigned *n)
{
	*n = 0;
	LIST_EACH(each, &l->partial) {
		struct link_partial *const p = CONTAINER(each, struct link_partial, node);

		if (p->number == number)
			return p;
		++*n;
	}
	return NULL;
}

static struct link_partial *
partial_of(struct peer_link *l, uint64_t number)
{
	unsigned n;
	struct link_partial *p = find_partial(l, number, &n);

	if (p || n == PARTIALS)
		return p;
	p = mem_zalloc(sizeof *p);
	if (!p)
		return NULL;
	p->number = number;
	buf_init(&p->bytes, OP_CODEC_MAX);
	list_append(&l->partial, &p->node);
	return p;
}

/* Sets *out to the message, or to NULL if more frames follow. */
static int
assemble(struct peer_link *l, const struct frame *f, struct peer_bytes **out)
{
	unsigned n;
	struct link_partial *const p = f->more ? partial_of(l, f->number) : find_partial(l, f->number, &n);
	const struct slice before = p ? buf_slice(&p->bytes) : (struct slice){ 0 };

	*out = NULL;
	if (f->more) {
		if (!p || f->body.n == 0 || l->partial_bytes + f->body.n > LINK_PARTIAL)
			return broken(l, "too much that is not whole");
		buf_put(&p->bytes, f->body.p, f->body.n);
		l->partial_bytes += p->bytes.failed ? 0 : f->body.n;
		return p->bytes.failed ? broken(l, "a message is too large") : 0;
	}
	*out = before.n + f->body.n <= OP_CODEC_MAX ? peer_bytes_new(before.n + f->body.n) : NULL;
	if (!*out)
		return broken(l, "out of memory");
	if (before.n)
		memcpy((*out)->p, before.p, before.n);
	if (f->body.n)
		memcpy((*out)->p + before.n, f->body.p, f->body.n);
	if (p)
		free_partial(l, p);
	return 0;
}

static int
take_ask(struct peer_link *l, const struct frame *f)
{
	struct peer_bytes *message;
	const int rc = assemble(l, f, &message);

	if (!rc && message)
		l->events->asked(l, f->number, message);
	return rc;
}

/* A cancel may meet an answer that is on its way. */
static int
take_cancel(struct peer_link *l, const struct frame *f)
{
	struct link_op *const op = find(l, f->number);

	if (op && list_is_empty(&op->node))
		l->events->canceled(l, op);
	return 0;
}

/* The question of the op has left. */
static struct link_op *
asked_op(const struct peer_link *l, const struct frame *f)
{
	struct link_op *const op = find(l, f->number);

	return op && op->began && list_is_empty(&op->node) ? op : NULL;
}

static int
take_answer(struct peer_link *l, const struct frame *f)
{
	struct link_op *const op = asked_op(l, f);
	struct peer_bytes *message;
	int rc;

	if (!op)
		return broken(l, "an answer that was not asked for");
	rc = assemble(l, f, &message);
	if (rc || !message)
		return rc;
	leave(l, op);
	l->events->answered(l, op, message);
	return 0;
}

static int
take_not_owner(struct peer_link *l, const struct frame *f)
{
	struct link_op *const op = asked_op(l, f);
	struct peer_target hint;
	unsigned n;

	if (!op || find_partial(l, f->number, &n))
		return broken(l, "an answer that was not asked for");
	if (f->body.n > 0 && !target_get(f->body, &hint))
		return broken(l, "a malformed hint");
	leave(l, op);
	l->events->denied(l, op, f->body.n ? &hint : NULL);
	return 0;
}

static int
take_stop(struct peer_link *l, const struct frame *f)
{
	(void)f;
	l->stopping = true;
	if (l->events->stopped)
		l->events->stopped(l);
	LIST_EACH_SAFE(n, &l->sending) {
		struct link_op *const op = CONTAINER(n, struct link_op, node);

		if (op->began)
			continue;
		leave(l, op);
		l->events->denied(l, op, NULL);
	}
	return 0;
}

static int
take_is_there(struct peer_link *l, const struct frame *f)
{
	(void)f;
	control(l, LINK_IS_HERE, 0, (struct slice){ 0 });
	return 0;
}

static int
take_is_here(struct peer_link *l, const struct frame *f)
{
	(void)l;
	(void)f;
	return 0;
}

/* ---- Frames in ---- */

/* In which state, and in which role, a frame is in its place. */
static const struct {
	int (*take)(struct peer_link *l, const struct frame *f);
	enum link_state in;
	unsigned role; /* of the node that takes it; 0: both */
	bool of_op;    /* it has a number */
	size_t most;   /* bytes of its body */
} frames[LINK_FRAMES] = {
	[LINK_HELLO] = { take_hello, LINK_AWAITS_HELLO, HELLO_OWNER, false, HELLO_SIZE },
	[LINK_CHALLENGE] = { take_challenge, LINK_AWAITS_CHALLENGE, HELLO_CALLER, false, CHALLENGE_SIZE },
	[LINK_PROOF] = { take_proof, LINK_AWAITS_PROOF, 0, false, HELLO_PROOF },
	[LINK_ASK] = { take_ask, LINK_OPEN, HELLO_OWNER, true, LINK_FRAME },
	[LINK_CANCEL] = { take_cancel, LINK_OPEN, HELLO_OWNER, true, 0 },
	[LINK_ANSWER] = { take_answer, LINK_OPEN, HELLO_CALLER, true, LINK_FRAME },
	[LINK_NOT_OWNER] = { take_not_owner, LINK_OPEN, HELLO_CALLER, true, TARGET_BYTES },
	[LINK_STOP] = { take_stop, LINK_OPEN, HELLO_CALLER, false, 0 },
	[LINK_IS_THERE] = { take_is_there, LINK_OPEN, 0, false, 0 },
	[LINK_IS_HERE] = { take_is_here, LINK_OPEN, 0, false, 0 },
};

/* Checks a head before its body is awaited. */
static int
check_head(struct peer_link *l, const char *head, size_t *size)
{
	const uint8_t type = (uint8_t)head[0], flags = (uint8_t)head[1];
	const uint64_t number = le64_get(head + 8);

	*size = le32_get(head + 4);
	if (type == 0 || type >= LINK_FRAMES || frames[type].in != l->state ||
	    (frames[type].role && frames[type].role != l->role))
		return broken(l, "a frame that is out of place");
	if (flags > MORE || le16_get(head + 2) != 0 || *size > frames[type].most ||
	    (number != 0) != frames[type].of_op || (flags && type != LINK_ASK && type != LINK_ANSWER))
		return broken(l, "a malformed frame");
	return 0;
}

static int
take_frame(struct peer_link *l, const char *p, size_t size)
{
	const struct frame f = {
		.type = (uint8_t)p[0],
		.more = p[1],
		.number = le64_get(p + 8),
		.body = { p + LINK_HEAD, size },
	};

	return frames[f.type].take(l, &f);
}

/* Moves bytes to the frame that is not whole, until it has n. */
static bool
fill(struct peer_link *l, struct slice *bytes, size_t n)
{
	const size_t lacks = n > l->in.n ? n - l->in.n : 0;
	const size_t take = bytes->n < lacks ? bytes->n : lacks;

	buf_put(&l->in, bytes->p, take);
	slice_skip(bytes, take);
	return l->in.n >= n;
}

/* Takes the frames that are whole in the bytes, without a copy. */
static int
take_whole(struct peer_link *l, struct slice *bytes)
{
	size_t size;
	int rc = 0;

	while (!rc && bytes->n >= LINK_HEAD) {
		rc = check_head(l, bytes->p, &size);
		if (rc || bytes->n < LINK_HEAD + size)
			break;
		rc = take_frame(l, bytes->p, size);
		if (l->state == LINK_BROKEN)
			rc = SLU_EDOWN;
		slice_skip(bytes, LINK_HEAD + size);
	}
	return rc;
}

int
link_take(struct peer_link *l, const char *p, size_t n, slu_time now)
{
	struct slice bytes = { p, n };
	size_t size;
	int rc = l->state == LINK_BROKEN ? SLU_EDOWN : 0;

	l->received = now;
	while (!rc) {
		if (l->in.n == 0)
			rc = take_whole(l, &bytes);
		if (rc || !fill(l, &bytes, LINK_HEAD))
			break;
		rc = check_head(l, l->in.p, &size);
		if (rc || !fill(l, &bytes, LINK_HEAD + size))
			break;
		rc = take_frame(l, l->in.p, size);
		if (l->state == LINK_BROKEN)
			rc = SLU_EDOWN;
		buf_clear(&l->in);
	}
	if (l->in.failed)
		rc = broken(l, "out of memory");
	return rc;
}

/* ---- Time ---- */

static slu_time
earlier(slu_time a, slu_time b)
{
	return a < b ? a : b;
}

slu_time
link_tick(struct peer_link *l, slu_time now)
{
	const slu_time late = now - l->ticked;

	l->ticked = now;
	if (l->state == LINK_BROKEN)
		return SLU_NEVER;
	if (l->state != LINK_OPEN) {
		if (now - l->began < LINK_HELLO_TIME)
			return l->began + LINK_HELLO_TIME;
		(void)broken(l, "no hello in time");
		return SLU_NEVER;
	}
	if (l->ops == 0) {
		l->received = now; /* nothing is expected */
		return now + LINK_PING;
	}
	if (late > 2 * LINK_PING) /* this process slept: bytes may wait to be read */
		l->received = now;
	if (now - l->received >= (l->hurried ? LINK_HURRY : LINK_SILENCE)) {
		(void)broken(l, "silent");
		return SLU_NEVER;
	}
	if (now - earlier(l->received, l->pinged) >= LINK_PING && now - l->pinged >= LINK_PING) {
		control(l, LINK_IS_THERE, 0, (struct slice){ 0 });
		l->pinged = now;
	}
	return now + LINK_PING;
}
