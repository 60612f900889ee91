/*
 * locks.c - `sluice lock list` and `force-release`: the held lock keys of all clients.
 */
#include "cli/lib/rows.h"

#include <inttypes.h>
#include <stdio.h>

static const struct column columns[] = {
	{ "key", "KEY", COLUMN_TEXT },
	{ "holder", "HOLDER", COLUMN_TEXT },
	{ "token", "TOKEN", COLUMN_NUMBER },
	{ "expires_at", "EXPIRES", COLUMN_TIME },
	{ "waiters", "WAITERS", COLUMN_NUMBER },
	{ "version", "VERSION", COLUMN_NUMBER },
};

struct locks_command {
	struct session s;
	uint64_t token;
};

static const struct rows_list locks = {
	"/v1/admin/locks", "locks", ROWS_COLUMNS(columns), .none = "no lock key is held", .may_be_empty = true
};

static int
list(struct session *s, struct slu_err *err)
{
	query_queue(&s->query, locks.path, s->space, NULL);
	http_param(&s->query.path, "prefix", s->n_words ? s->words[0] : NULL);
	return rows_get(s, &locks, err);
}

static int
force_release(struct session *s, struct slu_err *err)
{
	const struct locks_command *const c = (void *)s;
	char token[24];
	const char *const body[] = { "namespace", s->space, "key", s->words[0], "token", token, NULL };
	struct slice answer;
	int rc;

	if (!c->token)
		return session_usage(s, "missing --token N; `sluice lock list` shows it");
	(void)snprintf(token, sizeof token, "%" PRIu64, c->token); /* fits */
	if (!session_confirm(s, "take lock key %s of namespace %s from its holder", s->words[0], s->space))
		return 0;
	rc = session_post(s, "/v1/admin/lock/release", body, &answer, err);
	return rc ? rc : session_print(s, answer, err);
}

const struct command cli_lock_list = {
	.name = "lock list",
	.summary = "list the lock keys that are held",
	.usage = "[PREFIX] [options]",
	.text = "Lists the held lock keys of a namespace: holder, end of the lease, number of waiting clients.\n",
	.examples = "  sluice lock list\n  sluice lock list orders/ --json\n",
	.options = CLI_QUEUE,
	.run = list,
};

const struct command cli_lock_force_release = {
	.name = "lock force-release",
	.summary = "take a lock key from its holder",
	.usage = "KEY --token N [options]",
	.text = "Ends the lease with this token and drops what its holder has staged. The\n"
		"next one that waits gets the key. Refused if another lease has begun since. The holder\n"
		"learns it with its next call: only systems that compare fencing tokens are safe until then.\n",
	.examples = "  sluice lock force-release orders/42 --token 1234\n",
	.options = CLI_QUEUE | CLI_YES,
	CLI_ARGS({ "--token", ARG_COUNT, AT(locks_command, token), "the fencing token, as `sluice lock list` shows it" }),
	.size = sizeof(struct locks_command),
	.run = force_release,
};
