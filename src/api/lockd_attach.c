/*
 * lockd_attach.c - what is attached to a key: read, listed, removed.
 */
#include "api/lockd_attach.h"

#include "api/document.h"
#include "api/lockd_state.h"
#include "base/mem.h"

/* --- which one ---------------------------------------------------------------- */

struct state {
	struct lockd_lock l;
	struct slice name, id;
	struct op_key keys[LOCK_DOCS_MAX];
	void (*next)(struct ask *a); /* when the name is known */
	struct document document;
	struct slu_err err;
};

static void
listed(struct ask *a)
{
	struct state *const s = a->state;
	const uint64_t etag = lockd_etag_parse(s->id);

	op_unpin(&a->op);
	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	for (uint32_t i = 0; i < a->op.n_keys && s->name.n == 0; i++)
		if (s->keys[i].etag == etag)
			s->name = slice_of(s->keys[i].name);
	if (s->name.n > 0)
		s->next(a);
	else
		lockd_refuse_code(a->call, LOCKD_ATTACHMENT_NOT_FOUND, NULL);
}

static void
list(struct ask *a, void (*answer)(struct ask *a))
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_ATTACHMENTS);
	a->op.keys = s->keys;
	a->op.max_keys = LOCK_DOCS_MAX;
	lockd_lock_run(a, &s->l, answer);
}

/* By its name, or by its id. */
static void
find(struct ask *a, void (*next)(struct ask *a))
{
	struct state *const s = a->state;

	s->name = lockd_query(a, "name");
	s->id = lockd_query(a, "id");
	s->next = next;
	if (s->name.n == 0 && s->id.n == 0)
		lockd_refuse_code(a->call, LOCKD_MISSING_PARAMS, "name or id is required");
	else if (s->name.n == 0)
		list(a, listed);
	else if (attach_check_name(a, s->name))
		next(a);
}

static struct ask *
begin(struct call *c, void *api, bool writes)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !lockd_lock_key(a, &s->l))
		return NULL;
	if (writes)
		return lockd_lock_right(a, &s->l, LOCKD_HOLDER) && lockd_lock_conditions(a, &s->l) ? a : NULL;
	return lockd_lock_reader(a, &s->l) ? a : NULL;
}

/* --- one ---------------------------------------------------------------------- */

/* The uploader chose bytes and type: a browser saves them and runs nothing of them as a page
 * of this server. False: no memory for the fields. */
static bool
add_harmless(struct call *c)
{
	return !call_add(c, "X-Content-Type-Options", SLICE("nosniff")) &&
	       !call_add(c, "Content-Security-Policy", SLICE("sandbox")) &&
	       !call_add(c, "Content-Disposition", SLICE("attachment"));
}

static void
add_head(struct document *d, const struct message *m)
{
	const struct state *const s = d->ask->state;
	const struct attach_info i = attach_info(s->name, d->op->lock.etag, m);
	struct call *const c = d->ask->call;
	const bool typed = add_harmless(c) && i.type.n > 0;
	char id[LOCKD_ETAG_TEXT];

	/* The reader of the bytes can do without these. */
	(void)call_add(c, "Content-Type", typed ? i.type : SLICE("application/octet-stream"));
	(void)call_add(c, "X-Attachment-ID", slice_of(lockd_etag_text(i.etag, id)));
	(void)call_add(c, "X-Attachment-Name", i.name);
	lockd_add_number(c, "X-Key-Version", d->op->lock.version);
	lockd_add_number(c, "X-Attachment-Size", i.size);
	lockd_add_number(c, "X-Attachment-Created-At", (uint64_t)(i.at / SLU_SEC));
	lockd_add_number(c, "X-Attachment-Updated-At", (uint64_t)(i.at / SLU_SEC));
	if (i.sum.n > 0)
		(void)call_add(c, "X-Attachment-SHA256", i.sum);
}

static void
got(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	if (a->op.lock.etag == 0) {
		lockd_refuse_code(a->call, LOCKD_ATTACHMENT_NOT_FOUND, NULL);
		return;
	}
	s->document = (struct document){
		.ask = a,
		.op = &a->op,
		.record = &a->op.lock.record,
		.payload = &a->op.lock.payload,
		.head = add_head,
	};
	document_send(&s->document);
}

static void
get(struct ask *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
	a->op.lock.name = s->name;
	lockd_lock_run(a, &s->l, got);
}

void
lockd_attachment(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, false);

	if (a)
		find(a, get);
}

/* --- removal ------------------------------------------------------------------ */

static void
answer_removed(struct ask *a, bool all)
{
	struct json_out w;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	lockd_add_number(a->call, "X-Fencing-Token", a->op.lock.fence);
	lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	if (all)
		json_out_u64(&w, "deleted", a->op.count);
	else
		json_out_bool(&w, "deleted", a->op.count > 0);
	json_out_u64(&w, "version", a->op.lock.version);
	json_out_close(&w);
	lockd_reply(a, 200);
}

static void
removed(struct ask *a)
{
	answer_removed(a, false);
}

static void
removed_all(struct ask *a)
{
	answer_removed(a, true);
}

static void
remove_one(struct ask *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_REMOVE);
	a->op.lock.name = s->name;
	lockd_lock_run(a, &s->l, removed);
}

void
lockd_detach(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, true);

	if (a)
		find(a, remove_one);
}

void
lockd_detach_all(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, true);
	struct state *const s = a ? a->state : NULL;

	if (!s)
		return;
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_REMOVE);
	a->op.lock.all = true;
	lockd_lock_run(a, &s->l, removed_all);
}

/* --- a list ------------------------------------------------------------------- */

static int
write_list(struct ask *a, bool may_block)
{
	struct state *const s = a->state;
	struct json_out w;
	int rc = 0;

	buf_clear(&a->call->out);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", s->l.namespace);
	json_out_str(&w, "key", s->l.key);
	json_out_array(&w, "attachments");
	for (uint32_t i = 0; i < a->op.n_keys && !rc; i++) {
		const struct op_key *const k = &s->keys[i];
		char *room = NULL;
		struct message m;
		struct attach_info info;

		rc = document_head(a->op.engine, &k->record, may_block, &room, &m, &s->err);
		if (!rc) {
			info = attach_info(slice_of(k->name), k->etag, &m);
			attach_write(&w, NULL, &info);
		}
		mem_free(room);
	}
	json_out_close(&w);
	json_out_close(&w);
	return rc;
}

static int
write_slowly(struct ask *a)
{
	return write_list(a, true);
}

static void
answer_list(struct ask *a, int rc)
{
	const struct state *const s = a->state;

	op_unpin(&a->op);
	if (rc)
		ask_refuse(a, rc, s->err.text);
	else
		lockd_reply(a, 200);
}

static void
answer_attachments(struct ask *a)
{
	int rc;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
	rc = write_list(a, false);
	if (rc == SLU_EBUSY)
		ask_job(a, write_slowly, answer_list);
	else
		answer_list(a, rc);
}

void
lockd_attachments(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, false);

	if (a)
		list(a, answer_attachments);
}
