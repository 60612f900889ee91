/*
 * why.c - why a message is not running now: /why.
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/json/json.h"
#include "base/need.h"

#include <inttypes.h>
#include <stdio.h>

static int
read_first(struct slice reasons, struct slu_why_answer *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(chars, struct slu_why_answer, owner),
		JSON_FIELD(time, struct slu_why_answer, until),
		JSON_FIELD(u64, struct slu_why_answer, behind, .max = INT64_MAX),
		JSON_FIELD(u64, struct slu_why_answer, ahead, .max = INT64_MAX),
		JSON_FIELD(bool, struct slu_why_answer, more),
	};
	struct slice first = { 0 };
	struct json r;

	json_init(&r, reasons, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		const struct slice one = json_skip(&r);

		first = first.n ? first : one;
	}
	if (json_end(&r, NULL))
		return slu_fail(err, SLU_EUNKNOWN, "malformed answer to why");
	return first.n ? decode_object(first, fields, sizeof fields / sizeof fields[0], out, "answer to why", err) : 0;
}

struct whole {
	struct slu_why_answer answer;
	struct slice reasons;
};

static int
read_answer(const struct client_request *a, struct slu_why_answer *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_ROW("reason", json_read_chars, struct whole, answer.reason, .required = true),
		JSON_ROW("text", json_read_chars, struct whole, answer.text),
		JSON_ROW("estimate", json_read_time, struct whole, answer.estimate),
		JSON_FIELD(raw, struct whole, reasons, .required = true),
	};
	struct whole w = { 0 };
	int rc = decode_object(client_request_body(a), fields, sizeof fields / sizeof fields[0], &w, "answer to why", err);

	if (!rc)
		rc = read_first(w.reasons, &w.answer, err);
	*out = w.answer;
	return rc;
}

int
slu_client_why(struct slu_client *c, const char *queue, uint64_t id, struct slu_why_answer *out,
	       const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, out, err);

	struct client_request a;
	char text[24];
	int rc;

	*out = (struct slu_why_answer){ .reason = "" };
	client_request_init(&a, c, call, "GET", "/why");
	(void)snprintf(text, sizeof text, "%" PRIu64, id); /* fits */
	http_param(&a.path, "namespace", a.space);
	http_param(&a.path, "queue", queue);
	http_param(&a.path, "id", text);
	rc = client_request_run(&a, err);
	if (!rc)
		rc = read_answer(&a, out, err);
	client_request_release(&a);
	return rc;
}
