/*
 * rejoin_send.c - batches of messages to a server, each accepted once.
 */
#include "cli/store/rejoin.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	BATCH = 100,           /* messages */
	BATCH_BYTES = 4 << 20, /* of JSON; a larger message is a batch of its own */
	LINE = 600             /* bytes of a line of the file `rejoin` */
};

/* ---- The source ---- */

/* The same for each run with this folder; different for each other folder. */
static void
name_source(const struct cache_facts *cache, char out[static 40])
{
	static const struct hash_key keys[2] = { { 0x736c75696365, 1 }, { 0x72656a6f696e, 2 } };
	uint64_t half[2];
	char text[200];

	(void)snprintf(text, sizeof text, "%s %" PRIu64 " %" PRIx64 " %" PRIx32, cache->shard, cache->seen.number,
		       cache->seen.mark.put, cache->seen.mark.sum);
	memcpy(half, cache->uuid, sizeof half);
	for (unsigned i = 0; i < 2; i++)
		half[i] ^= hash_keyed(&keys[i], text, strlen(text));
	(void)snprintf(out, 40, "%08" PRIx32 "-%04x-%04x-%04x-%012" PRIx64, (uint32_t)(half[0] >> 32),
		       (unsigned)(half[0] >> 16 & 0xffff), (unsigned)(half[0] & 0xffff), (unsigned)(half[1] >> 48),
		       half[1] & 0xffffffffffff);
}

/* ---- Queues and their shards ---- */

static int
target_of(struct rejoin_sender *r, const char *shard, uint32_t *out, struct slu_err *err)
{
	for (*out = 0; *out < r->n_targets; ++*out)
		if (strcmp(r->targets[*out].shard, shard) == 0)
			return 0;
	if (!mem_room(&r->targets, &r->max_targets, r->n_targets + 1, sizeof *r->targets))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	r->targets[r->n_targets] = (struct rejoin_target){ .batch = 1 };
	(void)snprintf(r->targets[r->n_targets].shard, REJOIN_SHARD, "%s", shard);
	buf_init(&r->targets[r->n_targets++].messages, SIZE_MAX / 2);
	return 0;
}

static int
add_queue(struct rejoin_sender *r, const char *space, const char *queue, const char *shard, struct slu_err *err)
{
	struct rejoin_queue q = { .space = mem_strdup(space), .queue = mem_strdup(queue) };
	int rc = target_of(r, shard, &q.target, err);

	if (!rc && (!q.space || !q.queue ||
		    !mem_room(&r->queues, &r->max_queues, r->n_queues + 1, sizeof *r->queues)))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (rc) {
		mem_free(q.space);
		mem_free(q.queue);
		return rc;
	}
	r->queues[r->n_queues++] = q;
	return 0;
}

/* The name of a shard needs no escapes: ["default"]. */
static bool
read_shard(struct slice list, char shard[static REJOIN_SHARD])
{
	if (list.n < 5 || list.n >= REJOIN_SHARD || memcmp(list.p, "[\"", 2) != 0 ||
	    memcmp(list.p + list.n - 2, "\"]", 2) != 0)
		return false;
	(void)snprintf(shard, REJOIN_SHARD, "%.*s", (int)list.n - 4, list.p + 2);
	return true;
}

static int
ask_place(struct rejoin_sender *r, const char *space, const char *queue, char shard[static REJOIN_SHARD],
	  struct slu_err *err)
{
	struct answer {
		struct slice shards;
	} got = { 0 };
	static const struct json_field fields[] = { JSON_FIELD(raw, struct answer, shards, .required = true) };
	struct slice answer;
	struct buf body;
	int rc;

