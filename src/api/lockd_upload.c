/*
 * lockd_upload.c - POST /v1/attachments: what is attached to a key, as it comes.
 */
#include "api/lockd_attach.h"

#include "api/document.h"
#include "api/lockd_state.h"
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

struct slice
attach_attributes(const unsigned char sum[static INTAKE_SUM],
		  char out[static ATTACH_ATTRIBUTES_TEXT])
{
	char hex[ATTACH_SUM_TEXT];

	for (size_t i = 0; i < INTAKE_SUM; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);                  /* fits */
	(void)snprintf(out, ATTACH_ATTRIBUTES_TEXT, "%s%s\"}", sum_before, hex); /* fits */
	return slice_of(out);
}

bool
attach_check_name(struct ask *a, struct slice name)
{
	bool fine = name.n <= LOCK_NAME_MAX && utf8_valid(name);

	for (size_t i = 0; i < name.n; i++)
		fine &= (unsigned char)name.p[i] >= 0x20 && name.p[i] != 0x7f;
	if (!fine)
		lockd_refuse_code(a->call, LOCKD_INVALID_BODY,
				  "name: expected at most 128 bytes of text without control characters");
	return fine;
}

struct state {
	struct lockd_lock l;
	struct slice name, type;
	uint64_t max;
	bool keeps; /* what is there already */
	struct intake intake;
	struct op_put put;
	char attributes[ATTACH_ATTRIBUTES_TEXT];

	char *room;
	struct message m;
	struct slu_err err;
};

static void
ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	struct state *const s = a->state;

	(void)sent; /* what was asked has happened, whoever knows it */
	intake_close(&s->intake);
	mem_free(s->room);
	ask_free(a);
}

/* --- what is asked ------------------------------------------------------------ */

static bool
read_type(struct ask *a, struct state *s)
{
	s->type = lockd_query(a, "content_type");
	if (s->type.n == 0)
		s->type = arena_copy(&a->memory, lockd_field(a, "content-type"));
	if (!s->type.p && lockd_field(a, "content-type").n > 0) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	if (s->type.n == 0)
		s->type = SLICE("application/octet-stream");
	if (!correlation_check(s->type, "content_type", &s->err))
		return true;
	lockd_refuse_code(a->call, LOCKD_INVALID_CONTENT_TYPE, s->err.text);
	return false;
}

static bool
read_limits(struct ask *a, struct state *s)
{
	const struct slice max = lockd_query(a, "max_bytes");
	const struct slice keeps = lockd_query(a, "prevent_overwrite");

	s->max = 0;
	s->keeps = slice_eq(keeps, SLICE("1")) || slice_eq(keeps, SLICE("true"));
	if (max.n > 0 && parse_u64(max, 0, UINT64_MAX, &s->max, &s->err)) {
		lockd_refuse_code(a->call, LOCKD_INVALID_BODY, s->err.text);
		return false;
	}
	if (s->max == 0 || s->max > LOCKD_ATTACHMENT_MAX)
		s->max = LOCKD_ATTACHMENT_MAX;
	return true;
}

static bool
read_name(struct ask *a, struct state *s)
{
	s->name = lockd_query(a, "name");
	if (s->name.n > 0)
		return attach_check_name(a, s->name);
	lockd_refuse_code(a->call, LOCKD_MISSING_PARAMS, "name is required");
	return false;
}

static struct ask *
begin(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !lockd_lock_key(a, &s->l) || !lockd_lock_right(a, &s->l, LOCKD_HOLDER) ||
	    !lockd_lock_conditions(a, &s->l) || !read_name(a, s) || !read_type(a, s) ||
	    !read_limits(a, s))
		return NULL;
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_PUT);
	a->op.lock.name = s->name;
	a->op.lock.if_absent = s->keeps;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	if (!ask_pass(a))
		return NULL;
	s->intake = (struct intake){
		.ask = a,
		.engine = broker_engine_of(a->api->broker, ask_routes(a), s->l.namespace,
					   s->l.queue),
		.sums = true,
		.max = s->max,
		.too_large = LOCKD_ATTACHMENT_TOO_LARGE,
	};
	c->ended = ended;
	return a;
}

void
lockd_attach_take(struct call *c, void *api)
{
	struct ask *const a = c->user ? c->user : begin(c, api);

	if (a)
		intake_take(&((struct state *)a->state)->intake);
}

/* --- answers ------------------------------------------------------------------ */

static void
answer(struct ask *a, const struct attach_info *info, bool noop)
{
	char id[LOCKD_ETAG_TEXT];
	struct json_out w;

	lockd_add_number(a->call, "X-Fencing-Token", a->op.lock.fence);
	lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
	(void)call_set(a->call, "X-Attachment-ID", slice_of(lockd_etag_text(info->etag, id))); /* the body has it, too */
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	attach_write(&w, "attachment", info);
	if (noop)
		json_out_bool(&w, "noop", true);
	json_out_u64(&w, "version", a->op.lock.version);
	json_out_close(&w);
	lockd_reply(a, 200);
}

static int
read_kept(struct ask *a)
{
	struct state *const s = a->state;

	return document_head(a->op.engine, &a->op.lock.record, true, &s->room, &s->m, &s->err);
}

/* What was there stays: tell of that. */
static void
answer_kept(struct ask *a, int rc)
{
	const struct state *const s = a->state;
	struct attach_info info;

	op_unpin(&a->op);
	if (rc) {
		ask_refuse(a, rc, s->err.text);
		return;
	}
	info = attach_info(s->name, a->op.lock.etag, &s->m);
	answer(a, &info, true);
}

static void
got_kept(struct ask *a)
{
	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else
		ask_job(a, read_kept, answer_kept);
}

static void
put_done(struct ask *a)
{
	struct state *const s = a->state;
	struct attach_info info;

	intake_close(&s->intake);
	if (a->op.rc && a->op.lock.why == LOCK_KNOWN_KEY) {
		lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
		a->op.lock.name = s->name;
		ask_run(a, got_kept);
		return;
	}
	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	info = attach_info(s->name, a->op.lock.etag, &s->put.m);
	info.at = clock_wall(a->api->clock);
	answer(a, &info, false);
}

static void
stored(struct intake *i)
{
	struct state *const s = i->ask->state;

	s->put.m.type = s->type;
	s->put.m.attributes = attach_attributes(i->sum, s->attributes);
	lockd_lock_run(i->ask, &s->l, put_done);
}

void
lockd_attach(struct call *c, void *api)
{
	struct ask *const a = c->user ? c->user : begin(c, api);
	struct state *const s = a ? a->state : NULL;

	if (s)
		intake_end(&s->intake, &s->put.m, stored);
}
