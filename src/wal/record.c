#include "wal/record.h"

#include "base/crc32c.h"
#include "base/le.h"

enum {
	AT_SUM = 0,
	AT_LENGTH = 4,
	AT_SEQ = 8,
	AT_DURABLE = 16,
	AT_TYPE = 24,
	AT_FLAGS = 25,
	AT_ZERO = 26,
	AT_LIFE = 28
};

static size_t
body_at(uint8_t flags)
{
	return RECORD_HEAD + (flags & RECORD_HAS_TIME ? RECORD_TIME : 0);
}

void
record_put_head(char *p, const struct record *r)
{
	memset(p, 0, RECORD_HEAD);
	le32_put(p + AT_LENGTH, (uint32_t)r->body.n);
	le64_put(p + AT_SEQ, r->seq);
	le64_put(p + AT_DURABLE, r->durable);
	p[AT_TYPE] = (char)r->type;
	p[AT_FLAGS] = (char)r->flags;
	le32_put(p + AT_LIFE, r->life);
	if (r->flags & RECORD_HAS_TIME)
		le64_put(p + RECORD_HEAD, (uint64_t)r->time);
}

static uint32_t
sum(const char *p, uint32_t salt)
{
	const size_t n = body_at((uint8_t)p[AT_FLAGS]) + le32_get(p + AT_LENGTH);

	return crc32c(salt, p + AT_LENGTH, n - AT_LENGTH);
}

void
record_seal(char *p, uint32_t salt, bool is_last)
{
	if (is_last)
		p[AT_FLAGS] = (char)(p[AT_FLAGS] & ~RECORD_GOES_ON);
	le32_put(p + AT_SUM, sum(p, salt));
}

uint32_t
record_claims(const char *p, uint64_t max)
{
	const uint8_t flags = (uint8_t)p[AT_FLAGS];
	uint64_t size;

	if (p[AT_TYPE] == 0 || flags & ~RECORD_FLAGS || le64_get(p + AT_SEQ) == 0)
		return 0;
	if (p[AT_ZERO] || p[AT_ZERO + 1])
		return 0;
	size = record_size(le32_get(p + AT_LENGTH), flags & RECORD_HAS_TIME);
	return size <= max ? (uint32_t)size : 0;
}

uint64_t
record_seq(const char *p)
{
	return le64_get(p + AT_SEQ);
}

void
record_look(const char *p, struct record *r)
{
	*r = (struct record){
		.seq = le64_get(p + AT_SEQ),
		.durable = le64_get(p + AT_DURABLE),
		.type = (uint8_t)p[AT_TYPE],
		.flags = (uint8_t)p[AT_FLAGS],
		.life = le32_get(p + AT_LIFE),
	};
	if (r->flags & RECORD_HAS_TIME)
		r->time = (slu_time)le64_get(p + RECORD_HEAD);
	r->body.p = p + body_at(r->flags);
	r->body.n = le32_get(p + AT_LENGTH);
	r->size = (uint32_t)record_size(r->body.n, r->flags & RECORD_HAS_TIME);
}

bool
record_get(const char *p, size_t n, uint32_t salt, struct record *r)
{
	const uint32_t size = n < RECORD_HEAD ? 0 : record_claims(p, n);

	if (size == 0 || sum(p, salt) != le32_get(p + AT_SUM))
		return false;
	record_look(p, r);
	return true;
}
