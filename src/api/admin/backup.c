/*
 * backup.c - the files of a running server, piece by piece.
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
#include "api/admin/admin.h"

#include "api/handler.h"
#include "api/limits.h"
#include "form/values.h"
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

	uint32_t *lanes; /* begin, end: the lanes with files, one per op */

	/* A failed begin: what went wrong, while the others are let go. */
	struct slu_err err;

	/* Reading. */
	char *bytes;
	size_t n;
};

static const struct param end_params[] = {
	PARAM(id, struct state, backup, .required = true),
};

static const struct param read_params[] = {
	PARAM(id, struct state, backup, .required = true),
	PARAM(count, struct state, shard, .max = BROKER_LANES_MAX),
	PARAM(count, struct state, file, .max = UINT32_MAX),
	PARAM(number, struct state, at),
};

/* --- begin and end ------------------------------------------------------------ */

static struct op *
failed(struct apicall *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc)
			return &a->ops[i];
	return NULL;
}

/* One op for each lane that keeps files. */
static void
run_all(struct apicall *a, enum backup_step step, void (*next)(struct apicall *a))
{
	const struct state *const s = a->state;

	for (uint32_t i = 0; i < a->n_ops; i++) {
		apicall_op(a, &a->ops[i], OP_BACKUP, (struct slice){ 0 }, (struct slice){ 0 });
		a->ops[i].backup = (struct op_backup){
			.step = step,
			.lane = s->lanes[i],
			.id = s->backup.id,
		};
	}
	apicall_run(a, next);
}

static void
given_up(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_refuse(a, (int)s->err.code, s->err.text);
}

static void
write_shard(struct json_out *w, const struct broker *b, const struct op_backup *op)
{
	char folder[BROKER_FOLDER];

	(void)broker_lane_folder(b, op->lane, folder);
	json_out_object(w, NULL);
	json_out_u64(w, "shard", op->lane);
	json_out_str(w, "name", slice_of(broker_shard_name(b, op->lane)));
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
	for (uint32_t i = 0; i < broker_lanes(b); i++) {
		if (broker_lane_folder(b, i, folder) || broker_lane_number(b, i) > 0)
			continue;
		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(broker_shard_name(b, i)));
		json_out_str(w, "engine", slice_of(broker_lane_engine(b, i)));
		json_out_close(w);
	}
	json_out_close(w);
}

