/*
 * delete.c - `sluice queue delete`: deletes queues.
 */
#include "cli/lib/session.h"

#include <inttypes.h>

struct removal {
	struct session s;
	bool force;
};

static int
drop(struct session *s, const char *queue, bool force, struct slu_err *err)
{
	struct slice answer;
	uint64_t n;
	char path[1024];
	int rc;

	if (snprintf(path, sizeof path, "/v1/admin/queues/%s/%s", s->space, queue) >=
	    (int)sizeof path)
		return slu_fail(err, SLU_EINVAL, "invalid queue name; expected at most 128 bytes");
	query_path(&s->query, path);
	http_param(&s->query.path, "force", force ? "true" : NULL);
	rc = query_delete(&s->query, &answer, err);
	if (!rc)
		rc = query_read_u64(answer, "messages", &n, err);
	if (rc)
		return rc;
	if (s->json)
		query_print(answer);
	else if (force)
		printf("%s deleted, with %" PRIu64 " messages\n", queue, n);
	else
		printf("%s deleted\n", queue);
	return 0;
}

/* Can the text be a name? Other characters could change the path of the request. */
static bool
is_name(const char *text)
{
	return *text && !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789._-")];
}

static int
run(struct session *s, struct slu_err *err)
{
	const bool force = ((struct removal *)s)->force;

	for (int i = 0; i < s->n_words; i++) {
		if (!is_name(s->words[i]))
			session_usage(s, "invalid queue name \"%s\"; expected letters, digits, . _ -", s->words[i]);
		else if (force && !session_confirm(s, "delete queue %s in namespace %s with all its messages", s->words[i], s->space))
			break;
		else if (drop(s, s->words[i], force, err))
			session_fail(s, err);
	}
	return 0;
}

const struct command cli_queue_delete = {
	.name = "queue delete",
	.summary = "delete queues: empty ones, or with --force with all messages",
	.usage = "QUEUE... [options]",
	.text = "Deletes queues with their knobs, idempotency keys and results. The server refuses to\n"
		"delete a queue with messages; --force deletes the messages first, leased ones and dead\n"
		"letters too. A deleted message cannot be restored.\n",
	.examples = "  sluice queue delete old-mail\n  sluice queue delete test --force --yes\n",
	.options = CLI_QUEUE | CLI_YES,
	CLI_ARGS({ "--force", ARG_FLAG, AT(removal, force), "delete all messages too, in any state" }),
	.size = sizeof(struct removal),
	.run = run,
};