	buf_init(&body, SIZE_MAX / 2);
	buf_printf(&body, "{\"queues\":[{\"namespace\":\"%s\",\"queue\":\"%s\"}]}", space, queue);
	query_path(&r->s->query, "/v1/admin/intake/places");
	rc = query_post(&r->s->query, buf_slice(&body), &answer, err);
	buf_release(&body);
	if (!rc)
		rc = query_read(answer, fields, COUNT(fields), &got, err);
	if (!rc && !read_shard(got.shards, shard))
		rc = slu_fail(err, SLU_EUNKNOWN, "malformed answer from the server: %.*s", (int)got.shards.n, got.shards.p);
	return rc;
}

/* ---- The file ---- */

static int
open_plan(const struct rejoin_sender *r, int flags, char path[static REJOIN_PATH])
{
	(void)snprintf(path, REJOIN_PATH, "%s/rejoin", r->folder);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* Synced before a message of the queue is sent: a queue never goes to two shards. */
static int
write_plan(const struct rejoin_sender *r, const char *space, const char *queue, const char *shard,
	   struct slu_err *err)
{
	char path[REJOIN_PATH], line[LINE];
	const int fd = open_plan(r, O_WRONLY | O_CREAT | O_APPEND, path);
	const int n = snprintf(line, sizeof line, "%s %s %s\n", space, queue, shard);
	const bool done = fd >= 0 && write(fd, line, (size_t)n) == n && fsync(fd) == 0;
	int rc = 0;

	if (!done)
		rc = slu_fail(err, SLU_EDOWN, "%.200s: %m", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
read_plan(struct rejoin_sender *r, struct slu_err *err)
{
	char path[REJOIN_PATH], line[LINE], space[130], queue[130], shard[REJOIN_SHARD];
	const int fd = open_plan(r, O_RDONLY, path);
	FILE *const f = fd >= 0 ? fdopen(fd, "r") : NULL;
	int rc = 0;

	if (!f)
		return errno == ENOENT ? 0 : slu_fail(err, SLU_EDOWN, "%.200s: %m", path);
	while (!rc && fgets(line, sizeof line, f))
		rc = strchr(line, '\n') && sscanf(line, "%129s %129s %63s", space, queue, shard) == 3
			     ? add_queue(r, space, queue, shard, err)
			     : slu_fail(err, SLU_ECORRUPT, "%.200s is damaged", path);
	(void)fclose(f); /* was read only */
	return rc;
}

/* Sets *out to the target of the queue. */
static int
find_target(struct rejoin_sender *r, const struct message *m, uint32_t *out, struct slu_err *err)
{
	char space[130], queue[130], shard[REJOIN_SHARD];
	int rc;

	for (uint32_t i = 0; i < r->n_queues; i++)
		if (slice_eq(m->space, slice_of(r->queues[i].space)) && slice_eq(m->queue, slice_of(r->queues[i].queue))) {
			*out = r->queues[i].target;
			return 0;
		}
	(void)snprintf(space, sizeof space, "%.*s", (int)m->space.n, m->space.p);
	(void)snprintf(queue, sizeof queue, "%.*s", (int)m->queue.n, m->queue.p);
	rc = ask_place(r, space, queue, shard, err);
	if (!rc)
		rc = write_plan(r, space, queue, shard, err);
	if (!rc)
		rc = add_queue(r, space, queue, shard, err);
	if (!rc)
		*out = r->queues[r->n_queues - 1].target;
	return rc;
}

/* ---- Batches ---- */

static void
put_text(struct json_out *w, const char *name, struct slice text)
{
	if (text.n)
		json_out_str(w, name, text);
}

static void
put_span(struct json_out *w, const char *name, slu_time span)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%" PRId64 "ms", span / SLU_MS);
	json_out_str(w, name, slice_of(text));
}

static void
put_trace(struct json_out *w, struct slice trace)
{
	if (trace.n < MESSAGE_TRACE_PARENT)
		return;
	json_out_str(w, "traceparent", (struct slice){ trace.p, MESSAGE_TRACE_PARENT });
	put_text(w, "tracestate", (struct slice){ trace.p + MESSAGE_TRACE_PARENT, trace.n - MESSAGE_TRACE_PARENT });
}

/* `ttl`: what is left of it; 0 = the message has none. */
static void
put_message(struct buf *out, const struct message *m, slu_time ttl)
{
	struct json_out w;

	if (out->n)
		buf_putc(out, ',');
	json_out_init(&w, out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", m->space);
	json_out_str(&w, "queue", m->queue);
	json_out_i64(&w, "priority", m->prio);
	json_out_base64(&w, "payload", m->payload);
	if (m->due > m->accepted)
		json_out_time(&w, "deliver_after", m->due);
	if (ttl)
		put_span(&w, "ttl", ttl);
	put_text(&w, "key", m->key);
	put_text(&w, "share", m->share);
	put_text(&w, "idempotency_key", m->idem);
	put_text(&w, "correlation_id", m->correlation);
	put_text(&w, "content_type", m->type);
	if (m->attributes.n)
		json_out_raw(&w, "attributes", m->attributes);
	if (m->max_attempts)
		json_out_u64(&w, "max_attempts", m->max_attempts);
	if (m->keep)
		put_span(&w, "keep_result", m->keep);
	put_trace(&w, m->trace);
	json_out_close(&w);
	json_out_end(&w);
}

static int
send_batch(struct rejoin_sender *r, struct rejoin_target *t, struct slu_err *err)
{
	struct answer {
		bool accepted;
	} got = { 0 };
	static const struct json_field fields[] = { JSON_FIELD(bool, struct answer, accepted, .required = true) };
	struct slice answer;
	struct buf body;
	int rc;

	if (t->n == 0)
		return 0;
	buf_init(&body, SIZE_MAX / 2);
	buf_printf(&body, "{\"source\":\"%s\",\"batch\":%" PRIu64 ",\"shard\":\"%s\",\"messages\":[", r->source, t->batch,
		   t->shard);
	buf_put(&body, t->messages.p, t->messages.n);
	buf_puts(&body, "]}");
	query_path(&r->s->query, "/v1/admin/intake");
	rc = body.failed || t->messages.failed ? slu_fail(err, SLU_ENOMEM, "out of memory")
					       : query_post(&r->s->query, buf_slice(&body), &answer, err);
	buf_release(&body);
	if (!rc)
		rc = query_read(answer, fields, COUNT(fields), &got, err);
	if (rc)
		return rc;
	*(got.accepted ? &r->sent : &r->known) += t->n;
	t->batch++;
	t->n = 0;
	buf_clear(&t->messages);
	return 0;
}

int
rejoin_send(struct rejoin_sender *r, const struct message *m, struct slu_err *err)
{
	const slu_time left = m->expires ? m->expires - clock_wall(&clock_system) : 0;
	struct rejoin_target *t;
	uint32_t target;
	int rc = find_target(r, m, &target, err);

	if (rc)
		return rc;
	t = &r->targets[target];
	if (t->n && t->messages.n + m->payload.n * 4 / 3 > BATCH_BYTES)
		rc = send_batch(r, t, err);
	if (rc)
		return rc;
	put_message(&t->messages, m, m->expires && left < SLU_MS ? SLU_MS : left);
	t->n++;
	return t->n == BATCH ? send_batch(r, t, err) : 0;
}

int
rejoin_flush(struct rejoin_sender *r, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->n_targets; i++)
		rc = send_batch(r, &r->targets[i], err);
	return rc;
}

int
rejoin_sender_open(struct rejoin_sender *r, struct session *s, const char *folder,
		   const struct cache_facts *cache, struct slu_err *err)
{
	*r = (struct rejoin_sender){ .s = s, .folder = folder };
	name_source(cache, r->source);
	return read_plan(r, err);
}

void
rejoin_sender_close(struct rejoin_sender *r)
{
	for (uint32_t i = 0; i < r->n_queues; i++) {
		mem_free(r->queues[i].space);
		mem_free(r->queues[i].queue);
	}
	for (uint32_t i = 0; i < r->n_targets; i++)
		buf_release(&r->targets[i].messages);
	mem_free(r->queues);
	mem_free(r->targets);
}
