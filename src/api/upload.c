#include "api/upload.h"

#include <openssl/evp.h>

enum {
	SLICE_BYTES = 64 << 10 /* bytes that are compacted at once */
};

static int
open_all(struct upload *i)
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

/* Writes a part of a piece: compacted, or as it is. */
static int
write_part(struct upload *i, struct slice part)
{
	int rc;

	if (!i->json)
		return payload_write(i->payload, part.p, part.n, &i->err);
	buf_clear(&i->out);
	rc = json_compact(&i->compact, part, &i->out, &i->err);
	return rc ? rc : payload_write(i->payload, i->out.p, i->out.n, &i->err);
}

static int
write_piece(struct upload *i, struct slice piece)
{
	int rc = i->opened ? 0 : open_all(i);

	i->bytes += piece.n;
	if (!rc && i->bytes > i->max)
		rc = slu_fail(&i->err, SLU_ETOOBIG, "more than %llu bytes",
			      (unsigned long long)i->max);
	if (!rc)
		rc = uploads_grow(&i->apicall->api->uploads, &i->upload, i->apicall->op.space,
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
seal(struct upload *i)
{
	int rc = i->opened ? 0 : open_all(i);

	if (!rc && i->json)
		rc = json_compact_end(&i->compact, &i->err);
	if (!rc && i->sums && EVP_DigestFinal_ex(i->digest, i->sum, NULL) != 1)
		rc = slu_fail(&i->err, SLU_ENOMEM, "no memory for a sum");
	return rc ? rc : payload_seal(i->payload, i->m, &i->err);
}

static void
go_on(struct apicall *a, int rc)
{
	struct upload *const i = a->part;

	if (rc && i->err.code != (enum slu_code)rc)
		(void)slu_fail(&i->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	if (rc)
		i->refuse(i);
	else if (i->done)
		i->done(i);
	else
		call_next(call_of(a->x));
}

static int
step(struct apicall *a)
{
	struct upload *const i = a->part;

	return i->done ? seal(i) : write_piece(i, call_of(a->x)->body);
}

/* A small body never reaches the disk here. */
static void
run(struct upload *i, uint64_t bytes)
{
	struct apicall *const a = i->apicall;

	a->part = i;
	if (bytes <= UPLOAD_INLINE)
		go_on(a, step(a));
	else
		apicall_job(a, step, go_on);
}

void
upload_take(struct upload *i)
{
	run(i, i->bytes + call_of(i->apicall->x)->body.n);
}

void
upload_end(struct upload *i, struct message *m, void (*done)(struct upload *i))
{
	i->m = m;
	i->done = done;
	run(i, i->bytes);
}

void
upload_close(struct upload *i)
{
	payload_close(i->payload);
	i->payload = NULL;
	if (i->apicall)
		uploads_end(&i->apicall->api->uploads, &i->upload);
	EVP_MD_CTX_free(i->digest);
	i->digest = NULL;
	if (i->opened)
		buf_release(&i->out);
}