static void
write_list(struct apicall *a, uint64_t id)
{
	uint64_t bytes = 0;
	struct json_out w;
	char text[24];

	apicall_object(a, &w);
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
begun(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op *const bad = failed(a);

	if (bad) {
		s->err = bad->err;
		s->err.code = (enum slu_code)bad->rc;
		run_all(a, BACKUP_END, given_up);
		return;
	}
	log_info(a->api->log, "backup begun", F_U64("backup", s->backup.id), F_APICALL(a));
	write_list(a, s->backup.id);
	apicall_reply(a, 200);
}

static void
ended(struct apicall *a)
{
	const struct op *const bad = failed(a);

	if (bad)
		apicall_refuse_op(a, bad);
	else
		call_answer_text(call_of(a->x), 200, api_json, SLICE("{\"ended\":true}\n"));
}

/* Those that keep files. Returns how many. */
static uint32_t
find_lanes(struct apicall *a, struct state *s)
{
	const struct broker *const b = a->api->broker;
	char folder[BROKER_FOLDER];

	a->n_ops = 0;
	for (uint32_t i = 0; i < broker_lanes(b); i++)
		if (broker_lane_folder(b, i, folder))
			s->lanes[a->n_ops++] = i;
	return a->n_ops;
}

static void
refuse_engine(struct apicall *a)
{
	char text[80];

	(void)snprintf(text, sizeof text, "engine %s keeps no files: there is nothing to copy",
		       broker_lane_engine(a->api->broker, 0));
	apicall_refuse(a, SLU_EINVAL, text);
}

/* Returns false if it refused the call. */
static bool
prepare(struct apicall *a)
{
	const uint32_t n = broker_lanes(a->api->broker);
	struct state *const s = a->state;

	a->ops = arena_array(&a->memory, n, sizeof *a->ops);
	s->lanes = arena_array(&a->memory, n, sizeof *s->lanes);
	if (!a->ops || !s->lanes)
		apicall_refuse(a, SLU_ENOMEM, NULL);
	else if (find_lanes(a, s))
		return true;
	else
		refuse_engine(a);
	return false;
}

static void
begin(struct apicall *a)
{
	struct state *const s = a->state;

	s->backup.id = broker_new_id(a->api->broker, (struct slice){ 0 }, (struct slice){ 0 });
	if (prepare(a))
		run_all(a, BACKUP_BEGIN, begun);
}

static void
end(struct apicall *a)
{
	if (prepare(a))
		run_all(a, BACKUP_END, ended);
}

const struct handler admin_backup_begin = { .run = begin, .state = sizeof(struct state) };
const struct handler admin_backup_end = { end, sizeof(struct state), BODY_ROWS(end_params) };

/* --- read --------------------------------------------------------------------- */

static void
write_head(struct apicall *a, const struct state *s)
{
	const struct op_backup *const b = &a->op.backup;
	char folder[BROKER_FOLDER], name[BROKER_FOLDER + sizeof b->name];
	struct json_out w;

	(void)broker_lane_folder(a->api->broker, s->shard, folder);
	(void)snprintf(name, sizeof name, "%s%s%s", folder, *folder ? "/" : "", b->name);
	apicall_object(a, &w);
	json_out_str(&w, "name", slice_of(name));
	json_out_u64(&w, "bytes", b->bytes);
	json_out_u64(&w, "size", b->size);
	json_out_u64(&w, "at", s->at);
	json_out_u64(&w, "n", s->n);
	json_out_u64(&w, "crc32c", crc32c(0, s->bytes, s->n));
	json_out_close(&w);
	buf_putc(&a->x->out, '\n');
}

static int
read_piece(struct apicall *a)
{
	struct state *const s = a->state;
	struct engine *const e = a->op.engine;

	return e->ops->read_file(e, &a->op.result, s->at, s->n, s->bytes, &s->err);
}

static void
piece_read(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	op_unpin(&a->op);
	if (!rc) {
		write_head(a, s);
		buf_put(&a->x->out, s->bytes, s->n);
	}
	mem_free(s->bytes);
	if (rc)
		apicall_refuse(a, rc, s->err.text);
	else
		call_answer(call_of(a->x), 200, octets, &a->x->out);
}

static int
start_reading(struct apicall *a, struct state *s)
{
	const struct op_backup *const b = &a->op.backup;
	const uint64_t left = s->at < b->bytes ? b->bytes - s->at : 0;

	if (s->at > b->bytes)
		return slu_fail(&s->err, SLU_EINVAL, "at: %s has %" PRIu64 " bytes", b->name,
				b->bytes);
	s->n = left < API_BACKUP_BYTES ? (size_t)left : API_BACKUP_BYTES;
	s->bytes = mem_alloc(s->n + 1);
	if (!s->bytes)
		return slu_fail(&s->err, SLU_ENOMEM, "no memory to read %s", b->name);
	apicall_job(a, read_piece, piece_read);
	return 0;
}

static void
found(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	if (start_reading(a, s)) {
		op_unpin(&a->op);
		apicall_refuse(a, (int)s->err.code, s->err.text);
	}
}

static void
read_file(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_BACKUP, (struct slice){ 0 }, (struct slice){ 0 });
	a->op.backup = (struct op_backup){
		.step = BACKUP_READ,
		.lane = s->shard,
		.id = s->backup.id,
		.file = s->file,
	};
	apicall_run(a, found);
}

const struct handler admin_backup_read = { read_file, sizeof(struct state), QUERY_ROWS(read_params) };
