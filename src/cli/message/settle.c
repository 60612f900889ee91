/*
 * settle.c - `sluice ack`, `nack` and `extend`: settle messages by receipt or id.
 */
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"

#include "base/id.h"
#include "base/json/json.h"
#include "base/receipt.h"

struct settle {
	struct session s;
	enum slu_settle_verb verb;
	struct slu_settle item;
	const char *queue;
};

/* Prints the outcome as the server's API has it. */
static void
print_outcome(const struct settle *t)
{
	char uid[ID_UUID_TEXT];
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_u64(w, "id", t->item.id);
	json_out_str(w, "uid", slice_of(id_to_uuid(t->item.id, uid)));
	json_out_u64(w, "status", 200);
	if (t->verb == SLU_NACK)
		json_out_bool(w, "dead", t->item.died);
	if (t->item.at)
		json_out_time(w, t->verb == SLU_NACK ? "deliver_after" : "lease_expires_at",
			      t->item.at);
	json_line_end(&l, stdout);
}

/* Reads an id or a receipt. Returns false if the word is neither. */
static bool
take_word(struct settle *t, const char *word)
{
	char room[RECEIPT_TEXT];
	struct receipt r;

	t->item.receipt = NULL;
	if (id_parse(slice_of(word), &t->item.id, NULL) == 0)
		return true;
	t->item.receipt = word;
	return receipt_parse(slice_of(word), room, &r, NULL) == 0;
}

static int
settle(struct session *s, const char *word, struct slu_err *err)
{
	struct settle *const t = (struct settle *)s;
	int rc;

	if (!take_word(t, word))
		return session_usage(s, "invalid message: \"%s\"; expected a receipt, an id or a UUID", word);
	if (t->item.receipt && (t->queue || t->item.lease_id || t->item.fencing_token))
		return session_usage(s, "--queue, --lease-id and --token need an id; a receipt contains them");
	t->item.struct_size = sizeof t->item;
	rc = slu_client_settle(s->client, t->verb, t->queue, &t->item, 1, NULL, err);
	if (rc == SLU_EROUNDED && strchr(word, '-')) /* a UUID is never rounded */
		rc = slu_fail(err, SLU_ENOTFOUND, "%s: no such message here; perhaps it was finished before", word);
	if (!rc && s->json)
		print_outcome(t);
	return rc;
}

/* clang-format off */
#define LEASE_ROWS \
	{ "--queue QUEUE", ARG_TEXT, AT(settle, queue), "queue of the message (any)" }, \
	{ "--lease-id ID", ARG_TEXT, AT(settle, item.lease_id), "only if this lease holds" }, \
	{ "--token", ARG_NUMBER, AT(settle, item.fencing_token), "only if this fencing token holds" }
#define RELEASE_ROW \
	{ "--release JSON", ARG_TEXT, AT(settle, item.release), "lock that is released in the same step: key, lease_id, txn_id, state" }
/* clang-format on */

static bool
is_json(struct settle *t, const char *option, const char *text)
{
	struct slu_err why;
	struct json r;

	if (!text)
		return true;
	json_init(&r, slice_of(text), JSON_DEPTH);
	if (json_end(&r, &why) == 0)
		return true;
	session_usage(&t->s, "invalid %s: %s; expected JSON; a text needs quotes: '\"done\"'", option, why.text);
	return false;
}

static int
ack(struct session *s, struct slu_err *err)
{
	struct settle *const t = (void *)s;

	if (!is_json(t, "--result", t->item.result) || !is_json(t, "--release", t->item.release))
		return 0;
	return session_each(&t->s, settle, err);
}

const struct command cli_ack = {
	.name = "ack",
	.group = "Messages",
	.summary = "finish messages",
	.usage = "RECEIPT|ID... [options]",
	.text = "Finishes messages: the server deletes them. With a receipt, or an id with a lease or\n"
		"token, the lease must hold; an id alone finishes a message under any lease. Exits 3\n"
		"if the message does not exist (or was acked before).\n",
	.examples = "  sluice ack \"$receipt\"\n"
		    "  sluice ack \"$receipt\" --result '{\"ok\":true}'\n"
		    "  sluice ack 318497266802130945 --lease-id l-17\n"
		    "  sluice ack \"$receipt\" --release \"{\\\"key\\\":\\\"stock/42\\\",$lock,\\\"state\\\":{\\\"kg\\\":3}}\"\n",
	.options = CLI_QUEUE,
	CLI_ARGS(LEASE_ROWS,
		 { "--result JSON", ARG_TEXT, AT(settle, item.result), "result, stored if the message was pushed with --keep-result" },
		 RELEASE_ROW),
	CLI_STATE(struct settle, .verb = SLU_ACK),
	.run = ack,
};

