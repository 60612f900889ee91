/*
 * queue_delete.c - `sluice queue delete`.
 */
#include "cli/progress.h"
#include "cli/session.h"

#include "base/json_table.h"

#include <inttypes.h>
#include <stdlib.h>

static int
drop(struct session *s, const char *queue, bool force, struct slu_err *err)
{
	static const struct json_field fields[] = {
		{ .name = { "messages", 8 }, .read = json_read_u64, .size = sizeof(uint64_t) },
	};
	struct slice answer;
	uint64_t n = 0;
	char path[1024];
	struct json r;
	int rc;

	if (snprintf(path, sizeof path, "/v1/admin/queues/%s/%s", s->space, queue) >=
	    (int)sizeof path)
		return slu_fail(err, SLU_EINVAL, "invalid queue name; expected at most 128 bytes");
	query_path(&s->query, path);
	query_param(&s->query, "force", force ? "true" : NULL);
	rc = query_delete(&s->query, &answer, err);
	if (rc)
		return rc;
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &n);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	if (s->json)
		query_print(answer);
	else if (force)
		printf("%s deleted, with %" PRIu64 " messages\n", queue, n);
	else
		printf("%s deleted\n", queue);
	return 0;
}

/* A name that would lead the path elsewhere is no name. */
static bool
is_name(const char *text)
{
	return *text && !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789._-")];
}

int
cli_queue_delete(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue delete QUEUE... [options]",
		.text = "Delete queues with their knobs, remembered idempotency keys and results. A queue\n"
			"that holds messages is refused; --force deletes them first, leased ones and dead\n"
			"letters too. They cannot be had back.\n",
		.examples = "  sluice queue delete old-mail\n  sluice queue delete test --force --yes\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct session s = SESSION("queue delete");
	bool force = false, yes = false;
	const struct arg args[] = {
		{ "--force", ARG_FLAG, &force, "with all messages, in whatever state they are" },
		{ "-y, --yes", ARG_FLAG, &yes, "do not ask" },
		SESSION_ROWS(&s),
	};
	struct slu_err err;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	for (int i = 0; i < argc; i++) {
		if (!is_name(argv[i]))
			session_usage(&s, "invalid queue name \"%s\"; expected letters, digits, . _ -", argv[i]);
		else if (force && !confirm(&s, yes, "delete queue %s in namespace %s with all its messages", argv[i], s.space))
			break;
		else if (drop(&s, argv[i], force, &err))
			session_fail(&s, &err);
	}
	return session_end(&s);
}
