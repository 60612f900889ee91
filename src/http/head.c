#include "http/head.h"

#include "http/chars.h"

#include <assert.h>

static struct span
span_of(const struct request *r, struct slice s)
{
	return (struct span){ (uint16_t)(s.p - r->head.p), (uint16_t)s.n };
}

static struct slice
slice_at(const struct request *r, struct span s)
{
	return (struct slice){ r->head.p + s.at, s.n };
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
take_version(struct request *r, struct slice s)
{
	if (s.n != 8 || memcmp(s.p, "HTTP/", 5) != 0 || !is_digit(s.p[5]) ||
	    s.p[6] != '.' || !is_digit(s.p[7]))
		return REFUSE_VERSION_SYNTAX;
	if (s.p[5] != '1' || s.p[7] > '1')
		return REFUSE_VERSION;
	r->minor = (unsigned)(s.p[7] - '0');
	return 0;
}

static int
take_path(struct request *r, struct slice s)
{
	const char *mark = memchr(s.p, '?', s.n);
	const size_t n = mark ? (size_t)(mark - s.p) : s.n;

	if (!http_all(s, CHAR_TARGET))
		return REFUSE_TARGET;
	r->in_path = span_of(r, (struct slice){ s.p, n });
	if (mark)
		r->in_query = span_of(r, (struct slice){ mark + 1, s.n - n - 1 });
	return 0;
}

/* http://host[:port][/path][?query], as proxies send it. The host is not used, like the Host
 * field; an empty path is "/" (head_end). */
static int
take_absolute(struct request *r, struct slice s)
{
	const size_t scheme = s.n > 4 && http_small(s.p[4]) == 's' ? 8 : 7;
	size_t n = scheme;

	if (s.n <= scheme ||
	    !http_same((struct slice){ s.p, scheme },
		       scheme == 8 ? SLICE("https://") : SLICE("http://")))
		return REFUSE_TARGET;
	while (n < s.n && http_is(s.p[n], CHAR_HOST))
		n++;
	if (n == scheme || (n < s.n && s.p[n] != '/' && s.p[n] != '?'))
		return REFUSE_TARGET;
	return take_path(r, (struct slice){ s.p + n, s.n - n });
}

static int
take_target(struct request *r, struct slice s)
{
	if (s.n > r->limits->target)
		return REFUSE_TARGET_LONG;
	r->in_target = span_of(r, s);
	if (s.n > 0 && s.p[0] == '/')
		return take_path(r, s);
	if (!slice_eq(s, SLICE("*")))
		return take_absolute(r, s);
	r->in_path = span_of(r, s);
	return slice_eq(slice_at(r, r->in_method), SLICE("OPTIONS")) ? 0 : REFUSE_TARGET;
}

int
head_request_line(struct request *r, struct slice line)
{
	struct slice method, target;
	int rc;

	if (!slice_cut(&line, ' ', &method) || !slice_cut(&line, ' ', &target))
		return REFUSE_REQUEST_LINE;
	rc = take_version(r, line);
	if (rc)
		return rc;
	if (method.n == 0 || !http_all(method, CHAR_TOKEN))
		return REFUSE_METHOD;
	r->in_method = span_of(r, method);
	return take_target(r, target);
}

/* Digits alone. 2^63 and more is well-formed, only larger than any limit. */
static int
take_length(struct request *r, struct slice value)
{
	uint64_t n = 0;

	if (r->has_length)
		return REFUSE_LENGTH_TWICE;
	if (value.n == 0)
		return REFUSE_LENGTH;
	for (size_t i = 0; i < value.n; i++) {
		if (!is_digit(value.p[i]))
			return REFUSE_LENGTH;
		if (n <= INT64_MAX / 10) /* else it stays too large whatever follows */
			n = n * 10 + (uint64_t)(value.p[i] - '0');
		else
			n = UINT64_MAX;
	}
	r->has_length = true;
	r->length = n;
	return n > INT64_MAX ? REFUSE_BODY_LONG : 0;
}

static int
take_coding(struct request *r, struct slice value)
{
	if (r->chunked)
		return REFUSE_CODING_TWICE;
	if (r->minor == 0)
		return REFUSE_CODING_1_0;
	r->chunked = http_same(value, SLICE("chunked"));
	return r->chunked ? 0 : REFUSE_CODING_UNKNOWN;
}

static int
take_host(struct request *r, struct slice value)
{
	if (r->has_host)
		return REFUSE_HOST_TWICE;
	r->has_host = true;
	return http_all(value, CHAR_HOST) ? 0 : REFUSE_HOST;
}

static int
take_authorization(struct request *r, struct slice value)
{
	(void)value; /* the API checks the value */
	if (r->has_auth)
		return REFUSE_AUTH_TWICE;
	r->has_auth = true;
	return 0;
}

static int
take_connection(struct request *r, struct slice value)
{
	http_connection(value, &r->said_close, &r->said_keep_alive);
	return 0;
}

/* HTTP/1.0 has no Expect: any value is fine. */
static int
take_expect(struct request *r, struct slice value)
{
	if (r->minor == 0)
		return 0;
	r->said_continue = http_same(value, SLICE("100-continue"));
	return r->said_continue ? 0 : REFUSE_EXPECT;
}

/* The fields that decide how a message is read and who sent it: not allowed as trailers. */
static const struct special {
	struct slice name;
	int (*take)(struct request *r, struct slice value);
} specials[] = {
	{ { "host", 4 }, take_host },
	{ { "expect", 6 }, take_expect },
	{ { "connection", 10 }, take_connection },
	{ { "authorization", 13 }, take_authorization },
	{ { "content-length", 14 }, take_length },
	{ { "transfer-encoding", 17 }, take_coding },
};

static const struct special *
special_of(struct slice name)
{
	for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
		if (slice_eq(name, specials[i].name))
			return &specials[i];
	return NULL;
}

/* Checks a name up to the colon and makes it small. Returns 0 if it is invalid. */
static size_t
small_name(char *p, size_t n)
{
	size_t i = 0;

	for (; i < n && http_is(p[i], CHAR_TOKEN); i++)
		p[i] = http_small(p[i]);
	return i < n && p[i] == ':' ? i : 0;
}

static int
split_field(struct request *r, struct slice line, struct slice *name,
	    struct slice *value)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return REFUSE_OBS_FOLD;
	*name = line;
	name->n = small_name(r->head.p + (line.p - r->head.p), line.n);
	if (name->n == 0)
		return REFUSE_FIELD_NAME;
	*value = (struct slice){ line.p + name->n + 1, line.n - name->n - 1 };
	if (!http_all(*value, CHAR_VALUE))
		return REFUSE_FIELD_VALUE;
	*value = http_trim(*value);
	return 0;
}

