/*
 * store_kinds.c - what the objects of a store are, and what they hold: one row each.
 */
#include "cli/store/store_private.h"
#include "members/beat.h"
#include "members/settings.h"
#include "mirror/body.h"

#include <inttypes.h>

enum {
	HEX_MAX = 32 /* bytes */
};

static void
put_hex(struct json_out *w, const char *name, const uint8_t *bytes, size_t n)
{
	char text[2 * HEX_MAX + 1] = "";

	for (size_t i = 0; i < n; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	json_out_str(w, name, slice_of(text));
}

/* "1f00c2a1b09d375e-89abcdef": the put and the sum. */
static void
put_mark(struct json_out *w, const char *name, struct line_mark mark)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%016" PRIx64 "-%08" PRIx32, mark.put, mark.sum);
	json_out_str(w, name, slice_of(text));
}

/* The pieces of the log in the body of a group. */
static void
put_pieces(struct json_out *w, struct slice body)
{
	struct body_reader r;
	struct body_piece piece;

	if (!body.n || body_open(&r, body, NULL))
		return;
	json_out_array(w, "pieces");
	while (body_next(&r, &piece)) {
		json_out_object(w, NULL);
		json_out_u64(w, "segment", piece.segment);
		json_out_u64(w, "offset", piece.offset);
		json_out_u64(w, "bytes", piece.bytes.n);
		json_out_close(w);
	}
	json_out_close(w);
}

static void
put_group(struct json_out *w, const struct line_group *g)
{
	json_out_u64(w, "number", g->number);
	json_out_u64(w, "epoch", g->epoch);
	json_out_bool(w, "opening", g->opening);
	json_out_bool(w, "pinned", g->pinned);
	put_hex(w, "life", g->life, LINE_LIFE);
	put_mark(w, "mark", g->mark);
	put_mark(w, "before", g->before);
	json_out_u64(w, "begin", g->begin);
	json_out_time(w, "time", g->time);
	json_out_u64(w, "body_bytes", g->body.n);
	put_pieces(w, g->body);
}

static int
show_group(struct json_out *w, struct slice object, struct slu_err *err)
{
	struct line_group g;
	const int rc = line_group_decode(&g, object, err);

	if (!rc)
		put_group(w, &g);
	return rc;
}

static int
show_span(struct json_out *w, struct slice object, struct slu_err *err)
{
	struct line_span s;
	struct line_group g;
	struct slu_err why;
	struct slice one;
	int rc = line_span_decode(&s, object, err);

	if (rc)
		return rc;
	json_out_u64(w, "first", s.first);
	json_out_u64(w, "last", line_span_last(&s));
	json_out_array(w, "groups");
	for (uint64_t number = s.first; !rc && line_span_next(&s, &one); number++) {
		rc = line_group_decode(&g, one, &why);
		if (rc)
			return slu_fail(err, why.code, "group %" PRIu64 ": %s", number, why.text);
		json_out_object(w, NULL);
		put_group(w, &g);
		json_out_close(w);
	}
	json_out_close(w);
	return rc;
}

static int
show_node(struct json_out *w, struct slice object, struct slu_err *err)
{
	struct beat b;
	const int rc = beat_decode(&b, object, err);

	if (rc)
		return rc;
	put_hex(w, "life", b.life, LINE_LIFE);
	json_out_str(w, "node", b.name);
	json_out_str(w, "address", b.address);
	json_out_str(w, "version", b.version);
	json_out_u64(w, "beat", b.number);
	json_out_bool(w, "draining", b.draining);
	json_out_u64(w, "reads", b.reads);
	json_out_u64(w, "writes", b.writes);
	json_out_array(w, "shards");
	for (uint32_t i = 0; i < b.n_shards; i++) {
		const struct beat_shard s = beat_shard(&b, i);

		json_out_object(w, NULL);
		json_out_u64(w, "shard", s.number);
		json_out_u64(w, "epoch", s.epoch);
		json_out_bool(w, "given", s.given);
		json_out_close(w);
	}
	json_out_close(w);
	return 0;
}

/* Without the secret of the nodes. */
static int
show_settings(struct json_out *w, struct slice object, struct slu_err *err)
{
	struct settings s;
	const int rc = settings_decode(&s, object, err);

	if (rc)
		return rc;
	json_out_u64(w, "version", s.version);
	json_out_u64(w, "format", s.format);
	json_out_u64(w, "shards", s.shards);
	json_out_str(w, "place", s.place == SETTINGS_BY_NAMESPACE ? SLICE("namespace") : SLICE("queue"));
	put_hex(w, "uuid", s.uuid, SETTINGS_UUID);
	return 0;
}

static int
show_other(struct json_out *w, struct slice object, struct slu_err *err)
{
	(void)w;
	(void)object;
	(void)err;
	return 0;
}

/* ---- Names ---- */

static bool
is_group(const char *name, const char *shard, uint64_t *number)
{
	*number = line_number(name, shard, LINE_GROUP);
	return *number;
}

static bool
is_span(const char *name, const char *shard, uint64_t *number)
{
	*number = line_number(name, shard, LINE_SPAN);
	return *number;
}

static bool
is_node(const char *name, const char *shard, uint64_t *number)
{
	uint8_t life[LINE_LIFE];
	(void)shard;

	*number = 0;
	return beat_life(life, name);
}

static bool
is_settings(const char *name, const char *shard, uint64_t *number)
{
	(void)shard;
	*number = settings_version(name);
	return *number;
}

static bool
is_other(const char *name, const char *shard, uint64_t *number)
{
	(void)name;
	(void)shard;
	*number = 0;
	return true;
}

const struct store_kind store_kinds[] = {
	[STORE_KIND_GROUP] = { "group", is_group, show_group },
	[STORE_KIND_SPAN] = { "span", is_span, show_span },
	{ "node", is_node, show_node },
	{ "settings", is_settings, show_settings },
	{ "other", is_other, show_other },
};

const struct store_kind *
store_kind(const char *name, uint64_t *number)
{
	const struct store_kind *kind = store_kinds;
	char shard[LINE_SHARD_MAX + 1];

	(void)snprintf(shard, sizeof shard, "%.*s", (int)strcspn(name, "/"), name);
	while (!kind->matches(name, shard, number))
		kind++;
	return kind;
}
