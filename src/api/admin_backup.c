/*
 * admin_backup.c - the files of a running server, piece by piece.
 *
 *      POST /v1/admin/backup                      every shard holds its files: the list
 *      GET  /v1/admin/backup?backup=..&shard=..&file=..&at=..     up to 1 MiB of one
 *      POST /v1/admin/backup/end                  every shard lets them go
 *
 * An answer to GET is a line of JSON, and behind its end the bytes it speaks of:
 *
 *      {"name":"00000001.log","bytes":70000,"size":67108864,"at":65536,"n":4464,
 *       "crc32c":3735928559}
 *
 * The file has `bytes` that count and zeros up to `size`. The client names the copy's
 * place: the server writes nothing.
 */
#include "api/admin.h"

#include "api/ask.h"
#include "api/limits.h"
#include "api/values.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static const char octets[] = "application/octet-stream";

struct state {
	struct given_id backup;
	uint32_t shard;
	uint32_t file;
	uint64_t at;

	/* A failed begin: what went wrong, while the others are let go. */
	struct slu_err err;

	/* Reading. */
	uv_work_t work;
	struct ask *ask;
	char *bytes;
	size_t n;
	int rc;
};

static const struct param end_params[] = {
	PARAM(id, struct state, backup, .required = true),
};

static const struct param read_params[] = {
	PARAM(id, struct state, backup, .required = true),
	PARAM(count, struct state, shard, .max = BROKER_SHARDS_MAX),
	PARAM(count, struct state, file, .max = UINT32_MAX),
	PARAM(number, struct state, at),
};

/* --- begin and end ------------------------------------------------------------ */

static struct op *
failed(struct ask *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc)
			return &a->ops[i];
	return NULL;
}

/* One op a shard. */
static void
run_all(struct ask *a, enum backup_step step, void (*next)(struct ask *a))
{
	const struct state *const s = a->state;

	for (uint32_t i = 0; i < a->n_ops; i++) {
		ask_op(a, &a->ops[i], OP_BACKUP, (struct slice){ 0 }, (struct slice){ 0 });
		a->ops[i].backup = (struct op_backup){
			.step = step,
			.shard = i,
			.id = s->backup.id,
		};
	}
	ask_run(a, next);
}

static void
given_up(struct ask *a)
{
	const struct state *const s = a->state;

	ask_refuse(a, (int)s->err.code, s->err.text);
}

static void
write_list(struct ask *a, uint64_t id)
{
	uint64_t bytes = 0;
	struct json_out w;
	char text[24];

	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	(void)snprintf(text, sizeof text, "%" PRIu64, id);
	json_out_str(&w, "backup", slice_of(text));
	json_out_str(&w, "version", SLICE(SLUICE_VERSION));
	json_out_str(&w, "engine", slice_of(a->api->engine));
	json_out_array(&w, "shards");
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct op_backup *const b = &a->ops[i].backup;

		bytes += b->bytes;
		json_out_object(&w, NULL);
		json_out_u64(&w, "files", b->files);
		json_out_u64(&w, "bytes", b->bytes);
		json_out_u64(&w, "last", b->last);
		json_out_time(&w, "time", b->time);
		json_out_close(&w);
	}
	json_out_close(&w);
	json_out_u64(&w, "bytes", bytes);
	json_out_close(&w);
}

static void
begun(struct ask *a)
{
	struct state *const s = a->state;
	const struct op *const bad = failed(a);

	if (bad) {
		s->err = bad->err;
		s->err.code = (enum slu_code)bad->rc;
		run_all(a, BACKUP_END, given_up);
		return;
	}
	log_info(a->api->log, "backup begun", F_U64("backup", s->backup.id), F_CALL(a->call));
	write_list(a, s->backup.id);
	ask_reply(a, 200);
}

static void
ended(struct ask *a)
{
	const struct op *const bad = failed(a);

	if (bad)
		ask_refuse_op(a, bad);
	else
		call_answer_text(a->call, 200, api_json, SLICE("{\"ended\":true}"));
}

