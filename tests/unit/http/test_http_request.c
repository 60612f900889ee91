#include "test.h"

#include "base/mem.h"
#include "http/chars.h"
#include "http/request.h"
#include "http_trace.h"

#include <stdio.h>

#define TEXT(literal) (literal), sizeof(literal) - 1
#define HOST          "Host: h\r\n"
#define POST          "POST / HTTP/1.1\r\n" HOST
#define CHUNKED       POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct request_limits small = {
	.head = 200, .target = 40, .headers = 4, .body = 1000
};

/* REQUEST-7: whole, byte by byte, in threes, and cut in two at every place. */
static void
check_trace(const struct request_limits *limits, struct slice in, const char *want,
	    const char *label)
{
	struct buf whole, cut;

	buf_init(&whole, SIZE_MAX);
	buf_init(&cut, SIZE_MAX);
	trace_cut(&whole, limits, in, 0, in.n);
	if (!strstr(buf_str(&whole), want))
		test_fail(__FILE__, __LINE__, "%s: want \"%s\", got \"%s\"", label, want,
			  buf_str(&whole));
	for (size_t at = 0; at <= in.n; at++) {
		buf_clear(&cut);
		if (at == 0)
			trace_cut(&cut, limits, in, 0, 1);
		else if (at == in.n)
			trace_cut(&cut, limits, in, 0, 3);
		else
			trace_cut(&cut, limits, in, at, in.n);
		if (!slice_eq(buf_slice(&whole), buf_slice(&cut)))
			test_fail(__FILE__, __LINE__, "%s: cut at %zu: \"%s\", not \"%s\"",
				  label, at, buf_str(&cut), buf_str(&whole));
	}
	buf_release(&whole);
	buf_release(&cut);
}

struct row {
	const char *label, *in;
	size_t n;
	const char *want; /* part of the trace */
};

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_trace(&request_limits_default, (struct slice){ rows[i].in, rows[i].n },
			    rows[i].want, rows[i].label);
}

TEST(a_request_is_read_the_same_however_it_is_cut)
{
	static const struct row rows[] = {
		{ "the least", TEXT("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
		  "GET / ?  HTTP/1.1 keep-alive length 0\nhost: \nend\nmore\n" },
		{ "a body", TEXT(POST "Content-Length: 5\r\n\r\nhello"),
		  "POST / ?  HTTP/1.1 keep-alive length 5\nhost: h\n"
		  "content-length: 5\n= hello\nend\nmore\n" },
		{ "a body that is not all there", TEXT(POST "Content-Length: 9\r\n\r\nhello"),
		  "= hello\nmore\n" },
		{ "path and query", TEXT("GET /a/b%2F?x=1&y=? HTTP/1.1\r\n" HOST "\r\n"),
		  "GET /a/b%2F ? x=1&y=? HTTP/1.1" },
		{ "spaces and tabs around a value", TEXT("GET / HTTP/1.1\r\n" HOST "X-A: \t a b\t \r\nX-B:\r\n\r\n"),
		  "x-a: a b\nx-b: \nend" },
		{ "names lose their capitals, values do not",
		  TEXT("GET / HTTP/1.1\r\nHOST: H\r\nX_~!: \xc3\xbc\r\n\r\n"),
		  "host: H\nx_~!: \xc3\xbc\nend" },
		{ "any token is a method", TEXT("my!Method / HTTP/1.1\r\n" HOST "\r\n"),
		  "my!Method / ?  HTTP/1.1" },
		{ "absolute form", TEXT("GET http://a.b:80/c?d HTTP/1.1\r\n" HOST "\r\n"),
		  "GET /c ? d HTTP/1.1" },
		{ "absolute form without a path", TEXT("GET HTTPS://[::1] HTTP/1.1\r\n" HOST "\r\n"),
		  "GET / ?  HTTP/1.1" },
		{ "absolute form with a query alone", TEXT("GET http://a?b HTTP/1.1\r\n" HOST "\r\n"),
		  "GET / ? b HTTP/1.1" },
		{ "asterisk", TEXT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), "OPTIONS * ?  HTTP/1.1" },
		{ "chunks", TEXT(CHUNKED "5\r\nhello\r\n1;x=\"y\"\r\n!\r\n0\r\n\r\n"),
		  "chunked\nhost: h\ntransfer-encoding: chunked\n= hello!\nend\nmore\n" },
		{ "chunked in capitals", TEXT(POST "Transfer-Encoding: CHUNKED\r\n\r\n00\r\n\r\n"),
		  "CHUNKED\nend\nmore\n" },
		{ "chunked between tabs", TEXT(POST "Transfer-Encoding:\tchunked\t\r\n\r\n0\r\n\r\n"),
		  "transfer-encoding: chunked\nend\nmore\n" },
		{ "a chunk size of many digits", TEXT(CHUNKED "00000000000000000002\r\nab\r\n0\r\n\r\n"),
		  "= ab\nend\nmore\n" },
		{ "trailers are dropped", TEXT(CHUNKED "1\r\na\r\n0\r\nX-T: 1\r\nX-U:\r\n\r\n"),
		  "= a\nend\nmore\n" },
		{ "four blank lines first", TEXT("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"),
		  "end\nmore\n" },
		{ "nothing at all", TEXT(""), "more\n" },
	};

	check_rows(rows, COUNT(rows));
}

