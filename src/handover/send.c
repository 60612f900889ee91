/*
 * send.c - the calls of the server: POST /v1/admin/intake and /v1/admin/intake/places.
 */
#include "handover/handover_private.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <stdio.h>

/* ---- Requests ---- */

static void
put_item(struct json_out *w, const struct handover_item *item)
{
	const struct slice options = item->options ? slice_of(item->options) : (struct slice){ 0 };

	json_out_object(w, NULL);
	json_out_str(w, "namespace", slice_of(item->space));
	json_out_str(w, "queue", slice_of(item->queue));
	json_out_base64(w, "payload", (struct slice){ item->payload, item->size });
	if (options.n > 2) /* {} */
		buf_printf(w->b, ",%.*s", (int)options.n - 2, options.p + 1);
	json_out_close(w);
}

static void
put_batch(struct handover *in, const struct handover_batch *b, bool with_items)
{
	struct json_out w;

	buf_clear(&in->body);
	json_out_open(&w, &in->body);
	json_out_str(&w, "source", slice_of(in->source));
	json_out_u64(&w, "batch", b->number);
	json_out_str(&w, "shard", slice_of(b->shard));
	json_out_array(&w, "messages");
	for (uint32_t i = 0; with_items && i < b->items.n; i++)
		put_item(&w, &b->items.p[i]);
	json_out_close(&w);
	json_out_finish(&w);
}

/* ---- Answers ---- */

static const struct json_field answer_fields[] = {
	JSON_FIELD(bool, struct handover_answer, accepted),
	JSON_FIELD(u64, struct handover_answer, last),
	JSON_FIELD(u64, struct handover_answer, messages),
	JSON_FIELD(i64, struct handover_answer, index),
};

int
handover_send(struct handover *in, const struct handover_batch *b, bool with_items, struct handover_answer *out, struct slu_err *err)
{
	struct slice answer = { 0 };
	struct json r;
	int rc;

	put_batch(in, b, with_items);
	if (in->body.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	rc = in->server.call(in->server.arg, "/v1/admin/intake", buf_slice(&in->body), &answer, err);
	*out = (struct handover_answer){ .index = -1 };
	if (answer.n == 0)
		return rc;
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, answer_fields, COUNT(answer_fields), JSON_LENIENT, out);
	if (json_end(&r, NULL) && !rc)
		return slu_fail(err, SLU_EUNKNOWN, "malformed answer from the server");
	return rc;
}

enum handover_fate
handover_fate(int rc, int64_t index)
{
	switch (rc) {
	case SLU_EINVAL:
	case SLU_ETOOBIG:
	case SLU_EIDEM:
	case SLU_ECONFLICT:
	case SLU_EEXISTS:
		return index >= 0 ? HANDOVER_REFUSED : HANDOVER_FATAL;
	case SLU_EAUTH:
	case SLU_EFORBIDDEN:
		return HANDOVER_FATAL;
	case SLU_EBUSY:
	case SLU_EQFULL:
	case SLU_EDRAINING:
	case SLU_EMEMORY:
	case SLU_EQUOTA:
		return HANDOVER_RESTS;
	case SLU_EMOVED:
		return HANDOVER_MOVED;
	default:
		return HANDOVER_LATER;
	}
}

/* ---- Shards ---- */

/* Writes the queues whose shard is not known, at most HANDOVER_BATCH; asked[i]: their rows. */
static uint32_t
put_queues(struct handover *in, const struct handover_items *items, uint32_t *asked)
{
	struct json_out w;
	uint32_t n = 0;

	buf_clear(&in->body);
	json_out_open(&w, &in->body);
	json_out_array(&w, "queues");
	for (uint32_t i = 0; i < items->n; i++) {
		const struct handover_queue *const q = handover_queue_of(in, &items->p[i]);
		const uint32_t at = q ? (uint32_t)(q - in->queues) : 0;
		bool is_new = q && !q->shard[0];

		for (uint32_t j = 0; j < n && is_new; j++)
			is_new = asked[j] != at;
		if (!is_new)
			continue;
		json_out_object(&w, NULL);
		json_out_str(&w, "namespace", slice_of(items->p[i].space));
		json_out_str(&w, "queue", slice_of(items->p[i].queue));
		json_out_close(&w);
		asked[n++] = at;
	}
	json_out_close(&w);
	json_out_finish(&w);
	return n;
}

static int
read_shards(struct handover *in, struct slice answer, const uint32_t *asked, uint32_t n, struct slu_err *err)
{
	struct json_str name;
	struct json r;
	uint32_t i = 0;

	json_init(&r, answer, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		json_array(&r);
		while (json_element(&r)) {
			const struct slice shard = json_text(&r);

			if (i < n)
				(void)snprintf(in->queues[asked[i]].shard, HANDOVER_SHARD, "%.*s", (int)shard.n, shard.p);
			i++;
		}
	}
	if (json_end(&r, NULL) || i != n)
		return slu_fail(err, SLU_EDOWN, "malformed answer from the server");
	return 0;
}

static int
ask_shards(struct handover *in, const struct handover_items *items, struct slu_err *err)
{
	uint32_t asked[HANDOVER_BATCH];
	const uint32_t n = put_queues(in, items, asked);
	struct slice answer = { 0 };
	int rc;

	if (n == 0)
		return 0;
	if (in->body.failed)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = in->server.call(in->server.arg, "/v1/admin/intake/places", buf_slice(&in->body), &answer, err);
	if (rc && handover_fate(rc, -1) == HANDOVER_FATAL)
		in->fatal = true;
	return rc ? rc : read_shards(in, answer, asked, n, err);
}

int
handover_find_shards(struct handover *in, struct handover_items *items, struct slu_err *err)
{
	int rc;

	if (in->n_queues > 4 * HANDOVER_BATCH)
		in->n_queues = 0; /* forgets queues of the past */
	rc = ask_shards(in, items, err);
	for (uint32_t i = 0; i < items->n && !rc; i++) {
		const struct handover_queue *const q = handover_queue_of(in, &items->p[i]);

		mem_free(items->p[i].shard);
		items->p[i].shard = q ? mem_strdup(q->shard) : NULL;
		if (!items->p[i].shard)
			rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	return rc;
}