static int
nack(struct session *s, struct slu_err *err)
{
	struct settle *const t = (void *)s;

	if (t->item.scope && !t->item.retry_after)
		return session_usage(&t->s, "--scope needs --retry-after");
	if (t->item.defer && t->item.dead)
		return session_usage(&t->s, "--defer and --dead exclude each other");
	if (!is_json(t, "--release", t->item.release))
		return 0;
	t->item.at_once = t->item.time == 0;
	t->item.time = t->item.time > 0 ? t->item.time : 0; /* -1 = not given */
	return session_each(&t->s, settle, err);
}

const struct command cli_nack = {
	.name = "nack",
	.group = "Messages",
	.summary = "return messages: failed, or deferred",
	.usage = "RECEIPT|ID... [options]",
	.text = "Returns messages whose work failed: the server delivers them again later, or makes\n"
		"them dead letters if they failed too often.\n",
	.examples = "  sluice nack \"$receipt\" --error 'no carrier'\n"
		    "  sluice nack \"$receipt\" --delay 10m\n"
		    "  sluice nack \"$receipt\" --defer --delay 1h\n"
		    "  sluice nack \"$receipt\" --retry-after 30s --scope share\n"
		    "  sluice nack 318497266802130945 --dead --error 'no such customer'\n",
	.options = CLI_QUEUE,
	CLI_ARGS(LEASE_ROWS,
		 { "--error TEXT", ARG_TEXT, AT(settle, item.error), "reason" },
		 { "-d, --delay", ARG_TIME, AT(settle, item.time), "deliver again after this time (the queue's)" },
		 { "--defer", ARG_FLAG, AT(settle, item.defer), "deliver later without counting a failure" },
		 { "--dead", ARG_FLAG, AT(settle, item.dead), "make the message a dead letter" },
		 { "--retry-after", ARG_TIME, AT(settle, item.retry_after), "deliver later, and with --scope hold others back, too" },
		 { "-p, --priority high|normal|low|N", ARG_TEXT, AT(settle, item.priority), "another priority of the message" },
		 { "--scope key|share|attribute|queue", ARG_TEXT, AT(settle, item.scope), "what to hold back for --retry-after (the message)" },
		 { "--reason BREAKER", ARG_TEXT, AT(settle, item.reason), "count the failure for this breaker of the queue" },
		 RELEASE_ROW),
	CLI_STATE(struct settle, .verb = SLU_NACK, .item.time = -1),
	.run = nack,
};

static int
extend(struct session *s, struct slu_err *err)
{
	struct settle *const t = (void *)s;

	return is_json(t, "--checkpoint", t->item.checkpoint) ? session_each(&t->s, settle, err) : 0;
}

const struct command cli_extend = {
	.name = "extend",
	.group = "Messages",
	.summary = "extend the lease of messages",
	.usage = "RECEIPT|ID... [options]",
	.text = "Extends the leases of messages: each lasts --lease from now. A checkpoint says how far the\n"
		"work has come: the next holder of the message gets the last one.\n",
	.examples = "  sluice extend \"$receipt\" --lease 5m\n"
		    "  sluice extend \"$receipt\" --checkpoint '{\"row\":250000}'\n"
		    "  sluice extend 318497266802130945 --lease-id l-17 --lease 5m\n",
	.options = CLI_QUEUE,
	CLI_ARGS(LEASE_ROWS,
		 { "--lease", ARG_TIME, AT(settle, item.time), "length of the lease from now (the queue's)" },
		 { "--checkpoint JSON", ARG_TEXT, AT(settle, item.checkpoint), "how far the work has come, for the next holder" }),
	CLI_STATE(struct settle, .verb = SLU_EXTEND),
	.run = extend,
};