TEST(pipelined_requests_come_one_after_the_other)
{
	static const char in[] = POST "Content-Length: 2\r\n\r\nab"
				      "GET /2 HTTP/1.1\r\nHost: second\r\n\r\n"
				      "\r\n" CHUNKED "1\r\nx\r\n0\r\n\r\n"
				      "GET /4 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"
				      "GET /5 HTTP/1.1\r\n" HOST "\r\n";

	check_trace(&request_limits_default, (struct slice){ TEXT(in) },
		    "POST / ?  HTTP/1.1 keep-alive length 2\nhost: h\ncontent-length: 2\n"
		    "= ab\nend\n"
		    "GET /2 ?  HTTP/1.1 keep-alive length 0\nhost: second\nend\n"
		    "POST / ?  HTTP/1.1 keep-alive chunked\nhost: h\n"
		    "transfer-encoding: chunked\n= x\nend\n"
		    "GET /4 ?  HTTP/1.1 close length 0\nhost: h\nconnection: close\nend\n"
		    "more\n",
		    "nothing is read after a close");
}

TEST(a_caller_that_waits_finds_the_next_request_untouched)
{
	static const char next[] = "GET /2 HTTP/1.1\r\n" HOST "\r\n";
	char all[200];
	struct slice in = { all, 0 }, body;
	struct request r;

	in.n = (size_t)snprintf(all, sizeof all, "%s%s", POST "\r\n", next);
	CHECK_EQ(0, request_init(&r, &request_limits_default));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	CHECK_EQ(REQUEST_END, request_next(&r, &in, &body));
	CHECK_EQ(sizeof next - 1, in.n);
	CHECK(slice_eq(SLICE("POST"), r.method) && slice_eq(SLICE("/"), r.path));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	CHECK(slice_eq(SLICE("/2"), r.path));
	request_release(&r);
}

/* REQUEST-8. */
TEST(a_head_that_comes_again_is_not_parsed_again)
{
#define HEAD POST "Content-Length: 2\r\nX-A: b\r\n\r\n"
	static const struct {
		const char *label, *second;
		bool repeated;
		const char *path, *value;
		uint64_t length;
	} cases[] = {
		{ "the same bytes", HEAD, true, "/", "b", 2 },
		{ "another value", POST "Content-Length: 2\r\nX-A: c\r\n\r\n", false, "/", "c", 2 },
		{ "another length", POST "Content-Length: 3\r\nX-A: b\r\n\r\n", false, "/", "b", 3 },
		{ "another case of a name", POST "content-length: 2\r\nX-A: b\r\n\r\n", false, "/", "b", 2 },
		{ "another path", "POST /p HTTP/1.1\r\n" HOST "Content-Length: 2\r\nX-A: b\r\n\r\n", false,
		  "/p", "b", 2 },
		{ "one more field", POST "Content-Length: 2\r\nX-A: b\r\nX-C: d\r\n\r\n", false, "/", "b", 2 },
		{ "a blank line before", "\r\n" HEAD, false, "/", "b", 2 },
	};

	EACH(i, cases) {
		char all[400];
		struct slice in = { all, 0 }, body;
		struct request r;

		in.n = (size_t)snprintf(all, sizeof all, "%sab%sabc", HEAD, cases[i].second);
		CHECK_EQ(0, request_init(&r, &request_limits_default));
		CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body), cases[i].label);
		CHECK(!r.repeated);
		CHECK_EQ(REQUEST_BODY, request_next(&r, &in, &body), cases[i].label);
		CHECK_EQ(REQUEST_END, request_next(&r, &in, &body), cases[i].label);
		CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body), cases[i].label);
		CHECK_EQ(cases[i].repeated, r.repeated, cases[i].label);
		CHECK(slice_eq(slice_of(cases[i].path), r.path));
		CHECK(slice_eq(slice_of(cases[i].value), request_header(&r, "x-a")));
		CHECK_EQ(cases[i].length, r.length, cases[i].label);
		CHECK_EQ(REQUEST_BODY, request_next(&r, &in, &body), cases[i].label);
		CHECK_EQ(cases[i].length, body.n, cases[i].label);
		CHECK_EQ(REQUEST_END, request_next(&r, &in, &body), cases[i].label);
		request_release(&r);
	}
