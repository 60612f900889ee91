/*
 * make_line.c - fills a store with the line of a shard, by the state machine that servers use.
 *
 *      make_line URL SHARD GROUPS [BEGIN]
 *
 * Puts the settings of the store if they are absent, and the beat of a node that owns the shard.
 * Takes the shard, and appends groups with one piece of a log each: "piece 2", "piece 3" ... Makes the
 * log begin at group BEGIN. A span has 4 groups. Each call is a new node, so it adds one opening.
 */
#include "base/clock.h"
#include "line/line.h"
#include "members/beat.h"
#include "members/settings.h"
#include "mirror/body.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static struct store *store;
static bool opened;

static void
fail(const char *text)
{
	fprintf(stderr, "make_line: %s\n", text);
	exit(1);
}

static uint64_t
draw(void *arg)
{
	uint64_t number;
	(void)arg;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		fail("no random numbers");
	return number;
}

static void
on_read(void *arg, const struct line_group *group, struct slice object)
{
	(void)arg;
	(void)group;
	(void)object;
}

static void
on_opened(void *arg)
{
	(void)arg;
	opened = true;
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	(void)arg;
	(void)group;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	(void)arg;
	fail(why->text);
}

/* ---- Requests ---- */

static void
execute(struct line *l, const struct line_request *r)
{
	static const enum line_result results[] = {
		[STORE_OK] = LINE_OK,
		[STORE_EXISTS] = LINE_EXISTS,
		[STORE_ABSENT] = LINE_ABSENT,
	};
	struct store_names names = { 0 };
	struct slu_err err = { 0 };
	struct buf bytes;
	enum store_result result = STORE_OK;

	buf_init(&bytes, STORE_OBJECT_MAX);
	if (r->verb == LINE_PUT)
		result = store_put(store, r->name, r->object, STORE_IF_ABSENT, &err);
	else if (r->verb == LINE_GET)
		result = store_get(store, r->name, 0, r->max ? r->max : SIZE_MAX, &bytes, NULL, &err);
	else if (r->verb == LINE_LIST)
		result = store_list(store, r->name, r->after, STORE_PAGE_MAX, &names, &err);
	else
		result = store_remove(store, r->name, &err);
	if (result == STORE_FAILED || result == STORE_REFUSED)
		fail(err.text);
	line_reply(l, r->slot,
		   &(struct line_answer){ .result = results[result], .object = buf_slice(&bytes), .names = names.names, .n_names = names.n, .more = names.more },
		   clock_mono(&clock_system));
	buf_release(&bytes);
	store_names_release(&names);
}

/* Executes requests until none is left. */
static void
settle(struct line *l)
{
	struct line_request r;

	while (line_next(l, clock_mono(&clock_system), &r))
		execute(l, &r);
}

static void
append(struct line *l)
{
	const uint64_t number = line_facts(l).last + 1;
	char text[32];
	struct body body;
	struct buf bytes;

	(void)snprintf(text, sizeof text, "piece %" PRIu64, number);
	body_init(&body);
	buf_init(&bytes, 1000);
	body_add(&body, &(struct body_piece){ 1, (uint32_t)number * 4096, slice_of(text) });
	if (body_encode(&body, &bytes) ||
	    !line_append(l, buf_slice(&bytes), clock_wall(&clock_system)))
		fail("out of memory");
	settle(l);
	body_release(&body);
	buf_release(&bytes);
}

/* ---- Settings and nodes ---- */

static void
put(const char *name, struct slice object, enum store_mode mode)
{
	struct slu_err err = { 0 };

	if (store_put(store, name, object, mode, &err) > STORE_EXISTS)
		fail(err.text);
}

static void
put_settings(void)
{
	struct settings settings = { .version = 1, .format = 1, .shards = 2 };
	char name[LINE_NAME_MAX], object[SETTINGS_SIZE];

	memcpy(settings.uuid, "0123456789abcdef", SETTINGS_UUID);
	memcpy(settings.secret, "do not show this text to anybody", SETTINGS_SECRET);
	settings_name(name, 1);
	settings_encode(&settings, object);
	put(name, (struct slice){ object, sizeof object }, STORE_IF_ABSENT);
}

static void
put_beat(const uint8_t life[LINE_LIFE], uint32_t shard, uint64_t epoch)
{
	struct beat beat = { .number = 7, .writes = 1, .reads = 1, .name = SLICE("a"), .address = SLICE("127.0.0.1:7171"), .version = SLICE("0.2.0"), .n_shards = 1 };
	char name[LINE_NAME_MAX];
	struct buf shards, object;

	buf_init(&shards, 1000);
	buf_init(&object, 1000);
	memcpy(beat.life, life, LINE_LIFE);
	beat_shard_put(&shards, &(struct beat_shard){ .number = shard, .epoch = epoch });
	beat.shards = buf_slice(&shards);
	beat_encode(&beat, &object);
	beat_name(name, life);
	put(name, buf_slice(&object), STORE_REPLACE);
	buf_release(&shards);
	buf_release(&object);
}

int
main(int argc, char **argv)
{
	struct line_conf conf = { .span_groups = 4,
				  .span_bytes = 1 << 20,
				  .retry = { .base = SLU_MS, .max = SLU_MS },
				  .random = draw,
				  .read = on_read,
				  .opened = on_opened,
				  .confirmed = on_confirmed,
				  .lost = on_lost };
	struct store_conf store_conf = { .unsafe = true };
	struct slu_err err = { 0 };
	struct line *l = NULL;

	if (argc < 4)
		fail("usage: make_line URL SHARD GROUPS [BEGIN]");
	store_conf.url = argv[1];
	conf.shard = argv[2];
	if (store_open(&store, store_rows, &store_conf, &err) != STORE_OK)
		fail(err.text);
	for (size_t i = 0; i < LINE_LIFE; i += sizeof(uint64_t))
		memcpy(conf.life + i, &(uint64_t){ draw(NULL) }, sizeof(uint64_t));
	if (line_new(&l, &conf))
		fail("out of memory");
	line_take(l);
	settle(l);
	if (!opened)
		fail("the shard did not open");
	for (long n = strtol(argv[3], NULL, 10); n > 0; n--) {
		if (n == 1 && argc > 4)
			line_begin(l, strtoull(argv[4], NULL, 10));
		append(l);
	}
	put_settings();
	put_beat(conf.life, (uint32_t)strtoul(conf.shard, NULL, 10), line_facts(l).epoch);
	line_free(l);
	store_close(store);
	return 0;
}
