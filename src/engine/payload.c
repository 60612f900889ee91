#include "engine/payload.h"

#include "base/mem.h"

struct payload {
	struct engine *engine;
	const struct engine_files *files; /* NULL: the engine has none */
	struct engine_file *file;         /* NULL: the payload is in memory */
	struct buf small;
};

bool
payload_is_large(const struct engine *e, uint64_t n)
{
	return e->ops->files && n > e->ops->files->most(e);
}

bool
payload_is_in_memory(const struct engine *e)
{
	return !e->ops->files;
}

int
payload_open(struct engine *e, struct payload **out, struct slu_err *err)
{
	struct payload *p = mem_zalloc(sizeof *p);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a payload");
	p->engine = e;
	p->files = e->ops->files;
	buf_init(&p->small, MESSAGE_PAYLOAD_MAX);
	*out = p;
	return 0;
}

/* Open the file and write the bytes from memory. */
static int
begin_file(struct payload *p, struct slu_err *err)
{
	int rc;

	rc = p->files->open(p->engine, &p->file, err);
	if (rc) {
		p->file = NULL;
		return rc;
	}
	rc = p->files->write(p->file, p->small.p, p->small.n, err);
	buf_release(&p->small);
	return rc;
}

int
payload_write(struct payload *p, const void *bytes, size_t n, struct slu_err *err)
{
	int rc = 0;

	if (!p->file && n > MESSAGE_PAYLOAD_MAX - p->small.n)
		return slu_fail(err, SLU_ETOOBIG, "payload too large; expected at most %d bytes",
				MESSAGE_PAYLOAD_MAX);
	if (!p->file && payload_is_large(p->engine, p->small.n + n))
		rc = begin_file(p, err);
	if (rc)
		return rc;
	if (p->file)
		return p->files->write(p->file, bytes, n, err);
	buf_put(&p->small, bytes, n);
	return p->small.failed ? slu_fail(err, SLU_ENOMEM, "no memory for a payload") : 0;
}

int
payload_seal(struct payload *p, struct message *m, struct slu_err *err)
{
	m->keeper = p->file ? p->engine : NULL;
	if (p->file)
		return p->files->seal(p->file, m, err);
	m->payload = buf_slice(&p->small);
	m->payload_size = p->small.n;
	m->file = 0;
	m->mark = 0;
	return 0;
}

void
payload_close(struct payload *p)
{
	if (!p)
		return;
	if (p->file)
		p->files->close(p->file);
	buf_release(&p->small);
	mem_free(p);
}

int
payload_store(struct engine *e, struct message *m, struct payload **out,
	      struct slu_err *err)
{
	int rc;

	if (m->idem.n)
		m->digest = message_digest(m->payload);
	rc = payload_open(e, out, err);
	if (rc) {
		*out = NULL;
		return rc;
	}
	rc = payload_write(*out, m->payload.p, m->payload.n, err);
	return rc ? rc : payload_seal(*out, m, err);
}
