/*
 * admin_backup.c - the files of a running server, piece by piece.
 *
 *      POST /v1/admin/backup                      every shard that keeps files holds them: the
 *                                                 list, and which shards are left out
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

	uint32_t *lanes; /* begin, end: those that keep files, one for each op */

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

/* One op for each lane that keeps files. */
static void
run_all(struct ask *a, enum backup_step step, void (*next)(struct ask *a))
{
	const struct state *const s = a->state;

	for (uint32_t i = 0; i < a->n_ops; i++) {
		ask_op(a, &a->ops[i], OP_BACKUP, (struct slice){ 0 }, (struct slice){ 0 });
		a->ops[i].backup = (struct op_backup){
			.step = step,
			.shard = s->lanes[i],
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
write_shard(struct json_out *w, const struct broker *b, const struct op_backup *op)
{
	char folder[BROKER_FOLDER];

	(void)broker_shard_folder(b, op->shard, folder);
	json_out_object(w, NULL);
	json_out_u64(w, "shard", op->shard);
	json_out_str(w, "name", slice_of(broker_shard_name(b, op->shard)));
	json_out_str(w, "folder", slice_of(folder));
	json_out_u64(w, "files", op->files);
	json_out_u64(w, "bytes", op->bytes);
	json_out_u64(w, "last", op->last);
	json_out_time(w, "time", op->time);
	json_out_close(w);
}

/* Each shard once, whatever number of lanes it has. */
static void
write_left_out(struct json_out *w, const struct broker *b)
{
	char folder[BROKER_FOLDER];

	json_out_array(w, "left_out");
	for (uint32_t i = 0; i < broker_shards(b); i++) {
		if (broker_shard_folder(b, i, folder) || broker_shard_lane(b, i) > 0)
			continue;
		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(broker_shard_name(b, i)));
		json_out_str(w, "engine", slice_of(broker_shard_engine(b, i)));
		json_out_close(w);
	}
	json_out_close(w);
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
		bytes += a->ops[i].backup.bytes;
		write_shard(&w, a->api->broker, &a->ops[i].backup);
	}
	json_out_close(&w);
	write_left_out(&w, a->api->broker);
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
		call_answer_text(a->call, 200, api_json, SLICE("{\"ended\":true}\n"));
}

/* Those that keep files. Returns how many. */
static uint32_t
find_lanes(struct ask *a, struct state *s)
{
	const struct broker *const b = a->api->broker;
	char folder[BROKER_FOLDER];

	a->n_ops = 0;
	for (uint32_t i = 0; i < broker_shards(b); i++)
		if (broker_shard_folder(b, i, folder))
			s->lanes[a->n_ops++] = i;
	return a->n_ops;
}

static void
refuse_engine(struct ask *a)
{
	char text[80];

	(void)snprintf(text, sizeof text, "engine %s keeps no files: there is nothing to copy",
		       broker_shard_engine(a->api->broker, 0));
	ask_refuse(a, SLU_EINVAL, text);
}

static struct ask *
begin_all(struct call *c, struct api *api)
{
	const uint32_t n = broker_shards(api->broker);
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return NULL;
	a->ops = arena_array(&a->memory, n, sizeof *a->ops);
	s->lanes = arena_array(&a->memory, n, sizeof *s->lanes);
	if (!a->ops || !s->lanes)
		ask_refuse(a, SLU_ENOMEM, NULL);
	else if (find_lanes(a, s))
		return a;
	else
		refuse_engine(a);
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
	char folder[BROKER_FOLDER], name[BROKER_FOLDER + sizeof b->name];
	struct json_out w;

	(void)broker_shard_folder(a->api->broker, s->shard, folder);
	(void)snprintf(name, sizeof name, "%s%s%s", folder, *folder ? "/" : "", b->name);
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
