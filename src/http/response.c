#include "http/response.h"

#include "http/chars.h"

#include <assert.h>
#include <time.h>

enum stage {
	STAGE_BEGUN,
	STAGE_FIELDS,
	STAGE_BODY,
	STAGE_PIECE, /* between response_body_begin and _end */
	STAGE_TRAILERS,
	STAGE_DONE
};

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 429, "Too Many Requests" },
	{ 426, "Upgrade Required" },
	{ 431, "Request Header Fields Too Large" },
	{ 499, "Client Closed Request" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *
http_reason(unsigned status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

static void
put_two(char *p, int n)
{
	p[0] = (char)('0' + n / 10 % 10);
	p[1] = (char)('0' + n % 10);
}

/* Not strftime: its names of days and months follow the locale. */
static void
format_date(struct http_date *d)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const time_t second = (time_t)d->second;
	struct tm tm = { 0 };

	(void)gmtime_r(&second, &tm); /* no slu_time is beyond its years */
	memcpy(d->text, "day, 00 mon 0000 00:00:00 GMT", HTTP_DATE_TEXT);
	memcpy(d->text, days + 3 * tm.tm_wday, 3);
	put_two(d->text + 5, tm.tm_mday);
	memcpy(d->text + 8, months + 3 * tm.tm_mon, 3);
	put_two(d->text + 12, (tm.tm_year + 1900) / 100);
	put_two(d->text + 14, tm.tm_year + 1900);
	put_two(d->text + 17, tm.tm_hour);
	put_two(d->text + 20, tm.tm_min);
	put_two(d->text + 23, tm.tm_sec);
}

const char *
http_date(struct http_date *d, slu_time now)
{
	const int64_t second = now / SLU_SEC - (now % SLU_SEC < 0);

	if (d->second != second || d->text[0] == '\0') {
		d->second = second;
		format_date(d);
	}
	return d->text;
}

static void
put(struct response *w, struct slice s)
{
	buf_put(w->out, s.p, s.n);
}

/* n in base 10 or 16, no sign, no leading zeros. */
static void
put_number(struct response *w, uint64_t n, unsigned base)
{
	char text[24];
	size_t at = sizeof text;

	do {
		text[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	buf_put(w->out, text + at, sizeof text - at);
}

void
response_begin(struct response *w, struct buf *out, const struct request *r)
{
	*w = (struct response){ .out = out };
	if (!r || r->refused)
		return;
	w->old = r->minor == 0;
	w->for_head = slice_eq(r->method, SLICE("HEAD"));
	w->keep_alive = r->keep_alive;
}

static void
put_status(struct response *w, unsigned status)
{
	if (status == 200) { /* nearly all answers */
		put(w, SLICE("HTTP/1.1 200 OK\r\n"));
		return;
	}
	put(w, SLICE("HTTP/1.1 "));
	put_number(w, status, 10);
	buf_putc(w->out, ' ');
	buf_puts(w->out, http_reason(status));
	put(w, SLICE("\r\n"));
}

void
response_status(struct response *w, unsigned status, const char *date)
{
	char field[] = "Date: day, 00 mon 0000 00:00:00 GMT\r\n";

	assert(w->stage == STAGE_BEGUN && status >= 200 && status <= 999);
	w->stage = STAGE_FIELDS;
	w->bodyless = status == 204 || status == 304;
	put_status(w, status);
	if (!date)
		return;
	memcpy(field + strlen("Date: "), date, HTTP_DATE_TEXT - 1);
	put(w, SLICE(field));
}

static bool
is_ours(struct slice name)
{
	return http_same(name, SLICE("content-length")) ||
	       http_same(name, SLICE("transfer-encoding")) ||
	       http_same(name, SLICE("connection")) ||
	       http_same(name, SLICE("date"));
}

static int
put_field(struct response *w, const char *name, struct slice value)
{
	const struct slice n = slice_of(name);

	if (n.n == 0 || !http_all(n, CHAR_TOKEN) || is_ours(n) ||
	    !http_all(value, CHAR_VALUE))
		return SLU_EINVAL;
	put(w, n);
	put(w, SLICE(": "));
	put(w, value);
	put(w, SLICE("\r\n"));
	return 0;
}

int
response_header(struct response *w, const char *name, struct slice value)
{
	assert(w->stage == STAGE_FIELDS);
	return put_field(w, name, value);
}

void
response_type(struct response *w, const char *type)
{
	assert(w->stage == STAGE_FIELDS);
	put(w, SLICE("Content-Type: "));
	put(w, slice_of(type));
	put(w, SLICE("\r\n"));
}

/* HTTP/1.1 keeps the connection by default, HTTP/1.0 closes it. */
static void
end_head(struct response *w)
{
	if (!w->keep_alive)
		put(w, SLICE("Connection: close\r\n\r\n"));
	else if (w->old)
		put(w, SLICE("Connection: keep-alive\r\n\r\n"));
	else
		put(w, SLICE("\r\n"));
	w->bodyless |= w->for_head;
	w->stage = STAGE_BODY;
}

/* 204 has no Content-Length; in a 304 it would be the length of another answer. */
void
response_length(struct response *w, uint64_t n)
{
	assert(w->stage == STAGE_FIELDS);
	w->counted = true;
	w->left = n;
	if (!w->bodyless) {
		put(w, SLICE("Content-Length: "));
		put_number(w, n, 10);
		put(w, SLICE("\r\n"));
	}
	end_head(w);
}

void
response_chunked(struct response *w)
{
	assert(w->stage == STAGE_FIELDS);
	w->chunked = !w->bodyless && !w->old;
	if (w->chunked)
		put(w, SLICE("Transfer-Encoding: chunked\r\n"));
	else if (!w->bodyless)
		w->keep_alive = false; /* the end of the connection ends the body */
	end_head(w);
}

bool
response_body_begin(struct response *w, uint64_t n)
{
	assert(w->stage == STAGE_BODY && n > 0);
	assert(!w->counted || n <= w->left);
	w->stage = STAGE_PIECE;
	w->left -= w->counted ? n : 0;
	if (w->bodyless)
		return false;
	if (w->chunked) {
		put_number(w, n, 16);
		put(w, SLICE("\r\n"));
	}
	return true;
}

void
response_body_end(struct response *w)
{
	assert(w->stage == STAGE_PIECE);
	w->stage = STAGE_BODY;
	if (w->chunked && !w->bodyless)
		put(w, SLICE("\r\n"));
}

void
response_body(struct response *w, const void *p, size_t n)
{
	if (n == 0)
		return; /* an empty chunk would be the last */
	if (response_body_begin(w, n))
		buf_put(w->out, p, n);
	response_body_end(w);
}

static bool
has_chunks(const struct response *w)
{
	return w->chunked && !w->bodyless;
}

int
response_trailer(struct response *w, const char *name, struct slice value)
{
	assert(w->stage == STAGE_BODY || w->stage == STAGE_TRAILERS);
	if (!has_chunks(w))
		return 0; /* only chunked answers have trailers */
	if (w->stage == STAGE_BODY)
		put(w, SLICE("0\r\n"));
	w->stage = STAGE_TRAILERS;
	return put_field(w, name, value);
}

void
response_end(struct response *w)
{
	assert(w->stage == STAGE_TRAILERS ||
	       (w->stage == STAGE_BODY && (w->left == 0 || w->bodyless)));
	if (has_chunks(w) && w->stage == STAGE_BODY)
		put(w, SLICE("0\r\n"));
	if (has_chunks(w))
		put(w, SLICE("\r\n"));
	w->stage = STAGE_DONE;
}
