/*
 * attach.c - attachments of a key: read, list, remove.
 */
#include "api/lockd/attach.h"

#include "api/document.h"
#include "api/lockd/state.h"
#include "base/mem.h"

/* --- which one ---------------------------------------------------------------- */

struct state {
	struct lockd_lock l;
	struct slice name, id;
	struct op_key keys[LOCK_DOCS_MAX];
	void (*next)(struct apicall *a); /* when the name is known */
	struct document document;
	struct slu_err err;
};

static void
listed(struct apicall *a)
{
	struct state *const s = a->state;
	const uint64_t etag = lockd_etag_parse(s->id);

	op_unpin(&a->op);
	if (lockd_lock_failed(a))
		return;
	for (uint32_t i = 0; i < a->op.n_keys && s->name.n == 0; i++)
		if (s->keys[i].etag == etag)
			s->name = slice_of(s->keys[i].name);
	if (s->name.n > 0)
		s->next(a);
	else
		lockd_refuse_code(call_of(a->x), LOCKD_ATTACHMENT_NOT_FOUND, NULL);
}

static void
list(struct apicall *a, void (*answer)(struct apicall *a))
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_ATTACHMENTS);
	a->op.keys = s->keys;
	a->op.max_keys = LOCK_DOCS_MAX;
	lockd_lock_run(a, &s->l, answer);
}

/* Finds the attachment by its name or by its id. */
static void
find(struct apicall *a, void (*next)(struct apicall *a))
{
	struct state *const s = a->state;

	s->name = lockd_query(a, "name");
	s->id = lockd_query(a, "id");
	s->next = next;
	if (s->name.n == 0 && s->id.n == 0)
		lockd_refuse_code(call_of(a->x), LOCKD_MISSING_PARAMS, "name or id is required");
	else if (s->name.n == 0)
		list(a, listed);
	else if (attach_check_name(a, s->name))
		next(a);
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
	const struct state *const s = d->apicall->state;
	const struct attach_info i = attach_info(s->name, d->op->lock.etag, m);
	struct call *const c = call_of(d->apicall->x);
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
got(struct apicall *a)
{
	struct state *const s = a->state;

	if (lockd_lock_failed(a))
		return;
	if (a->op.lock.etag == 0)
		lockd_refuse_code(call_of(a->x), LOCKD_ATTACHMENT_NOT_FOUND, NULL);
	else
		document_send(&s->document, a, add_head);
}

static void
get(struct apicall *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
	a->op.lock.name = s->name;
	lockd_lock_run(a, &s->l, got);
}

static void
attachment(struct apicall *a)
{
	struct state *const s = a->state;

	if (lockd_lock_reader(a, &s->l))
		find(a, get);
}

const struct handler lockd_attachment = { .run = attachment, .state = sizeof(struct state) };

/* --- removal ------------------------------------------------------------------ */

static void
removed(struct apicall *a)
{
	struct json_out w;

	if (lockd_lock_failed(a))
		return;
	lockd_add_number(call_of(a->x), "X-Fencing-Token", a->op.lock.fence);
	lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
	apicall_object(a, &w);
	if (a->op.lock.all)
		json_out_u64(&w, "deleted", a->op.count);
	else
		json_out_bool(&w, "deleted", a->op.count > 0);
	json_out_u64(&w, "version", a->op.lock.version);
	apicall_reply_object(a, &w, 200);
}

static void
remove_one(struct apicall *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_REMOVE);
	a->op.lock.name = s->name;
	lockd_lock_run(a, &s->l, removed);
}

static void
detach(struct apicall *a)
{
	struct state *const s = a->state;

	if (lockd_lock_writer(a, &s->l))
		find(a, remove_one);
}

static void
detach_all(struct apicall *a)
{
	struct state *const s = a->state;

	if (!lockd_lock_writer(a, &s->l))
		return;
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_REMOVE);
	a->op.lock.all = true;
	lockd_lock_run(a, &s->l, removed);
}

const struct handler lockd_detach = { .run = detach, .state = sizeof(struct state) };
const struct handler lockd_detach_all = { .run = detach_all, .state = sizeof(struct state) };

/* --- a list ------------------------------------------------------------------- */

static int
write_list(struct apicall *a, bool may_block)
{
	struct state *const s = a->state;
	struct json_out w;
	int rc = 0;

	buf_clear(&a->x->out);
	apicall_object(a, &w);
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

static void
answer_list(struct apicall *a, int rc)
{
	const struct state *const s = a->state;

	op_unpin(&a->op);
	if (!apicall_refused(a, rc, s->err.text))
		apicall_reply(a, 200);
}

static void
answer_attachments(struct apicall *a)
{
	if (lockd_lock_failed(a))
		return;
	lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
	apicall_try(a, write_list, answer_list);
}

static void
attachments(struct apicall *a)
{
	struct state *const s = a->state;

	if (lockd_lock_reader(a, &s->l))
		list(a, answer_attachments);
}

const struct handler lockd_attachments = { .run = attachments, .state = sizeof(struct state) };