static struct ask *
begin_all(struct call *c, struct api *api)
{
	struct ask *const a = ask_new(api, c);

	if (!a || !ask_state(a, sizeof(struct state)))
		return NULL;
	a->n_ops = broker_shards(api->broker);
	a->ops = arena_array(&a->memory, a->n_ops, sizeof *a->ops);
	if (a->ops)
		return a;
	ask_refuse(a, SLU_ENOMEM, NULL);
	return NULL;
}

void
admin_backup_begin(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct ask *const a = begin_all(c, api);

	if (!a)
		return;
	((struct state *)a->state)->backup.id = broker_new_id(api->broker);
	run_all(a, BACKUP_BEGIN, begun);
}

void
admin_backup_end(struct call *c, void *api)
{
	struct ask *const a = begin_all(c, api);

	if (a && ask_body(a, end_params, sizeof end_params / sizeof end_params[0], a->state))
		run_all(a, BACKUP_END, ended);
}

/* --- read --------------------------------------------------------------------- */

static void
write_head(struct ask *a, const struct state *s)
{
	const struct op_backup *const b = &a->op.backup;
	char name[96];
	struct json_out w;

	if (broker_shards(a->api->broker) > 1)
		(void)snprintf(name, sizeof name, "%" PRIu32 "/%s", s->shard, b->name);
	else
		(void)snprintf(name, sizeof name, "%s", b->name);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "name", slice_of(name));
	json_out_u64(&w, "bytes", b->bytes);
	json_out_u64(&w, "size", b->size);
	json_out_u64(&w, "at", s->at);
	json_out_u64(&w, "n", s->n);
	json_out_u64(&w, "crc32c", crc32c(0, s->bytes, s->n));
	json_out_close(&w);
	buf_putc(&a->call->out, '\n');
}

static void
read_piece(uv_work_t *work)
{
	struct state *const s = work->data;
	struct engine *const e = s->ask->op.engine;

	s->rc = e->ops->read_file(e, &s->ask->op.result, s->at, s->n, s->bytes, &s->err);
}

static void
piece_read(uv_work_t *work, int status)
{
	struct state *const s = work->data;
	struct ask *const a = s->ask;

	(void)status; /* nobody cancels it */
	op_unpin(&a->op);
	if (!s->rc) {
		write_head(a, s);
		buf_put(&a->call->out, s->bytes, s->n);
	}
	mem_free(s->bytes);
	if (s->rc)
		ask_refuse(a, s->rc, s->err.text);
	else
		call_answer(a->call, 200, octets, &a->call->out);
}

static int
start_reading(struct ask *a, struct state *s)
{
	const struct op_backup *const b = &a->op.backup;
	const uint64_t left = s->at < b->bytes ? b->bytes - s->at : 0;

	if (s->at > b->bytes)
		return slu_fail(&s->err, SLU_EINVAL, "at: %s has %" PRIu64 " bytes", b->name,
				b->bytes);
	s->n = left < API_BACKUP_BYTES ? (size_t)left : API_BACKUP_BYTES;
	s->bytes = mem_alloc(s->n + 1);
	s->ask = a;
	s->work.data = s;
	if (s->bytes && uv_queue_work(loop_uv(call_loop(a->call)), &s->work, read_piece,
				      piece_read) == 0)
		return 0;
	mem_free(s->bytes);
	return slu_fail(&s->err, SLU_ENOMEM, "no memory to read %s", b->name);
}

static void
found(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	if (start_reading(a, s)) {
		op_unpin(&a->op);
		ask_refuse(a, (int)s->err.code, s->err.text);
	}
}

void
admin_backup_read(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_params(a, read_params, sizeof read_params / sizeof read_params[0], s))
		return;
	ask_op(a, &a->op, OP_BACKUP, (struct slice){ 0 }, (struct slice){ 0 });
	a->op.backup = (struct op_backup){
		.step = BACKUP_READ,
		.shard = s->shard,
		.id = s->backup.id,
		.file = s->file,
	};
	ask_run(a, found);
}
