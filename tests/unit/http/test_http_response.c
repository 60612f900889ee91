#include "test.h"

#include "base/mem.h"
#include "http/response.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

/* What response_begin looks at. */
static struct request
asked(const char *method, unsigned minor, bool keep_alive)
{
	return (struct request){
		.method = slice_of(method),
		.minor = minor,
		.keep_alive = keep_alive,
	};
}

/* Writes a whole answer. */
static void
answer_whole(struct response *w, unsigned status, const char *date, struct slice body)
{
	response_status(w, status, date);
	CHECK_EQ(0, response_header(w, "Content-Type", SLICE("text/plain")));
	response_length(w, body.n);
	response_body(w, body.p, body.n);
	response_end(w);
}

TEST(a_date_is_that_of_its_second)
{
	static const struct {
		const char *label;
		slu_time now;
		const char *want;
	} cases[] = {
		{ "the RFC's own", 784111777 * SLU_SEC, DATE },
		{ "the beginning", 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ "before it", -1, "Wed, 31 Dec 1969 23:59:59 GMT" },
		{ "the end of a second", 784111777 * SLU_SEC + SLU_SEC - 1, DATE },
		{ "a leap day", 1709208000 * SLU_SEC, "Thu, 29 Feb 2024 12:00:00 GMT" },
		{ "after 2038", 2147483648 * SLU_SEC, "Tue, 19 Jan 2038 03:14:08 GMT" },
		{ "the last", INT64_MAX, "Fri, 11 Apr 2262 23:47:16 GMT" },
	};
	struct http_date fresh, kept = { 0 };

	EACH(i, cases) {
		fresh = (struct http_date){ 0 };
		CHECK_STR(cases[i].want, http_date(&fresh, cases[i].now));
		CHECK_STR(cases[i].want, http_date(&kept, cases[i].now));
	}
}

TEST(a_date_is_made_once_a_second)
{
	struct http_date d = { 0 };

	(void)http_date(&d, 784111777 * SLU_SEC); /* fills d */
	d.text[0] = 's';
	CHECK_STR("sun, 06 Nov 1994 08:49:37 GMT", http_date(&d, 784111777 * SLU_SEC + SLU_MS));
	CHECK_STR("Sun, 06 Nov 1994 08:49:38 GMT", http_date(&d, 784111778 * SLU_SEC));
}

