/*
 * settle.c - `sluice ack`, `nack` and `extend`: say what became of a message.
 */
#include "cli/session.h"

#include "base/id.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/receipt.h"

#include <inttypes.h>
#include <stdlib.h>

struct settle {
	struct session s;
	enum slu_settle_verb verb;
	struct slu_settle item;
	const char *queue;
};

/* As the server says it. */
static void
print_outcome(const struct settle *t)
{
	char uid[ID_UUID_TEXT];
	struct json_out w;
	struct buf b;

	buf_init(&b, 1024);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	json_out_u64(&w, "id", t->item.id);
	json_out_str(&w, "uid", slice_of(id_to_uuid(t->item.id, uid)));
	json_out_u64(&w, "status", 200);
	if (t->verb == SLU_NACK)
		json_out_bool(&w, "dead", t->item.died);
	if (t->item.at)
		json_out_time(&w, t->verb == SLU_NACK ? "deliver_after" : "lease_expires_at",
			      t->item.at);
	json_out_close(&w);
	json_out_end(&w);
	printf("%s\n", buf_str(&b));
	buf_release(&b);
}

/* An id or a receipt. False: it is neither. */
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
settle_one(struct settle *t, const char *word)
{
	struct slu_err err;
	int rc;

	if (!take_word(t, word))
		return session_usage(&t->s, "invalid message: \"%s\"; expected a receipt, an id or a UUID", word);
	if (t->item.receipt && (t->queue || t->item.lease_id || t->item.fencing_token))
		return session_usage(&t->s, "--queue, --lease-id and --token go with an id; a receipt has them");
	t->item.struct_size = sizeof t->item;
	rc = slu_client_settle(t->s.client, t->verb, t->queue, &t->item, 1, NULL, &err);
	if (rc == SLU_EROUNDED && strchr(word, '-'))
		(void)slu_fail(&err, SLU_ENOTFOUND, "%s: no such message here; perhaps it was finished before", word); /* a UUID is never rounded */
	if (rc)
		return session_fail(&t->s, &err);
	if (t->s.json)
		print_outcome(t);
	return 0;
}

/* All of them, also when one fails; the exit tells of the last that did. */
static int
settle_all(struct settle *t, int n, char **words)
{
	for (int i = 0; i < n; i++)
		(void)settle_one(t, words[i]); /* t->s.exit remembers */
	return session_end(&t->s);
}

/* clang-format off */
#define LEASE_ROWS(t) \
	{ "--queue QUEUE", ARG_TEXT, &(t)->queue, "the queue it is in (any)" }, \
	{ "--lease-id ID", ARG_TEXT, &(t)->item.lease_id, "only while this lease holds" }, \
	{ "--token", ARG_NUMBER, &(t)->item.fencing_token, "only while this fencing token holds" }
/* clang-format on */

static bool
result_is_json(struct settle *t)
{
	struct slu_err why;
	struct json r;

	if (!t->item.result)
		return true;
	json_init(&r, slice_of(t->item.result), JSON_DEPTH);
	if (json_end(&r, &why) == 0)
		return true;
	session_usage(&t->s, "--result is no JSON: %s; a text needs quotes: '\"done\"'", why.text);
	return false;
}

int
cli_ack(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "ack RECEIPT|ID... [options]",
		.text = "The work is done: the messages are gone. By a receipt, or an id with a lease or\n"
			"token, only while the lease holds; by an id alone, for whoever holds it. Exits 3\n"
			"when there is no such message (or it was acked before).\n",
		.examples = "  sluice ack \"$receipt\"\n"
			    "  sluice ack \"$receipt\" --result '{\"ok\":true}'\n"
			    "  sluice ack 318497266802130945 --lease-id l-17\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct settle t = { .s = SESSION("ack"), .verb = SLU_ACK };
	const struct arg rows[] = {
		LEASE_ROWS(&t),
		{ "--result JSON", ARG_TEXT, &t.item.result, "kept if the producer asked for it" },
		SESSION_ROWS(&t.s),
	};

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	if (!result_is_json(&t))
		return session_end(&t.s);
	return settle_all(&t, argc, argv);
}

int
cli_nack(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "nack RECEIPT|ID... [options]",
		.text = "The work failed: the messages are tried again later, or are dead letters when\n"
			"they failed too often.\n",
		.examples = "  sluice nack \"$receipt\" --error 'no carrier'\n"
			    "  sluice nack \"$receipt\" --delay 10m\n"
			    "  sluice nack \"$receipt\" --defer --delay 1h\n"
			    "  sluice nack 318497266802130945 --dead --error 'no such customer'\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct settle t = { .s = SESSION("nack"), .verb = SLU_NACK, .item.time = -1 };
	const struct arg rows[] = {
		LEASE_ROWS(&t),
		{ "--error TEXT", ARG_TEXT, &t.item.error, "why" },
		{ "-d, --delay", ARG_TIME, &t.item.time, "try again after that time (the queue's)" },
		{ "--defer", ARG_FLAG, &t.item.defer, "no failure, just not now" },
		{ "--dead", ARG_FLAG, &t.item.dead, "never again: a dead letter at once" },
		SESSION_ROWS(&t.s),
	};

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	if (t.item.defer && t.item.dead) {
		session_usage(&t.s, "--defer and --dead: not both");
		return session_end(&t.s);
	}
	t.item.at_once = t.item.time == 0;
	t.item.time = t.item.time > 0 ? t.item.time : 0; /* -1: not given */
	return settle_all(&t, argc, argv);
}

int
cli_extend(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "extend RECEIPT|ID... [options]",
		.text = "Keeps a lease: from now on for as long as --lease says.\n",
		.examples = "  sluice extend \"$receipt\" --lease 5m\n"
			    "  sluice extend 318497266802130945 --lease-id l-17 --lease 5m\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct settle t = { .s = SESSION("extend"), .verb = SLU_EXTEND };
	const struct arg rows[] = {
		LEASE_ROWS(&t),
		{ "--lease", ARG_TIME, &t.item.time, "how long from now (the queue's)" },
		SESSION_ROWS(&t.s),
	};

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	return settle_all(&t, argc, argv);
}
