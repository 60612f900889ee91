#include "api/intake.h"

#include <openssl/evp.h>

enum {
	SLICE_BYTES = 64 << 10 /* of a piece that are compacted at once */
};

static int
open_all(struct intake *i)
{
	int rc;

	i->opened = true;
	buf_init(&i->out, SLICE_BYTES + 64);
	json_compact_init(&i->compact, JSON_DEPTH_MAX);
	rc = payload_open(i->engine, &i->payload, &i->err);
	if (rc || !i->sums)
		return rc;
	i->digest = EVP_MD_CTX_new();
	if (!i->digest || EVP_DigestInit_ex(i->digest, EVP_sha256(), NULL) != 1)
		return slu_fail(&i->err, SLU_ENOMEM, "no memory for a sum");
	return 0;
}

/* A part of a piece, through what the maker wants of it. */
static int
write_part(struct intake *i, struct slice part)
{
	int rc;

	if (!i->json)
		return payload_write(i->payload, part.p, part.n, &i->err);
	buf_clear(&i->out);
	rc = json_compact(&i->compact, part, &i->out, &i->err);
	return rc ? rc : payload_write(i->payload, i->out.p, i->out.n, &i->err);
}

static int
write_piece(struct intake *i, struct slice piece)
{
	int rc = i->opened ? 0 : open_all(i);

	i->bytes += piece.n;
	if (!rc && i->bytes > i->max)
		rc = slu_fail(&i->err, SLU_ETOOBIG, "more than %llu bytes",
			      (unsigned long long)i->max);
	if (!rc)
		rc = upload_grow(&i->ask->api->uploads, &i->upload, i->ask->op.space,
				 payload_is_in_memory(i->engine), i->bytes, &i->err);
	if (!rc && i->sums && EVP_DigestUpdate(i->digest, piece.p, piece.n) != 1)
		rc = slu_fail(&i->err, SLU_ENOMEM, "no memory for a sum");
	while (!rc && piece.n > 0) {
		const size_t n = piece.n < SLICE_BYTES ? piece.n : SLICE_BYTES;

		rc = write_part(i, (struct slice){ piece.p, n });
		piece = (struct slice){ piece.p + n, piece.n - n };
	}
	return rc;
}

static int
seal(struct intake *i)
{
	int rc = i->opened ? 0 : open_all(i);

	if (!rc && i->json)
		rc = json_compact_end(&i->compact, &i->err);
	if (!rc && i->sums && EVP_DigestFinal_ex(i->digest, i->sum, NULL) != 1)
		rc = slu_fail(&i->err, SLU_ENOMEM, "no memory for a sum");
	return rc ? rc : payload_seal(i->payload, i->m, &i->err);
}

static void
refuse(struct intake *i)
{
	struct call *const c = i->ask->call;

	if (i->rc == SLU_ETOOBIG)
		lockd_refuse_code(c, i->too_large, i->err.text);
	else if (i->rc == SLU_EINVAL)
		lockd_refuse_code(c, LOCKD_INVALID_BODY, i->err.text);
	else
		ask_refuse_err(i->ask, &i->err, -1);
}

static void
go_on(struct intake *i)
{
	if (i->rc)
		refuse(i);
	else if (i->done)
		i->done(i);
	else
		call_next(i->ask->call);
}

static void
step(struct intake *i)
{
	i->rc = i->done ? seal(i) : write_piece(i, i->ask->call->body);
}

static void
run_on_file_thread(uv_work_t *work)
{
	step(work->data);
}

static void
back_on_loop(uv_work_t *work, int status)
{
	(void)status; /* nobody cancels it */
	go_on(work->data);
}

/* What is small never reaches the disk here. */
static void
run(struct intake *i, uint64_t bytes)
{
	i->work.data = i;
	if (bytes <= INTAKE_INLINE) {
		step(i);
		go_on(i);
	} else if (uv_queue_work(loop_uv(call_loop(i->ask->call)), &i->work, run_on_file_thread,
				 back_on_loop)) {
		i->rc = slu_fail(&i->err, SLU_ENOMEM, "no memory for an upload");
		go_on(i);
	}
}

void
intake_take(struct intake *i)
{
	run(i, i->bytes + i->ask->call->body.n);
}

void
intake_end(struct intake *i, struct message *m, void (*done)(struct intake *i))
{
	i->m = m;
	i->done = done;
	run(i, i->bytes);
}

void
intake_close(struct intake *i)
{
	payload_close(i->payload);
	i->payload = NULL;
	if (i->ask)
		upload_end(&i->ask->api->uploads, &i->upload);
	EVP_MD_CTX_free(i->digest);
	i->digest = NULL;
	if (i->opened)
		buf_release(&i->out);
}
