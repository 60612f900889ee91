/*
 * nodes_node_store.c - requests of a node to the store. The world has the store.
 */
#include "nodes_node.h"

#include "base/mem.h"

#include <stdio.h>

static struct {
	uint64_t number;               /* 0 = it is not due */
	struct store_request *request; /* NULL = free */
	bool broken;                   /* it fails: its connection is gone */
} posted[NODES_REQUESTS];

static uint64_t numbers;
static char label[] = "sim://store";

/* ---- Requests ---- */

static void
tell_request(const struct store_request *r)
{
	struct node_told *const t = &node.channel->told;
	struct told_request *const to = &t->requests[t->n_requests++];

	CHECK(t->n_requests <= NODES_REQUESTS && t->n_bytes + r->object.n <= NODES_BYTES);
	*to = (struct told_request){
		.number = numbers,
		.verb = r->verb,
		.from = r->at,
		.max = r->max,
		.replaces = r->mode == STORE_REPLACE,
		.broken = node.broken,
		.at = t->n_bytes,
		.n = r->verb == STORE_PUT ? (uint32_t)r->object.n : 0,
	};
	snprintf(to->name, sizeof to->name, "%.*s", (int)sizeof to->name - 1, r->name);
	snprintf(to->after, sizeof to->after, "%.*s", (int)sizeof to->after - 1, r->after);
	if (to->n)
		memcpy(t->bytes + t->n_bytes, r->object.p, to->n);
	t->n_bytes += to->n;
}

static void
send_now(unsigned i)
{
	posted[i].number = ++numbers;
	posted[i].broken = node.broken;
	tell_request(posted[i].request);
}

void
node_send(struct store_request *r)
{
	EACH(i, posted)
		if (!posted[i].request) {
			posted[i].request = r;
			if (r->due <= node.boot)
				send_now((unsigned)i);
			return;
		}
	test_fail(__FILE__, __LINE__, "more than %d requests", NODES_REQUESTS);
}

void
node_send_due(void)
{
	EACH(i, posted)
		if (posted[i].request && !posted[i].number && posted[i].request->due <= node.boot)
			send_now((unsigned)i);
}

slu_time
node_store_due(void)
{
	slu_time due = SLU_NEVER;

	EACH(i, posted)
		if (posted[i].request && !posted[i].number && posted[i].request->due < due)
			due = posted[i].request->due;
	return due;
}

static void
end_wait(struct store_request *r)
{
	r->posted = false;
}

void
node_send_and_wait(struct store_request *r)
{
	const slu_time outer = node.wait_until;

	r->posted = true;
	r->done = end_wait;
	node_send(r);
	node.wait_until = SLU_NEVER; /* the answer ends it */
	while (r->posted)
		node_turn();
	node.wait_until = outer;
}

/* As store_list does. */
static void
index_names(struct store_names *n)
{
	const char *p = n->text.p;

	n->names = mem_realloc(n->names, (n->n + 1) * sizeof *n->names);
	CHECK(n->names);
	for (uint32_t i = 0; i < n->n; i++, p += strlen(p) + 1)
		n->names[i] = p;
}

/* Takes the answer that the world has just given. */
static void
take_answer(struct store_request *r)
{
	const struct ask *const a = &node.channel->ask;
	const char *const p = node.channel->bytes;

	r->result = a->result;
	r->err = (struct slu_err){ 0 };
	if (a->result == STORE_FAILED)
		(void)slu_fail(&r->err, SLU_EDOWN, "%s: %s: the network failed", label, r->name);
	node_store.breaks += a->result == STORE_FAILED;
	r->wall = a->store_wall;
	buf_clear(&r->bytes);
	if (r->verb == STORE_GET)
		buf_put(&r->bytes, p, a->n);
	r->size = a->size;
	store_names_clear(&r->names);
	for (uint32_t at = 0; r->verb == STORE_LIST && at < a->n; at += (uint32_t)strlen(p + at) + 1)
		store_names_add(&r->names, p + at);
	index_names(&r->names);
	r->names.more = a->more;
	if (r->pool)
		store_pool_end(r);
	else
		r->done(r);
}

void
node_take_answer(void)
{
	EACH(i, posted)
		if (posted[i].request && posted[i].number == node.channel->ask.request) {
			struct store_request *const r = posted[i].request;

			posted[i].request = NULL;
			posted[i].number = 0;
			node.broken &= !posted[i].broken; /* the node has noticed: its next requests have new connections */
			take_answer(r);
			return;
		}
}

/* ---- The functions of the store: they wait for the world ---- */

static enum store_result
wait_for(struct store_request *r, struct slu_err *err)
{
	node_send_and_wait(r);
	*err = r->err;
	store_request_release(r);
	return r->result;
}

static struct store_request
request_of(enum store_verb verb, const char *name)
{
	struct store_request r;

	store_request_init(&r);
	r.verb = verb;
	snprintf(r.name, sizeof r.name, "%s", name);
	return r;
}

static enum store_result
put(struct store *s, const char *name, struct slice object, enum store_mode mode, struct slu_err *err)
{
	struct store_request r = request_of(STORE_PUT, name);

	(void)s;
	r.object = object;
	r.mode = mode;
	return wait_for(&r, err);
}

static enum store_result
get(struct store *s, const char *name, uint64_t at, size_t max, struct buf *out, uint64_t *size, struct slu_err *err)
{
	struct store_request r = request_of(STORE_GET, name);

	(void)s;
	r.at = at;
	r.max = max == SIZE_MAX ? 0 : max;
	node_send_and_wait(&r);
	buf_put(out, r.bytes.p, r.bytes.n);
	*size = r.size;
	*err = r.err;
	store_request_release(&r);
	return r.result;
}

static enum store_result
list(struct store *s, const char *prefix, const char *after, uint32_t max, struct store_names *out,
     struct slu_err *err)
{
	struct store_request r = request_of(STORE_LIST, prefix);

	(void)s;
	(void)max; /* the pages of the world are shorter */
	snprintf(r.after, sizeof r.after, "%s", after);
	node_send_and_wait(&r);
	for (uint32_t i = 0; i < r.names.n; i++)
		store_names_add(out, r.names.names[i]);
	out->more = r.names.more;
	*err = r.err;
	store_request_release(&r);
	return r.result;
}

static enum store_result
remove_object(struct store *s, const char *name, struct slu_err *err)
{
	struct store_request r = request_of(STORE_REMOVE, name);

	(void)s;
	return wait_for(&r, err);
}

static enum store_result
ask_clock(struct store *s, slu_time *wall, struct slu_err *err)
{
	struct store_request r = request_of(STORE_CLOCK, "");

	(void)s;
	node_send_and_wait(&r);
	*wall = r.wall;
	*err = r.err;
	store_request_release(&r);
	return r.result;
}

static void
begin(struct store *s, struct store_request *r)
{
	(void)s;
	node_send(r);
}

static void
cancel(struct store *s, struct store_pool *p, struct store_request *only)
{
	(void)s;
	EACH(i, posted) {
		struct store_request *const r = posted[i].request;

		if (!r || posted[i].number || r->pool != p || (only && r != only))
			continue;
		posted[i].request = NULL;
		r->result = STORE_FAILED;
		(void)slu_fail(&r->err, SLU_ECANCELED, "canceled");
		store_pool_end(r);
	}
}

static const struct store_ops store_ops = {
	.name = "sim",
	.put = put,
	.get = get,
	.list = list,
	.remove = remove_object,
	.clock = ask_clock,
	.begin = begin,
	.cancel = cancel,
};
struct store node_store = { .ops = &store_ops, .label = label };