#undef HEAD
}

/* Faults 28 and 30. */
TEST(ambiguous_framing_is_refused)
{
	static const struct row rows[] = {
		{ "length and coding", TEXT(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		  "refused 400 content_length_and_transfer_encoding" },
		{ "coding and length", TEXT(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
		  "refused 400 content_length_and_transfer_encoding" },
		{ "two lengths that differ", TEXT(POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\n"),
		  "refused 400 content_length_twice" },
		{ "two equal lengths", TEXT(POST "Content-Length: 4\r\ncontent-length: 4\r\n\r\n"),
		  "refused 400 content_length_twice" },
		{ "two lengths in one field", TEXT(POST "Content-Length: 4, 4\r\n\r\n"), "refused 400 content_length\n" },
		{ "no length", TEXT(POST "Content-Length:\r\n\r\n"), "refused 400 content_length\n" },
		{ "plus", TEXT(POST "Content-Length: +4\r\n\r\n"), "refused 400 content_length\n" },
		{ "minus", TEXT(POST "Content-Length: -1\r\n\r\n"), "refused 400 content_length\n" },
		{ "hex", TEXT(POST "Content-Length: 0x4\r\n\r\n"), "refused 400 content_length\n" },
		{ "a space inside", TEXT(POST "Content-Length: 1 2\r\n\r\n"), "refused 400 content_length\n" },
		{ "a fraction", TEXT(POST "Content-Length: 1.0\r\n\r\n"), "refused 400 content_length\n" },
		{ "a letter after an overflow", TEXT(POST "Content-Length: 99999999999999999999x\r\n\r\n"),
		  "refused 400 content_length\n" },
		{ "2^63", TEXT(POST "Content-Length: 9223372036854775808\r\n\r\n"), "refused 413 body_too_large" },
		{ "2^64", TEXT(POST "Content-Length: 18446744073709551616\r\n\r\n"), "refused 413 body_too_large" },
		{ "2^64 + 4", TEXT(POST "Content-Length: 18446744073709551620\r\n\r\n"), "refused 413 body_too_large" },
		{ "2^80", TEXT(POST "Content-Length: 1208925819614629174706176\r\n\r\n"), "refused 413 body_too_large" },
		{ "another coding", TEXT(POST "Transfer-Encoding: gzip\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "a list of codings", TEXT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked not last", TEXT(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked twice in one field", TEXT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked in two fields", TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		  "refused 400 transfer_encoding_twice" },
		{ "almost chunked", TEXT(POST "Transfer-Encoding: xchunked\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked in quotes", TEXT(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked with a vertical tab", TEXT(POST "Transfer-Encoding: \vchunked\r\n\r\n"), "refused 400 field_value" },
		{ "no coding", TEXT(POST "Transfer-Encoding:\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "chunked in 1.0", TEXT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
		  "refused 400 transfer_encoding_in_1_0" },
		{ "space before the colon", TEXT(POST "Transfer-Encoding : chunked\r\n\r\n"), "refused 400 field_name" },
		{ "tab before the colon", TEXT(POST "Content-Length\t: 4\r\n\r\n"), "refused 400 field_name" },
		{ "a folded line", TEXT(POST "X: a\r\n b\r\n\r\n"), "refused 400 obs_fold" },
		{ "a line folded by a tab", TEXT(POST "Transfer-Encoding:\r\n\tchunked\r\n\r\n"), "refused 501 transfer_encoding\n" },
		{ "space before the first field", TEXT("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), "refused 400 obs_fold" },
		{ "bare LF after the request line", TEXT("GET / HTTP/1.1\n" HOST "\r\n"), "refused 400 bare_lf" },
		{ "bare LF after a field", TEXT("GET / HTTP/1.1\r\nHost: h\n\r\n"), "refused 400 bare_lf" },
		{ "bare LF as the blank line", TEXT("GET / HTTP/1.1\r\n" HOST "\n"), "refused 400 bare_lf" },
		{ "bare LF before the request", TEXT("\nGET / HTTP/1.1\r\n" HOST "\r\n"), "refused 400 bare_lf" },
		{ "bare CR in a value", TEXT("GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n"), "refused 400 field_value" },
		{ "bare CR before CRLF", TEXT("GET / HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n"), "refused 400 field_value" },
		{ "bare CR as the blank line", TEXT("GET / HTTP/1.1\r\n" HOST "\r\r\n"), "refused 400 field_name" },
		{ "bare CR in the request line", TEXT("GET / HTTP/1.1\rX\r\n" HOST "\r\n"), "refused 400 version\n" },
		{ "CR between lines", TEXT("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"), "refused 400 field_value" },
		{ "five blank lines first", TEXT("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), "refused 400 blank_lines" },
		{ "what follows a body is a request", TEXT(POST "Content-Length: 1\r\n\r\nxG ET / HTTP/1.1\r\n"),
		  "= x\nend\nrefused 400 version\n" },
	};

	check_rows(rows, COUNT(rows));
}

TEST(broken_chunks_are_refused)
{
	static const struct row rows[] = {
		{ "no size", TEXT(CHUNKED "\r\n"), "refused 400 chunk_size" },
		{ "no hex", TEXT(CHUNKED "g\r\n"), "refused 400 chunk_size" },
		{ "0x", TEXT(CHUNKED "0x1\r\n"), "refused 400 chunk_size" },
		{ "minus", TEXT(CHUNKED "-1\r\n"), "refused 400 chunk_size" },
		{ "plus", TEXT(CHUNKED "+1\r\n"), "refused 400 chunk_size" },
		{ "a space before", TEXT(CHUNKED " 1\r\n"), "refused 400 chunk_size" },
		{ "a space behind", TEXT(CHUNKED "1 \r\na\r\n"), "refused 400 chunk_size" },
		{ "a space before the extension", TEXT(CHUNKED "1 ;x\r\n"), "refused 400 chunk_size" },
		{ "2^63", TEXT(CHUNKED "8000000000000000\r\n"), "refused 400 chunk_size" },
		{ "2^64 + 1", TEXT(CHUNKED "10000000000000001\r\n"), "refused 400 chunk_size" },
		{ "2^63 - 1", TEXT(CHUNKED "7fffffffffffffff\r\n"), "refused 413 body_too_large" },
		{ "bare LF behind a size", TEXT(CHUNKED "1\na\r\n"), "refused 400 bare_lf" },
		{ "bare LF in an extension", TEXT(CHUNKED "1;x\na\r\n"), "refused 400 bare_lf" },
		{ "bare CR in an extension", TEXT(CHUNKED "1;x\ry\r\na\r\n"), "refused 400 chunk_extension" },
		{ "bare CR behind a size", TEXT(CHUNKED "1\r;\r\na\r\n"), "refused 400 chunk_size" },
		{ "NUL in an extension", TEXT(CHUNKED "1;\0\r\na\r\n"), "refused 400 chunk_extension" },
		{ "no CRLF behind the data", TEXT(CHUNKED "1\r\nab\r\n"), "= a\nrefused 400 chunk_end" },
		{ "data too long by two", TEXT(CHUNKED "1\r\nabc0\r\n\r\n"), "= a\nrefused 400 chunk_end" },
		{ "bare LF behind the data", TEXT(CHUNKED "1\r\na\n0\r\n\r\n"), "= a\nrefused 400 bare_lf" },
		{ "bare CR behind the data", TEXT(CHUNKED "1\r\na\r0\r\n\r\n"), "= a\nrefused 400 chunk_end" },
		{ "length as a trailer", TEXT(CHUNKED "0\r\nContent-Length: 4\r\n\r\n"), "refused 400 trailer\n" },
		{ "coding as a trailer", TEXT(CHUNKED "0\r\ntransfer-ENCODING: chunked\r\n\r\n"), "refused 400 trailer\n" },
		{ "host as a trailer", TEXT(CHUNKED "0\r\nHost: other\r\n\r\n"), "refused 400 trailer\n" },
		{ "a trailer without a colon", TEXT(CHUNKED "0\r\nGET / HTTP/1.1\r\n\r\n"), "refused 400 field_name" },
		{ "a folded trailer", TEXT(CHUNKED "0\r\nX: 1\r\n 2\r\n\r\n"), "refused 400 obs_fold" },
		{ "a trailer with a bare CR", TEXT(CHUNKED "0\r\nX: 1\r2\r\n\r\n"), "refused 400 field_value" },
		{ "a trailer that ends in LF", TEXT(CHUNKED "0\r\nX: 1\n\r\n"), "refused 400 bare_lf" },
		{ "bare LF at the end", TEXT(CHUNKED "0\r\n\n"), "refused 400 bare_lf" },
	};

	check_rows(rows, COUNT(rows));
}

TEST(malformed_request_lines_are_refused)
{
	static const struct row rows[] = {
		{ "HTTP/0.9", TEXT("GET /\r\n"), "refused 400 request_line" },
		{ "one word", TEXT("GET\r\n"), "refused 400 request_line" },
		{ "a space alone", TEXT(" \r\n"), "refused 400 request_line" },
		{ "no method", TEXT(" / HTTP/1.1\r\n"), "refused 400 method" },
		{ "no token", TEXT("G(T / HTTP/1.1\r\n"), "refused 400 method" },
		{ "NUL in the method", TEXT("G\0T / HTTP/1.1\r\n"), "refused 400 method" },
		{ "two spaces", TEXT("GET  / HTTP/1.1\r\n"), "refused 400 version\n" },
		{ "two spaces further on", TEXT("GET /  HTTP/1.1\r\n"), "refused 400 version\n" },
		{ "a space at the end", TEXT("GET / HTTP/1.1 \r\n"), "refused 400 version\n" },
		{ "a tab", TEXT("GET\t/ HTTP/1.1\r\n"), "refused 400 request_line" },
		{ "no target", TEXT("GET  HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "small version", TEXT("GET / http/1.1\r\n"), "refused 400 version\n" },
		{ "no minor", TEXT("GET / HTTP/1.\r\n"), "refused 400 version\n" },
		{ "long minor", TEXT("GET / HTTP/1.10\r\n"), "refused 400 version\n" },
		{ "HTTP/1.2", TEXT("GET / HTTP/1.2\r\n"), "refused 505 version_not_supported" },
		{ "HTTP/2.0", TEXT("GET / HTTP/2.0\r\n"), "refused 505 version_not_supported" },
		{ "HTTP/0.9 in words", TEXT("GET / HTTP/0.9\r\n"), "refused 505 version_not_supported" },
		{ "the HTTP/2 preface", TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "refused 505 version_not_supported" },
		{ "a TLS hello", TEXT("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n"), "refused 400 bare_lf" },
		{ "no slash", TEXT("GET a HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a fragment", TEXT("GET /a#b HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a fragment in absolute form", TEXT("GET http://h/#b HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "authority form", TEXT("CONNECT h:443 HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "asterisk for GET", TEXT("GET * HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "two asterisks", TEXT("OPTIONS ** HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "another scheme", TEXT("GET ftp://h/ HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "no host in absolute form", TEXT("GET http:///a HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a scheme alone", TEXT("GET http:// HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "half a scheme", TEXT("GET http HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "user and host", TEXT("GET http://u@h/ HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a byte above 127", TEXT("GET /\xfc HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "NUL in the target", TEXT("GET /\0 HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a quote", TEXT("GET /\"a HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "a backslash", TEXT("GET /a\\b HTTP/1.1\r\n"), "refused 400 target\n" },
		{ "brackets", TEXT("GET /?a[]=1 HTTP/1.1\r\n"), "refused 400 target\n" },
	};

	check_rows(rows, COUNT(rows));
}

TEST(malformed_fields_are_refused)
{
	static const struct row rows[] = {
		{ "no colon", TEXT("GET / HTTP/1.1\r\nHost\r\n"), "refused 400 field_name" },
		{ "no name", TEXT("GET / HTTP/1.1\r\n: h\r\n"), "refused 400 field_name" },
		{ "a name with a slash", TEXT("GET / HTTP/1.1\r\nA/B: h\r\n"), "refused 400 field_name" },
		{ "a name above 127", TEXT("GET / HTTP/1.1\r\n\xc3\xbc: h\r\n"), "refused 400 field_name" },
		{ "NUL in a name", TEXT("GET / HTTP/1.1\r\nHo\0st: h\r\n"), "refused 400 field_name" },
		{ "NUL in a value", TEXT("GET / HTTP/1.1\r\nHost: h\0\r\n"), "refused 400 field_value" },
		{ "escape in a value", TEXT("GET / HTTP/1.1\r\nX: \x1b[2J\r\n"), "refused 400 field_value" },
		{ "delete in a value", TEXT("GET / HTTP/1.1\r\nX: \x7f\r\n"), "refused 400 field_value" },
		{ "no host", TEXT("GET / HTTP/1.1\r\n\r\n"), "refused 400 host_missing" },
		{ "no host in absolute form's field", TEXT("GET http://h/ HTTP/1.1\r\n\r\n"), "refused 400 host_missing" },
		{ "two hosts", TEXT("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"), "refused 400 host_twice" },
		{ "two authorizations", TEXT("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nauthorization: Bearer a\r\n\r\n"), "refused 400 authorization_twice" },
		{ "two hosts in 1.0", TEXT("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n"), "refused 400 host_twice" },
		{ "a list of hosts", TEXT("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"), "refused 400 host\n" },
		{ "a host with a path", TEXT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "refused 400 host\n" },
		{ "a host with a space", TEXT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "refused 400 host\n" },
		{ "another expectation", TEXT(POST "Expect: money\r\n\r\n"), "refused 417 expect" },
	};

	check_rows(rows, COUNT(rows));
}

TEST(headers_decide_about_keep_alive_and_100_continue)
{
	static const struct row rows[] = {
		{ "1.1 keeps", TEXT(POST "\r\n"), "HTTP/1.1 keep-alive length 0\n" },
		{ "1.1 closes", TEXT(POST "Connection: close\r\n\r\n"), "HTTP/1.1 close length 0\n" },
		{ "close in a list", TEXT(POST "Connection: x,, \tCLOSE ,y\r\n\r\n"), "HTTP/1.1 close" },
		{ "close in the second field", TEXT(POST "Connection: keep-alive\r\nConnection: close\r\n\r\n"),
		  "HTTP/1.1 close" },
		{ "only the whole word closes", TEXT(POST "Connection: closed, xclose\r\n\r\n"), "HTTP/1.1 keep-alive" },
		{ "1.0 closes", TEXT("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0 close" },
		{ "1.0 keeps when asked", TEXT("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), "HTTP/1.0 keep-alive" },
		{ "close wins in 1.0", TEXT("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), "HTTP/1.0 close" },
		{ "expects, with a length", TEXT(POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n"), "length 1 expect\n" },
		{ "expects, with chunks", TEXT(POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"),
		  "chunked expect\n" },
		{ "expects, without a body", TEXT(POST "Expect: 100-continue\r\n\r\n"), "length 0\n" },
		{ "1.0 knows no Expect", TEXT("POST / HTTP/1.0\r\nExpect: money\r\nContent-Length: 1\r\n\r\n"), "length 1\n" },
	};

	check_rows(rows, COUNT(rows));
}

/* A text of n times c between two others. */
static struct slice
padded(struct buf *b, const char *before, char c, size_t n, const char *after)
{
	buf_clear(b);
	buf_puts(b, before);
	for (size_t i = 0; i < n; i++)
		buf_putc(b, c);
	buf_puts(b, after);
	CHECK(!b->failed);
	return buf_slice(b);
}

TEST(limits_hold_to_the_byte)
{
	static const char field[] = "GET / HTTP/1.1\r\n" HOST "X: ";
	static const struct {
		const char *label, *before, *after;
		size_t n;
		const char *want;
	} cases[] = {
		{ "the longest target", "GET /", " HTTP/1.1\r\n" HOST "\r\n", 39, "end\nmore" },
		{ "a longer target", "GET /", " HTTP/1.1\r\n" HOST "\r\n", 40, "refused 414 target_too_long" },
		{ "a target without end", "GET /", "", 500, "refused 414 target_too_long" },
		{ "a method without end", "", "", 201, "refused 414 target_too_long" },
		{ "a method of the whole limit", "", "", 200, "more" },
		{ "the longest head", field, "\r\n\r\n", 200 - (sizeof field - 1) - 4, "end\nmore" },
		{ "a longer head", field, "\r\n\r\n", 200 - (sizeof field - 1) - 3, "refused 431 head_too_large" },
		{ "a head without end", field, "", 500, "refused 431 head_too_large" },
		{ "the longest extension", CHUNKED "1;", "\r\na\r\n0\r\n\r\n", 199, "= a\nend\nmore" },
		{ "a longer extension", CHUNKED "1;", "\r\na\r\n0\r\n\r\n", 200, "refused 400 chunk_extension" },
		{ "extensions in sum", CHUNKED "1;", "\r\na\r\n0;\r\n\r\n", 199, "refused 400 chunk_extension" },
		{ "a longer chunk line", CHUNKED "1;", "\r\na\r\n0\r\n\r\n", 256, "refused 400 chunk_extension" },
		{ "a chunk size without end", CHUNKED, "", 500, "refused 400 chunk_extension" },
		{ "a trailer", CHUNKED "0\r\nX:", "\r\n\r\n", 198, "end\nmore" },
		{ "a longer trailer", CHUNKED "0\r\nX:", "\r\n\r\n", 199, "refused 431 trailers_too_large" },
		{ "a trailer without end", CHUNKED "0\r\nX:", "", 500, "refused 431 trailers_too_large" },
		{ "the largest chunk", CHUNKED "3e8\r\n", "\r\n0\r\n\r\n", 1000, "\nend\nmore" },
	};
	struct buf b;

	buf_init(&b, SIZE_MAX);
	EACH(i, cases)
		check_trace(&small,
			    padded(&b, cases[i].before, '0', cases[i].n, cases[i].after),
			    cases[i].want, cases[i].label);
	buf_release(&b);
}

TEST(the_number_of_fields_is_limited)
{
	check_trace(&small, SLICE(POST "A:\r\nB:\r\nC:\r\n\r\n"), "end\nmore", "four");
	check_trace(&small, SLICE(POST "A:\r\nB:\r\nC:\r\nD:\r\n\r\n"),
		    "refused 431 too_many_headers", "five");
}

/* Fault 26. */
TEST(a_body_is_refused_before_it_is_read)
{
	check_trace(&small, SLICE(POST "Content-Length: 1001\r\n\r\nabc"),
		    "refused 413 body_too_large", "a length over the limit");
	check_trace(&small, SLICE(CHUNKED "3e9\r\nabc"), "\nrefused 413 body_too_large",
		    "a chunk over the limit");
	check_trace(&small, SLICE(CHUNKED "1\r\na\r\n3e8\r\nb"),
		    "= a\nrefused 413 body_too_large", "chunks over the limit together");
}

/* Fault 26: memory stays flat and the end comes. */
TEST(endless_chunks_end_at_the_limit)
{
	static const char chunk[] = "1;ext=1\r\nx\r\n";
	struct slice in = SLICE(CHUNKED), body;
	struct request r;
	size_t bytes = 0, fairqueue = 0, memory;

	CHECK_EQ(0, request_init(&r, &request_limits_default));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	CHECK_EQ(REQUEST_MORE, request_next(&r, &in, &body));
	memory = r.head.size;
	for (;; fairqueue++) {
		enum request_event e;

		in = SLICE(chunk);
		while ((e = request_next(&r, &in, &body)) == REQUEST_BODY)
			bytes += body.n;
		if (e == REQUEST_REFUSED)
			break;
	}
	CHECK_EQ(16 * 1024 / 6, fairqueue, "extensions are limited in sum");
	CHECK_EQ(fairqueue, bytes);
	CHECK_EQ(memory, r.head.size);
	CHECK_STR("chunk_extension", request_refusal(&r)->reason);
	request_release(&r);
}

TEST(a_route_can_allow_less_than_the_limits)
{
	static const struct {
		const char *label, *in;
		enum request_event next;
	} cases[] = {
		{ "a length that fits", POST "Content-Length: 10\r\n\r\n0123456789", REQUEST_BODY },
		{ "a length that does not", POST "Content-Length: 11\r\n\r\n0123456789a", REQUEST_REFUSED },
		{ "a chunk that fits", CHUNKED "a\r\n0123456789\r\n", REQUEST_BODY },
		{ "a chunk that does not", CHUNKED "b\r\n0123456789a\r\n", REQUEST_REFUSED },
	};

	EACH(i, cases) {
		struct slice in = slice_of(cases[i].in), body;
		struct request r;

		CHECK_EQ(0, request_init(&r, &request_limits_default));
		CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
		request_limit_body(&r, 10);
		CHECK_EQ(cases[i].next, request_next(&r, &in, &body));
		request_release(&r);
	}
}

TEST(a_body_is_passed_on_where_it_lies)
{
	static const char all[] = POST "Content-Length: 1000000000\r\n\r\nabc";
	struct slice in = SLICE(all), body;
	struct request r;

	CHECK_EQ(0, request_init(&r, &request_limits_default));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	CHECK_EQ(1000000000, r.length);
	CHECK_EQ(REQUEST_BODY, request_next(&r, &in, &body));
	CHECK(body.p == all + sizeof all - 4 && body.n == 3);
	CHECK_EQ(REQUEST_MORE, request_next(&r, &in, &body));
	request_release(&r);
}

TEST(the_head_stays_where_it_is_until_the_request_ends)
{
	struct slice in = SLICE(CHUNKED), body, method;
	struct request r;

	CHECK_EQ(0, request_init(&r, &request_limits_default));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	method = r.method;
	in = SLICE("1;0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
		   "a\r\n0\r\nT: 0123456789012345678901234567890123456789012345678901234567890\r\n\r\n");
	CHECK_EQ(REQUEST_BODY, request_next(&r, &in, &body));
	CHECK_EQ(REQUEST_END, request_next(&r, &in, &body));
	CHECK(method.p == r.method.p && slice_eq(SLICE("POST"), method));
	CHECK(slice_eq(SLICE("h"), request_header(&r, "host")));
	CHECK(request_header(&r, "t").p == NULL);
	request_release(&r);
}

TEST(a_large_heads_memory_goes_back)
{
	struct slice in, body;
	struct request r;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	in = padded(&b, POST "X: ", 'x', 10000, "\r\n\r\n");
	CHECK_EQ(0, request_init(&r, &request_limits_default));
	CHECK_EQ(REQUEST_HEAD, request_next(&r, &in, &body));
	CHECK_EQ(10000, request_header(&r, "x").n);
	CHECK_EQ(REQUEST_END, request_next(&r, &in, &body));
	CHECK_EQ(REQUEST_MORE, request_next(&r, &in, &body));
	CHECK_EQ(0, r.head.size);
	request_release(&r);
	buf_release(&b);
}

TEST(a_refusal_is_for_ever)
{
	struct slice in = SLICE("BAD\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), body;
	struct request r;

	CHECK_EQ(0, request_init(&r, &request_limits_default));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(REQUEST_REFUSED, request_next(&r, &in, &body));
	CHECK_EQ(400, request_refusal(&r)->status);
	request_release(&r);
}

TORTURE(without_memory_a_request_is_refused_with_503)
{
	struct slice in = SLICE(CHUNKED "1\r\na\r\n0\r\n\r\n"), body;
	enum request_event e = REQUEST_MORE;
	struct request r;

	if (request_init(&r, &request_limits_default) == 0) {
		while (e != REQUEST_END && e != REQUEST_REFUSED)
			e = request_next(&r, &in, &body);
		if (e == REQUEST_REFUSED)
			CHECK_EQ(503, request_refusal(&r)->status);
		/* A head that cannot be kept is parsed again when it comes again. */
		CHECK(!mem_failed() || e == REQUEST_REFUSED || r.sent.n == 0);
	}
	request_release(&r);
}

/* The classes once more, as the RFCs list them. */
TEST(the_table_of_characters_says_what_the_rfcs_say)
{
	static const char alnum[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (int c = 1; c < 256; c++) {
		const bool an = strchr(alnum, c);

		CHECK_EQ(an || strchr("!#$%&'*+-.^_`|~", c), http_is((char)c, CHAR_TOKEN));
		CHECK_EQ(an || strchr("-._~%!$&'()*+,;=:@/?", c),
			 http_is((char)c, CHAR_TARGET));
		CHECK_EQ(an || strchr("-._~%!$&'()*+;=:[]", c), http_is((char)c, CHAR_HOST));
		CHECK_EQ(c == '\t' || (c >= ' ' && c != 127), http_is((char)c, CHAR_VALUE));
		CHECK_EQ(c >= 'A' && c <= 'Z' ? c + 32 : c, (unsigned char)http_small((char)c));
	}
	CHECK_EQ(0, http_chars[0], "NUL stands nowhere");
}
