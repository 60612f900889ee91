#include "wal/reader.h"

#include "base/mem.h"

enum {
	READ_AHEAD = 256 * 1024
};

void
reader_release(struct reader *r)
{
	segment_unref(r->segment);
	mem_free(r->p);
	*r = (struct reader){ 0 };
}

void
reader_start(struct reader *r, struct segment *s, uint32_t at, uint32_t limit)
{
	segment_ref(s);
	segment_unref(r->segment);
	r->segment = s;
	r->at = at;
	r->limit = limit;
	r->from = at;
	r->n = 0;
}

/* Makes room for n bytes. May lose the content of the buffer. */
static int
make_room(struct reader *r, size_t n, struct slu_err *err)
{
	char *p;

	if (n <= r->size)
		return 0;
	p = mem_alloc(n);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "read %s: out of memory",
				r->segment->name);
	mem_free(r->p);
	r->p = p;
	r->size = n;
	r->n = 0;
	return 0;
}

static int
fill(struct reader *r, size_t n, struct slu_err *err)
{
	const uint32_t rest = r->limit - r->at;
	const size_t ahead = n > READ_AHEAD ? n : READ_AHEAD;
	const uint32_t take = rest < ahead ? rest : (uint32_t)ahead;
	int rc;

	rc = make_room(r, take, err);
	if (rc)
		return rc;
	r->from = r->at;
	r->n = 0;
	rc = segment_read(r->segment, r->p, take, r->at, false, err);
	if (!rc)
		r->n = take;
	return rc;
}

int
reader_bytes(struct reader *r, size_t n, const char **p, struct slu_err *err)
{
	*p = NULL;
	if (r->at > r->limit || r->limit - r->at < n)
		return 0;
	if (r->at < r->from || r->at - r->from + n > r->n) {
		const int rc = fill(r, n, err);

		if (rc)
			return rc;
	}
	*p = r->p + (r->at - r->from);
	return 0;
}

int
reader_peek(struct reader *r, struct record *rec, struct slu_err *err)
{
	const char *p;
	uint32_t size;
	int rc;

	rec->size = 0;
	rc = reader_bytes(r, RECORD_HEAD, &p, err);
	if (rc || !p)
		return rc;
	size = record_claims(p, r->limit - r->at);
	if (size == 0)
		return 0;
	rc = reader_bytes(r, size, &p, err);
	if (rc)
		return rc;
	if (!record_get(p, size, segment_salt(r->segment, r->at), rec))
		rec->size = 0;
	return 0;
}