TEST(an_answer_fits_the_request_and_the_status)
{
	static const struct {
		const char *label, *method;
		unsigned minor;
		bool keep_alive, chunked;
		unsigned status;
		const char *want;
	} cases[] = {
		{ "GET", "GET", 1, true, false, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 5\r\n\r\nhello" },
		{ "HEAD", "HEAD", 1, true, false, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 5\r\n\r\n" },
		{ "not quite HEAD", "head", 1, true, false, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 5\r\n\r\nhello" },
		{ "the last", "GET", 1, false, false, 404,
		  "HTTP/1.1 404 Not Found\r\nDate: " DATE "\r\nContent-Length: 5\r\n"
		  "Connection: close\r\n\r\nhello" },
		{ "1.0", "GET", 0, false, false, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 5\r\n"
		  "Connection: close\r\n\r\nhello" },
		{ "1.0 that stays", "GET", 0, true, false, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 5\r\n"
		  "Connection: keep-alive\r\n\r\nhello" },
		{ "204", "POST", 1, true, false, 204,
		  "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\n\r\n" },
		{ "204, chunked", "POST", 1, true, true, 204,
		  "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\n\r\n" },
		{ "304", "GET", 1, true, false, 304,
		  "HTTP/1.1 304 Not Modified\r\nDate: " DATE "\r\n\r\n" },
		{ "chunked", "GET", 1, true, true, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "5\r\nhello\r\n0\r\n\r\n" },
		{ "chunked for HEAD", "HEAD", 1, true, true, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nTransfer-Encoding: chunked\r\n\r\n" },
		{ "1.0 has no chunks", "GET", 0, true, true, 200,
		  "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nConnection: close\r\n\r\nhello" },
		{ "a status without words", "GET", 1, true, false, 299,
		  "HTTP/1.1 299 Unknown\r\nDate: " DATE "\r\nContent-Length: 5\r\n\r\nhello" },
	};
	struct buf out;

	buf_init(&out, SIZE_MAX);
	EACH(i, cases) {
		const struct request r = asked(cases[i].method, cases[i].minor,
					       cases[i].keep_alive);
		struct response w;

		buf_clear(&out);
		response_begin(&w, &out, &r);
		response_status(&w, cases[i].status, DATE);
		if (cases[i].chunked)
			response_chunked(&w);
		else
			response_length(&w, 5);
		response_body(&w, "hello", 5);
		response_body(&w, NULL, 0);
		response_end(&w);
		CHECK_STR(cases[i].want, buf_str(&out));
		CHECK_EQ(strstr(cases[i].want, "close") == NULL, w.keep_alive);
	}
	buf_release(&out);
}

/* Fault 31. */
TEST(nothing_from_outside_can_split_an_answer)
{
	static const struct {
		const char *label, *name, *value;
		size_t n;
		int want;
	} cases[] = {
		{ "plain", "X-A", "b c", 3, 0 },
		{ "empty", "X-A", "", 0, 0 },
		{ "tab and umlaut", "X-A", "\t\xc3\xbc", 3, 0 },
		{ "CRLF", "X-A", "b\r\nSet-Cookie: x", 16, SLU_EINVAL },
		{ "CR", "X-A", "b\r", 2, SLU_EINVAL },
		{ "LF", "X-A", "\nb", 2, SLU_EINVAL },
		{ "NUL", "X-A", "b\0", 2, SLU_EINVAL },
		{ "escape", "X-A", "\x1b", 1, SLU_EINVAL },
		{ "a name with a colon", "X:", "b", 1, SLU_EINVAL },
		{ "a name with CRLF", "X\r\nY", "b", 1, SLU_EINVAL },
		{ "no name", "", "b", 1, SLU_EINVAL },
		{ "length is the writer's", "Content-Length", "1", 1, SLU_EINVAL },
		{ "coding is the writer's", "transfer-encoding", "chunked", 7, SLU_EINVAL },
		{ "connection is the writer's", "CONNECTION", "close", 5, SLU_EINVAL },
		{ "date is the writer's", "date", "today", 5, SLU_EINVAL },
	};
	struct buf out;

	buf_init(&out, SIZE_MAX);
	EACH(i, cases) {
		struct response w;
		size_t before;

		buf_clear(&out);
		response_begin(&w, &out, NULL);
		response_status(&w, 200, NULL);
		before = out.n;
		CHECK_EQ(cases[i].want,
			 response_header(&w, cases[i].name,
					 (struct slice){ cases[i].value, cases[i].n }));
		CHECK_EQ(cases[i].want != 0, out.n == before);
	}
	buf_release(&out);
}

TEST(a_refused_request_is_answered_and_closed)
{
	static const struct request_limits *const limits = &request_limits_default;
	struct slice in = SLICE("HEAD / HTTP/1.1\r\nHost: h\r\n\r\nBAD\r\n"), body;
	struct response w;
	struct request r;
	struct buf out;

	buf_init(&out, SIZE_MAX);
	CHECK_EQ(0, request_init(&r, limits));
	while (request_next(&r, &in, &body) != REQUEST_REFUSED)
		;
	response_begin(&w, &out, &r);
	answer_whole(&w, (unsigned)request_refusal(&r)->status, NULL, slice_of(request_refusal(&r)->reason));
	CHECK_STR("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
		  "Content-Length: 12\r\nConnection: close\r\n\r\nrequest_line",
		  buf_str(&out));
	request_release(&r);
	buf_release(&out);
}

TEST(bytes_can_be_sent_past_the_buffer)
{
	const struct request get = asked("GET", 1, true), head = asked("HEAD", 1, true);
	struct response w;
	struct buf out;

	buf_init(&out, SIZE_MAX);
	response_begin(&w, &out, &get);
	response_status(&w, 200, NULL);
	response_chunked(&w);
	buf_clear(&out);
	CHECK(response_body_begin(&w, UINT64_C(0x1234567890abcdef)));
	CHECK_STR("1234567890abcdef\r\n", buf_str(&out));
	response_body_end(&w);
	response_end(&w);
	CHECK_STR("1234567890abcdef\r\n\r\n0\r\n\r\n", buf_str(&out));

	response_begin(&w, &out, &head);
	response_status(&w, 200, NULL);
	response_length(&w, 1000);
	CHECK(!response_body_begin(&w, 1000));
	response_body_end(&w);
	response_end(&w);
	buf_release(&out);
}

TEST(fields_may_stand_behind_chunks)
{
	static const struct {
		const char *label;
		unsigned minor;
		const char *want;
	} cases[] = {
		{ "chunks", 1, "2\r\nhi\r\n0\r\nX-Sum: 1\r\nX-End: 2\r\n\r\n" },
		{ "an old client", 0, "hi" },
	};

	EACH(i, cases) {
		const struct request get = asked("GET", cases[i].minor, true);
		struct response w;
		struct buf out;

		buf_init(&out, SIZE_MAX);
		response_begin(&w, &out, &get);
		response_status(&w, 200, NULL);
		response_chunked(&w);
		buf_clear(&out);
		response_body(&w, "hi", 2);
		CHECK_EQ(0, response_trailer(&w, "X-Sum", SLICE("1")), cases[i].label);
		CHECK_EQ(0, response_trailer(&w, "X-End", SLICE("2")));
		if (cases[i].minor)
			CHECK_EQ(SLU_EINVAL, response_trailer(&w, "X-Split", SLICE("a\r\nb")));
		response_end(&w);
		CHECK_STR(cases[i].want, buf_str(&out));
		buf_release(&out);
	}
}

TEST(every_refusal_has_words)
{
#define X(name, status, reason) CHECK(strcmp("Unknown", http_reason(status)) != 0);
	REQUEST_REFUSALS(X)
#undef X
	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++)
		CHECK(strcmp("Unknown", http_reason((unsigned)slu_err_row(code)->flat_status)) != 0);
}

/* A promised length that is not kept would make the next answer part of this body. */
TEST(a_length_that_is_not_kept_aborts)
{
	static const struct {
		const char *label;
		size_t n;
		bool aborts;
	} cases[] = {
		{ "kept", 5, false },
		{ "too short", 4, true },
		{ "too long", 6, true },
	};

	EACH(i, cases) {
		const pid_t child = fork();
		int status = 0;

		if (child == 0) {
			struct response w;
			struct buf out;

			(void)close(2); /* assert is not news here */
			buf_init(&out, SIZE_MAX);
			response_begin(&w, &out, NULL);
			response_status(&w, 200, NULL);
			response_length(&w, 5);
			response_body(&w, "hello!", cases[i].n);
			response_end(&w);
			_exit(0);
		}
		CHECK_EQ(child, waitpid(child, &status, 0));
		CHECK_EQ(cases[i].aborts, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

TORTURE(without_memory_an_answer_fails_whole)
{
	const struct request r = asked("GET", 1, true);
	struct response w;
	struct buf out;

	buf_init(&out, SIZE_MAX);
	response_begin(&w, &out, &r);
	answer_whole(&w, 200, DATE, SLICE("hello"));
	CHECK_EQ(mem_failed(), out.failed);
	if (!out.failed)
		CHECK_STR("HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Type: text/plain\r\n"
			  "Content-Length: 5\r\n\r\nhello",
			  buf_str(&out));
	buf_release(&out);
}
