/*
 * upload.c - POST /v1/attachments: stores an attachment piece by piece.
 */
#include "api/lockd/attach.h"

#include "api/document.h"
#include "api/lockd/state.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <stdio.h>

static const char sum_before[] = "{\"sha256\":\"";

void
attach_write(struct json_out *w, const char *member, const struct attach_info *i)
{
	char id[LOCKD_ETAG_TEXT];

	json_out_object(w, member);
	json_out_str(w, "id", slice_of(lockd_etag_text(i->etag, id)));
	json_out_str(w, "name", i->name);
	json_out_u64(w, "size", i->size);
	if (i->sum.n > 0)
		json_out_str(w, "plaintext_sha256", i->sum);
	if (i->type.n > 0)
		json_out_str(w, "content_type", i->type);
	json_out_i64(w, "created_at_unix", i->at / SLU_SEC);
	json_out_i64(w, "updated_at_unix", i->at / SLU_SEC);
	json_out_close(w);
}

struct attach_info
attach_info(struct slice name, uint64_t etag, const struct message *m)
{
	const size_t before = sizeof sum_before - 1;
	struct attach_info i = {
		.name = name,
		.type = m->type,
		.etag = etag,
		.size = m->payload_size,
		.at = m->accepted,
	};

	if (m->attributes.n == before + ATTACH_SUM_TEXT - 1 + 2)
		i.sum = (struct slice){ m->attributes.p + before, ATTACH_SUM_TEXT - 1 };
	return i;
}

/* Writes the attributes of its record to out and returns them. */
static struct slice
write_attributes(const unsigned char sum[static UPLOAD_SUM], char out[static ATTACH_ATTRIBUTES_TEXT])
{
	char hex[ATTACH_SUM_TEXT];

	for (size_t i = 0; i < UPLOAD_SUM; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);                  /* fits */
	(void)snprintf(out, ATTACH_ATTRIBUTES_TEXT, "%s%s\"}", sum_before, hex); /* fits */
	return slice_of(out);
}

bool
attach_check_name(struct apicall *a, struct slice name)
{
	bool fine = name.n <= LOCK_NAME_MAX && utf8_valid(name);

	for (size_t i = 0; i < name.n; i++)
		fine &= (unsigned char)name.p[i] >= 0x20 && name.p[i] != 0x7f;
	if (!fine)
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_BODY,
				  "name: expected at most 128 bytes of text without control characters");
	return fine;
}

struct state {
	struct lockd_lock l;
	struct slice name, type;
	uint64_t max;
	bool keeps; /* the existing attachment */
	struct upload upload;
	struct op_put put;
	char attributes[ATTACH_ATTRIBUTES_TEXT];

	char *room;
	struct message m;
	struct slu_err err;
};

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = a->state;

	(void)sent; /* the work is done either way */
	upload_close(&s->upload);
	mem_free(s->room);
	apicall_free(a);
}

/* --- what is asked ------------------------------------------------------------ */

static bool
read_type(struct apicall *a, struct state *s)
{
	s->type = lockd_query(a, "content_type");
	if (s->type.n == 0)
		s->type = arena_copy(&a->memory, lockd_field(a, "content-type"));
	if (!s->type.p && lockd_field(a, "content-type").n > 0)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	if (s->type.n == 0)
		s->type = SLICE("application/octet-stream");
	if (!correlation_check(s->type, "content_type", &s->err))
		return true;
	return lockd_reject(a, LOCKD_INVALID_CONTENT_TYPE, s->err.text);
}

static bool
read_limits(struct apicall *a, struct state *s)
{
	const struct slice max = lockd_query(a, "max_bytes");
	const struct slice keeps = lockd_query(a, "prevent_overwrite");

	s->max = 0;
	s->keeps = slice_eq(keeps, SLICE("1")) || slice_eq(keeps, SLICE("true"));
	if (max.n > 0 && parse_u64(max, 0, UINT64_MAX, &s->max, &s->err))
		return lockd_reject(a, LOCKD_INVALID_BODY, s->err.text);
	if (s->max == 0 || s->max > LOCKD_ATTACHMENT_MAX)
		s->max = LOCKD_ATTACHMENT_MAX;
	return true;
}

