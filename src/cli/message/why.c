/*
 * why.c - `sluice why`: prints why a message is not running now.
 */
#include "cli/lib/session.h"

#include "base/id.h"
#include "base/json/json.h"
#include "base/json/json_table.h"

#include <inttypes.h>

struct why_command {
	struct session s;
	const char *queue;
};

struct why_answer {
	struct slice text, estimate, reasons;
	struct slice rule, batch;
};

struct why_batch {
	uint64_t id, members, done, failed, pending;
	struct slice role, status;
};

struct why_reason {
	struct slice text;
};

/* Prints the text of every reason. */
static int
print_reasons(struct slice reasons, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct why_reason, text, .required = true),
	};
	struct json r;

	json_init(&r, reasons, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct why_reason one = { 0 };

		if (json_fields(&r, fields, COUNT(fields), 0, &one))
			printf("%.*s\n", (int)one.text.n, one.text.p);
	}
	return json_end(&r, NULL) ? slu_fail(err, SLU_EUNKNOWN, "malformed answer to why") : 0;
}

/* "member of batch 17: closed, 5 members, 2 done, 1 failed, 2 to come" */
static void
print_batch(struct slice batch)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(u64, struct why_batch, id, members, done, failed, pending),
		JSON_FIELDS(text, struct why_batch, role, status),
	};
	struct why_batch b = { 0 };

	if (query_read(batch, fields, COUNT(fields), &b, NULL))
		return;
	if (!slice_eq(b.role, SLICE("batch")))
		printf("%.*s of ", (int)b.role.n, b.role.p);
	printf("batch %" PRIu64 ": %.*s, %" PRIu64 " members, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " to come\n", b.id,
	       (int)b.status.n, b.status.p, b.members, b.done, b.failed, b.pending);
}

static int
print(struct slice body, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct why_answer, text, .required = true),
		JSON_FIELD(text, struct why_answer, estimate),
		JSON_FIELD(text, struct why_answer, rule),
		JSON_FIELD(raw, struct why_answer, reasons, .required = true),
		JSON_FIELD(raw, struct why_answer, batch),
	};
	struct why_answer a = { 0 };
	int rc = query_read(body, fields, COUNT(fields), &a, err);

	if (rc)
		return rc;
	if (slice_eq(a.reasons, SLICE("[]")))
		printf("%.*s\n", (int)a.text.n, a.text.p);
	else
		rc = print_reasons(a.reasons, err);
	if (!rc && a.rule.n)
		printf("admitted by the rule: %.*s\n", (int)a.rule.n, a.rule.p);
	if (!rc && a.batch.n)
		print_batch(a.batch);
	if (!rc && a.estimate.n)
		printf("expected at %.*s\n", (int)a.estimate.n, a.estimate.p);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	const struct why_command *const y = (void *)s;
	const char *const id = s->words[0];
	const bool is_receipt = id_parse(slice_of(id), &(uint64_t){ 0 }, NULL) != 0;
	struct cli_query *const q = &s->query;
	struct slice body;
	int rc;

	query_queue(q, "/why", is_receipt ? NULL : s->space, is_receipt ? NULL : y->queue);
	http_param(&q->path, is_receipt ? "receipt" : "id", id);
	rc = query_get(q, &body, err);
	if (rc == SLU_ENOTFOUND)
		return session_nothing(s, "no message %s; it may be finished", id);
	if (rc || !s->json)
		return rc ? rc : print(body, err);
	query_print(body);
	return 0;
}

const struct command cli_why = {
	.name = "why",
	.group = "Messages",
	.summary = "print why a message is not running now",
	.usage = "RECEIPT|ID [options]",
	.text = "Prints the reasons for which a message is not running now, one a line, the reason that\n"
		"counts first, and when the message is expected to run, if that is known. Exits 3 if the\n"
		"message does not exist.\n",
	.examples = "  sluice why 318497266802130945\n"
		    "  sluice why 318497266802130945 --json | jq -r .reason\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--queue QUEUE", ARG_TEXT, AT(why_command, queue), "queue of the message; without it every shard is asked" }),
	.size = sizeof(struct why_command),
	.run = run,
};
