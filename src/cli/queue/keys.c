/*
 * keys.c - `sluice queue keys`: the ordering keys of a queue, the deepest first, and what holds them.
 *
 * The server lists the keys of a page of messages at a time. Keys with one name on several pages are one key.
 */
#include "cli/lib/rows.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LOOK = 100000, /* messages, by default */
	SHOW = 100     /* keys, by default */
};

struct keys_command {
	struct session session;
	uint64_t look, limit;
};

/* A key as the server writes it; texts are copies. */
struct key_row {
	char key[260], front[40], front_state[16], owner[136];
	slu_time oldest_at, until;
	uint64_t messages, ready, delayed, leased, held, dead;
};

struct key_rows {
	struct key_row *all;
	uint32_t n, room;
};

/* Of one page. */
struct key_page {
	uint64_t looked, of;
	char cursor[32];
};

static const struct json_field fields[] = {
	JSON_FIELD(chars, struct key_row, key),
	JSON_FIELD(chars, struct key_row, front),
	JSON_FIELD(chars, struct key_row, front_state),
	JSON_FIELD(chars, struct key_row, owner),
	JSON_FIELD(time, struct key_row, oldest_at),
	JSON_FIELD(time, struct key_row, until),
	JSON_FIELD(u64, struct key_row, messages),
	JSON_FIELD(u64, struct key_row, ready),
	JSON_FIELD(u64, struct key_row, delayed),
	JSON_FIELD(u64, struct key_row, leased),
	JSON_FIELD(u64, struct key_row, held),
	JSON_FIELD(u64, struct key_row, dead),
};

static const struct column columns[] = {
	{ "messages", "MESSAGES", COLUMN_NUMBER },
	{ "held", "HELD", COLUMN_NUMBER },
	{ "key", "KEY", COLUMN_TEXT },
	{ "front_state", "FRONT", COLUMN_MAYBE },
	{ "owner", "WORKER", COLUMN_MAYBE },
	{ "until", "UNTIL", COLUMN_TIME },
	{ "oldest_at", "OLDEST", COLUMN_TIME },
	{ "front", "MESSAGE", COLUMN_MAYBE },
};

static const struct rows_list keys = { .member = "keys", ROWS_COLUMNS(columns) };

/* --- reading -------------------------------------------------------------------- */

static void
merge(struct key_row *into, const struct key_row *k)
{
	into->messages += k->messages;
	into->ready += k->ready;
	into->delayed += k->delayed;
	into->leased += k->leased;
	into->held += k->held;
	into->dead += k->dead;
	if (k->oldest_at && (!into->oldest_at || k->oldest_at < into->oldest_at))
		into->oldest_at = k->oldest_at;
	if (!k->front[0])
		return;
	memcpy(into->front, k->front, sizeof into->front);
	memcpy(into->front_state, k->front_state, sizeof into->front_state);
	memcpy(into->owner, k->owner, sizeof into->owner);
	into->until = k->until;
}

static int
add(struct key_rows *found, struct json *in, struct slu_err *err)
{
	struct key_row k = { 0 };

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &k);
	if (!mem_room(&found->all, &found->room, found->n + 1, sizeof *found->all))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	found->all[found->n++] = k;
	return 0;
}

static int
read_page(struct slice body, struct key_page *page, struct key_rows *found, struct slu_err *err)
{
	struct json_str name;
	struct json in;
	int rc = 0;

	page->cursor[0] = '\0';
	json_init(&in, body, JSON_DEPTH);
	json_object(&in);
	while (!rc && json_member(&in, &name)) {
		if (json_str_is(&name, SLICE("keys"))) {
			json_array(&in);
			while (!rc && json_element(&in))
				rc = add(found, &in, err);
		} else if (json_str_is(&name, SLICE("looked"))) {
			page->looked += json_u64(&in, 0, UINT64_MAX);
		} else if (json_str_is(&name, SLICE("of"))) {
			page->of = json_u64(&in, 0, UINT64_MAX);
		} else if (json_str_is(&name, SLICE("cursor"))) {
			const struct slice c = json_text(&in);

			(void)snprintf(page->cursor, sizeof page->cursor, "%.*s", (int)c.n, c.p);
		} else {
			json_skip(&in);
		}
	}
	return rc ? rc : json_end(&in, err) ? SLU_EUNKNOWN
					    : 0;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct key_row *)a)->key, ((const struct key_row *)b)->key);
}

