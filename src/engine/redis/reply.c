#include "engine/redis/reply.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* ---- Numbers ---- */

static bool
is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
}

/* Reads -?[0-9]* as a number of 64 bits. */
static bool
read_number(struct slice text, int64_t *out)
{
	const bool minus = text.n > 0 && text.p[0] == '-';
	int64_t number = 0;

	if (minus && text.n == 1)
		return false;
	for (size_t i = minus; i < text.n; i++) {
		const int digit = text.p[i] - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_sub_overflow(number, digit, &number)) /* negative numbers reach further */
			return false;
	}
	if (!minus && number == INT64_MIN)
		return false;
	*out = minus ? number : -number;
	return true;
}

static bool
is_number(const redisReply *r, int64_t min, int64_t max)
{
	int64_t number = 0;

	if (r->type == REDIS_REPLY_INTEGER)
		number = r->integer;
	else if (is_text(r) ? !read_number(reply_text(r), &number) : r->type != REDIS_REPLY_NIL)
		return false;
	return number >= min && number <= max;
}

int64_t
reply_int(const redisReply *r)
{
	int64_t number = 0;

	if (r->type == REDIS_REPLY_INTEGER)
		return r->integer;
	if (is_text(r))
		(void)read_number(reply_text(r), &number); /* reply_fits has checked it */
	return number;
}

uint64_t
reply_id(const redisReply *r)
{
	return (uint64_t)reply_int(r);
}

/* ---- Shapes ---- */

/* The end of the part of a shape that begins at s. */
static const char *
skip(const char *s)
{
	unsigned depth = 0;

	do {
		depth += *s == '[' || *s == '(' || *s == '{';
		depth -= *s == ']' || *s == ')' || *s == '}';
		s++;
	} while (depth > 0);
	return s;
}

static bool fits(const redisReply *r, const char *s);

/* Whether the elements from i on repeat the group. */
static bool
fits_group(const redisReply *r, size_t i, const char *group)
{
	while (i < r->elements)
		for (const char *s = group; *s != ')'; s = skip(s))
			if (i == r->elements || !fits(r->element[i++], s))
				return false;
	return true;
}

static bool
fits_array(const redisReply *r, const char *s)
{
	size_t i = 0;

	if (r->type != REDIS_REPLY_ARRAY)
		return false;
	for (; *s != ']' && *s != '('; s = skip(s))
		if (i == r->elements || !fits(r->element[i++], s))
			return false;
	return *s == '(' ? fits_group(r, i, s + 1) : i == r->elements;
}

static bool
fits_one_of(const redisReply *r, const char *s)
{
	for (;; s++) {
		if (fits(r, s))
			return true;
		s = skip(s);
		if (*s == '}')
			return false;
		assert(*s == '|');
	}
}

/* Recurses only as deep as the shape, which is a constant. */
static bool
fits(const redisReply *r, const char *s)
{
	switch (*s) {
	case 'n':
		return is_number(r, INT64_MIN, INT64_MAX);
	case 'u':
		return is_number(r, 0, REPLY_NUMBER_MAX);
	case 'i':
		return is_number(r, 0, INT64_MAX);
	case 'p':
		return is_number(r, INT32_MIN, INT32_MAX);
	case 't':
		return is_text(r);
	case 'T':
		return is_text(r) || r->type == REDIS_REPLY_NIL;
	case '[':
		return fits_array(r, s + 1);
	case '{':
		return fits_one_of(r, s + 1);
	default:
		assert(*s == '.');
		return true;
	}
}

bool
reply_fits(const redisReply *reply, const char *shape)
{
	return fits(reply, shape);
}

/* ---- Reading ---- */

#if HIREDIS_MAJOR >= 1
typedef size_t reply_count;
#else
typedef int reply_count;
#endif

static redisReplyObjectFunctions bounded;
static void *(*create_array)(const redisReadTask *task, reply_count n);

/* Returns NULL if the array is too large: the reader reports no memory, and the connection
 * closes. */
static void *
create_bounded(const redisReadTask *task, reply_count n)
{
	return n <= REPLY_ELEMENTS_MAX ? create_array(task, n) : NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* hiredis exposes its functions only through a reader. */
static void
learn_functions(const redisReader *r)
{
	pthread_mutex_lock(&lock);
	if (!create_array) {
		create_array = r->fn->createArray;
		bounded = *r->fn;
		bounded.createArray = create_bounded;
	}
	pthread_mutex_unlock(&lock);
}

redisReader *
reply_reader(void)
{
	redisReader *const r = redisReaderCreate();

	if (!r)
		return NULL;
	learn_functions(r);
	r->fn = &bounded;
	return r;
}
