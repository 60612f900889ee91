/*
 * refusal.c - turns a refusal of either API into a code and a text:
 *
 *      {"error":"lease_lost","message":"..."}        {"error":"lease_expired","detail":"..."}
 */
#include "client/client.h"

#include "base/json/json.h"
#include "base/json/json_table.h"

/* Error names of the lease API that are not in SLU_ERRORS. */
static const struct {
	const char *name;
	enum slu_code code;
	enum refusal_kind kind;
} names[] = {
	{ "already_exists", SLU_EEXISTS, REFUSAL_FINAL },
	{ "cas_mismatch", SLU_ECONFLICT, REFUSAL_FINAL },
	{ "etag_mismatch", SLU_ECONFLICT, REFUSAL_FINAL },
	{ "fencing_mismatch", SLU_ELEASE, REFUSAL_FINAL },
	{ "internal_error", SLU_ECORRUPT, REFUSAL_FINAL },
	{ "invalid_body", SLU_EINVAL, REFUSAL_FINAL },
	{ "lease_conflict", SLU_ELEASE, REFUSAL_FINAL },
	{ "lease_expired", SLU_ELEASE, REFUSAL_FINAL },
	{ "lease_required", SLU_ELEASE, REFUSAL_FINAL },
	{ "namespace_forbidden", SLU_EFORBIDDEN, REFUSAL_FINAL },
	{ "node_passive", SLU_EDOWN, REFUSAL_AWAY },
	{ "payload_too_large", SLU_ETOOBIG, REFUSAL_FINAL },
	{ "queue_busy", SLU_EBUSY, REFUSAL_FINAL },
	{ "queue_message_lease_mismatch", SLU_ELEASE, REFUSAL_FINAL },
	{ "shutdown_draining", SLU_ECLOSED, REFUSAL_AWAY },
	{ "throttled", SLU_EBUSY, REFUSAL_FINAL },
	{ "txn_conflict", SLU_ECONFLICT, REFUSAL_FINAL },
	{ "txn_mismatch", SLU_ELEASE, REFUSAL_FINAL },
	{ "version_conflict", SLU_ECONFLICT, REFUSAL_FINAL },
	{ "waiting", SLU_EBUSY, REFUSAL_WAITING },
};

static const struct {
	unsigned status;
	enum slu_code code;
} statuses[] = {
	{ 400, SLU_EINVAL },
	{ 401, SLU_EAUTH },
	{ 403, SLU_EFORBIDDEN },
	{ 404, SLU_ENOTFOUND },
	{ 408, SLU_ETIMEOUT },
	{ 409, SLU_ECONFLICT },
	{ 413, SLU_ETOOBIG },
	{ 429, SLU_EBUSY },
};

int
refusal_code(struct slice name, unsigned status, enum refusal_kind *kind)
{
	*kind = REFUSAL_FINAL;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (slice_eq(name, slice_of(names[i].name))) {
			*kind = names[i].kind;
			return names[i].code;
		}
	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++) {
		const struct slu_err_row *row = slu_err_row(code);

		if (slice_eq(name, slice_of(row->flat_name))) {
			if (code == SLU_ESTARTING || code == SLU_ECLOSED || code == SLU_EMOVED)
				*kind = REFUSAL_AWAY;
			return code;
		}
	}
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (statuses[i].status == status)
			return statuses[i].code;
	return status >= 500 ? SLU_EDOWN : SLU_EINVAL;
}

/* A hint that the server cannot give. */
static const char *
advice(const struct client_request *a, int code)
{
	const bool has_token = a->client->token != NULL;

	if (code == SLU_EAUTH && has_token)
		return "; the server does not accept the token: use another one";
	if (code == SLU_EAUTH)
		return "; set token to one that `sluice token` made";
	if (code == SLU_EFORBIDDEN && has_token)
		return "; the token does not allow it";
	return "";
}

struct words {
	struct slice error, message, detail;
};

int
refusal_read(const struct client_request *a, enum refusal_kind *kind, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(text, struct words, error, message, detail),
	};
	const struct answer *const answer = &a->link->http.answer;
	struct words why = { 0 };
	struct json r;
	char room[1024];
	struct slice text;
	int code;

	json_init(&r, buf_slice(&answer->body), JSON_DEPTH);
	json_room(&r, room, sizeof room);
	json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &why);
	if (json_end(&r, NULL))
		why = (struct words){ 0 };
	code = refusal_code(why.error, answer->status, kind);
	text = why.message.n ? why.message : why.detail.n ? why.detail
							  : why.error;
	if (text.n == 0)
		slu_fail(err, code, "the server answered with status %u", answer->status);
	else
		slu_fail(err, code, "%.*s%s", (int)text.n, text.p, advice(a, code));
	if (err && answer->retry_after != ANSWER_NO_RETRY)
		err->retry_after = answer->retry_after * SLU_SEC;
	return code;
}