static int
deepest_first(const void *a, const void *b)
{
	const struct key_row *const x = a, *const y = b;

	return (x->messages < y->messages) - (x->messages > y->messages);
}

/* Keys with one name become one. */
static void
join(struct key_rows *found)
{
	uint32_t n = 0;

	if (found->n == 0)
		return;
	qsort(found->all, found->n, sizeof *found->all, by_key);
	for (uint32_t i = 1; i < found->n; i++)
		if (strcmp(found->all[n].key, found->all[i].key) == 0)
			merge(&found->all[n], &found->all[i]);
		else
			found->all[++n] = found->all[i];
	found->n = n + 1;
	qsort(found->all, found->n, sizeof *found->all, deepest_first);
}

/* --- printing ------------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct key_row *k)
{
	json_out_object(w, NULL);
	json_out_str(w, "key", slice_of(k->key));
	json_out_u64(w, "messages", k->messages);
	json_out_u64(w, "ready", k->ready);
	json_out_u64(w, "delayed", k->delayed);
	json_out_u64(w, "leased", k->leased);
	json_out_u64(w, "held", k->held);
	json_out_u64(w, "dead", k->dead);
	if (k->oldest_at)
		json_out_time(w, "oldest_at", k->oldest_at);
	if (k->front[0]) {
		json_out_str(w, "front", slice_of(k->front));
		json_out_str(w, "front_state", slice_of(k->front_state));
	}
	if (k->owner[0])
		json_out_str(w, "owner", slice_of(k->owner));
	if (k->until)
		json_out_time(w, "until", k->until);
	json_out_close(w);
}

static int
print(struct keys_command *c, const struct key_rows *found, struct slu_err *err)
{
	struct json_out w;
	struct buf text;
	int rc;

	buf_init(&text, 64 << 20);
	json_out_open(&w, &text);
	json_out_array(&w, "keys");
	for (uint32_t i = 0; i < found->n && i < c->limit; i++)
		write_row(&w, &found->all[i]);
	json_out_close(&w);
	json_out_finish(&w);
	rc = text.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : rows_print(&c->session, &keys, buf_slice(&text), err);
	buf_release(&text);
	return rc;
}

static int
look(struct keys_command *c, struct key_page *page, struct key_rows *found, struct slu_err *err)
{
	struct session *const s = &c->session;
	struct slice body;
	int rc;

	do {
		query_queue(&s->query, "/v1/admin/keys", s->space, s->words[0]);
		http_param(&s->query.path, "cursor", page->cursor[0] ? page->cursor : NULL);
		rc = query_get(&s->query, &body, err);
		if (!rc)
			rc = read_page(body, page, found, err);
	} while (!rc && page->cursor[0] && page->looked < c->look);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct keys_command *const c = (void *)s;
	struct key_rows found = { 0 };
	struct key_page page = { 0 };
	int rc = look(c, &page, &found, err);

	join(&found);
	if (!rc && page.cursor[0])
		session_note(s, "looked at %" PRIu64 " of %" PRIu64 " messages; --look N looks at more", page.looked, page.of);
	if (!rc && found.n == 0)
		session_nothing(s, "no message with a key in %s", s->words[0]);
	else if (!rc)
		rc = print(c, &found, err);
	mem_free(found.all);
	return rc;
}

const struct command cli_queue_keys = {
	.name = "queue keys",
	.summary = "ordering keys: how deep they are, and what holds them",
	.usage = "QUEUE [options]",
	.text = "The keys of the messages of a queue, those with the most messages first. FRONT is the state\n"
		"of the message that the others of its key wait for; WORKER has it until its lease ends.\n"
		"Exits 3 if no message has a key.\n",
	.examples = "  sluice queue keys jobs\n"
		    "  sluice queue keys jobs --json | jq -r 'select(.held > 100) | .key'\n",
	.options = CLI_QUEUE,
	CLI_STATE(struct keys_command, .look = LOOK, .limit = SHOW),
	CLI_ARGS({ "-l, --limit", ARG_COUNT, AT(keys_command, limit), "how many keys to show (100)" },
		 { "--look", ARG_COUNT, AT(keys_command, look), "how many messages to look at (100000)" }),
	.run = run,
};