static bool
read_name(struct apicall *a, struct state *s)
{
	s->name = lockd_query(a, "name");
	if (s->name.n > 0)
		return attach_check_name(a, s->name);
	return lockd_reject(a, LOCKD_MISSING_PARAMS, "name is required");
}

static void
refuse_body(struct upload *i)
{
	lockd_refuse_body(i->apicall, &i->err, LOCKD_ATTACHMENT_TOO_LARGE);
}

static struct apicall *
begin(struct call *c, void *api)
{
	struct apicall *const a = apicall_new(api, c);
	struct state *const s = a ? apicall_state(a, sizeof *s) : NULL;

	if (!s || !lockd_lock_writer(a, &s->l) || !read_name(a, s) || !read_type(a, s) || !read_limits(a, s))
		return NULL;
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_PUT);
	a->op.lock.name = s->name;
	a->op.lock.if_absent = s->keeps;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	if (!apicall_pass(a))
		return NULL;
	s->upload = (struct upload){
		.apicall = a,
		.engine = broker_engine_of(a->api->broker, apicall_routes(a), s->l.namespace,
					   s->l.queue),
		.sums = true,
		.max = s->max,
		.refuse = refuse_body,
	};
	c->x.ended = ended;
	return a;
}

void
lockd_attach_take(struct call *c, void *api)
{
	struct apicall *const a = c->x.user ? c->x.user : begin(c, api);

	if (a)
		upload_take(&((struct state *)a->state)->upload);
}

/* --- answers ------------------------------------------------------------------ */

static void
answer(struct apicall *a, const struct attach_info *info, bool noop)
{
	char id[LOCKD_ETAG_TEXT];
	struct json_out w;

	lockd_add_number(call_of(a->x), "X-Fencing-Token", a->op.lock.fence);
	lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
	(void)call_set(call_of(a->x), "X-Attachment-ID", slice_of(lockd_etag_text(info->etag, id))); /* the body has it, too */
	apicall_object(a, &w);
	attach_write(&w, "attachment", info);
	if (noop)
		json_out_bool(&w, "noop", true);
	json_out_u64(&w, "version", a->op.lock.version);
	apicall_reply_object(a, &w, 200);
}

static int
read_kept(struct apicall *a)
{
	struct state *const s = a->state;

	return document_head(a->op.engine, &a->op.lock.record, true, &s->room, &s->m, &s->err);
}

/* Answers with the existing attachment. */
static void
answer_kept(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	struct attach_info info;

	op_unpin(&a->op);
	if (apicall_refused(a, rc, s->err.text))
		return;
	info = attach_info(s->name, a->op.lock.etag, &s->m);
	answer(a, &info, true);
}

static void
got_kept(struct apicall *a)
{
	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else
		apicall_job(a, read_kept, answer_kept);
}

static void
put_done(struct apicall *a)
{
	struct state *const s = a->state;
	struct attach_info info;

	upload_close(&s->upload);
	if (a->op.rc && a->op.lock.why == LOCK_KNOWN_KEY) {
		lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
		a->op.lock.name = s->name;
		apicall_run(a, got_kept);
		return;
	}
	if (lockd_lock_failed(a))
		return;
	info = attach_info(s->name, a->op.lock.etag, &s->put.m);
	info.at = clock_wall(a->api->clock);
	answer(a, &info, false);
}

static void
stored(struct upload *i)
{
	struct state *const s = i->apicall->state;

	s->put.m.type = s->type;
	s->put.m.attributes = write_attributes(i->sum, s->attributes);
	lockd_lock_run(i->apicall, &s->l, put_done);
}

void
lockd_attach(struct call *c, void *api)
{
	struct apicall *const a = c->x.user ? c->x.user : begin(c, api);
	struct state *const s = a ? a->state : NULL;

	if (s)
		upload_end(&s->upload, &s->put.m, stored);
}