int
head_field(struct request *r, struct slice line)
{
	const struct special *special;
	struct slice name, value;
	int rc;

	if (r->n_headers == r->limits->headers)
		return REFUSE_HEADERS;
	rc = split_field(r, line, &name, &value);
	if (rc)
		return rc;
	r->fields[r->n_headers++] = (struct request_field){
		.name = span_of(r, name),
		.value = span_of(r, value),
	};
	r->lengths |= (uint64_t)1 << name.n % 64;
	special = special_of(name);
	return special ? special->take(r, value) : 0;
}

int
head_trailer(struct request *r, struct slice line)
{
	struct slice name, value;
	const int rc = split_field(r, line, &name, &value);

	if (rc)
		return rc;
	return special_of(name) ? REFUSE_TRAILER : 0;
}

int
head_end(struct request *r)
{
	if (r->minor == 1 && !r->has_host)
		return REFUSE_HOST_MISSING;
	if (r->chunked && r->has_length)
		return REFUSE_LENGTH_CODING;
	r->method = slice_at(r, r->in_method);
	r->target = slice_at(r, r->in_target);
	r->path = r->in_path.n > 0 ? slice_at(r, r->in_path) : SLICE("/");
	r->query = slice_at(r, r->in_query);
	r->keep_alive = !r->said_close && (r->minor == 1 || r->said_keep_alive);
	r->expect_continue = r->said_continue && (r->chunked || r->length > 0);
	return 0;
}

struct slice
request_find(const struct request *r, struct slice name)
{
	for (unsigned i = 0; i < r->n_headers; i++)
		if (slice_eq(name, slice_at(r, r->fields[i].name)))
			return slice_at(r, r->fields[i].value);
	return (struct slice){ NULL, 0 };
}

void
request_header_at(const struct request *r, unsigned i, struct slice *name,
		  struct slice *value)
{
	assert(i < r->n_headers);
	*name = slice_at(r, r->fields[i].name);
	*value = slice_at(r, r->fields[i].value);
}
