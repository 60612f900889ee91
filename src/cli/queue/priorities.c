/*
 * priorities.c - `sluice queue priorities`: how many messages of a queue each priority has.
 *
 * The server counts a page of messages at a time. A priority on several pages is one.
 */
#include "cli/lib/rows.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <stdlib.h>

struct priority_count {
	int64_t priority;
	uint64_t messages, ready, leased;
};

struct priority_counts {
	struct priority_count *all;
	uint32_t n, room;
};

static const struct json_field fields[] = {
	JSON_FIELD(i64, struct priority_count, priority),
	JSON_FIELDS(u64, struct priority_count, messages, ready, leased),
};

static const struct column columns[] = {
	{ "priority", "PRIORITY", COLUMN_NUMBER },
	{ "messages", "MESSAGES", COLUMN_NUMBER },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
};

static const struct rows_list priorities = { .member = "priorities", ROWS_COLUMNS(columns) };

struct page {
	struct slice priorities;
	char cursor[24];
};

static const struct json_field page_fields[] = {
	JSON_FIELD(raw, struct page, priorities),
	JSON_FIELD(chars, struct page, cursor),
};

static int
add(struct priority_counts *s, struct json *in, struct slu_err *err)
{
	struct priority_count p = { 0 };

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &p);
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->all[i].priority != p.priority)
			continue;
		s->all[i].messages += p.messages;
		s->all[i].ready += p.ready;
		s->all[i].leased += p.leased;
		return 0;
	}
	if (!mem_room(&s->all, &s->room, s->n + 1, sizeof *s->all))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	s->all[s->n++] = p;
	return 0;
}

static int
lowest_first(const void *a, const void *b)
{
	const struct priority_count *const x = a, *const y = b;

	return (x->priority > y->priority) - (x->priority < y->priority);
}

static int
print(struct session *s, const struct priority_counts *found, struct slu_err *err)
{
	struct json_out w;
	struct buf text;
	int rc;

	buf_init(&text, 16 << 20);
	json_out_open(&w, &text);
	json_out_array(&w, "priorities");
	for (uint32_t i = 0; i < found->n; i++) {
		json_out_object(&w, NULL);
		json_out_i64(&w, "priority", found->all[i].priority);
		json_out_u64(&w, "messages", found->all[i].messages);
		json_out_u64(&w, "ready", found->all[i].ready);
		json_out_u64(&w, "leased", found->all[i].leased);
		json_out_close(&w);
	}
	json_out_close(&w);
	json_out_finish(&w);
	rc = text.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : rows_print(s, &priorities, buf_slice(&text), err);
	buf_release(&text);
	return rc;
}

static int
add_page(struct priority_counts *s, const struct page *page, struct slu_err *err)
{
	struct json in;
	int rc = 0;

	json_init(&in, page->priorities, JSON_DEPTH);
	json_array(&in);
	while (!rc && json_element(&in))
		rc = add(s, &in, err);
	return rc ? rc : json_end(&in, err);
}

static int
count(struct session *s, struct priority_counts *found, struct slu_err *err)
{
	struct page page = { 0 };
	struct slice body;
	int rc;

	do {
		query_queue(&s->query, "/v1/admin/queue/priorities", s->space, s->words[0]);
		http_param(&s->query.path, "cursor", page.cursor[0] ? page.cursor : NULL);
		page = (struct page){ 0 };
		rc = query_get(&s->query, &body, err);
		if (!rc)
			rc = query_read(body, page_fields, COUNT(page_fields), &page, err);
		if (!rc)
			rc = add_page(found, &page, err);
	} while (!rc && page.cursor[0]);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct priority_counts found = { 0 };
	int rc = count(s, &found, err);

	if (!rc && found.n > 1)
		qsort(found.all, found.n, sizeof *found.all, lowest_first);
	if (!rc && found.n == 0)
		session_nothing(s, "no messages in %s", s->words[0]);
	else if (!rc)
		rc = print(s, &found, err);
	mem_free(found.all);
	return rc;
}

const struct command cli_queue_priorities = {
	.name = "queue priorities",
	.summary = "count the messages of a queue by priority",
	.usage = "QUEUE [options]",
	.text = "Counts the messages of a queue by priority, the one that goes first at the top; dead letters\n"
		"do not count. Exits 3 if there are none.\n",
	.examples = "  sluice queue priorities jobs\n",
	.options = CLI_QUEUE,
	.run = run,
};
