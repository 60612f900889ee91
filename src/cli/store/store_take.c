/*
 * store_take.c - `sluice admin store take --without-front`: gives up the front folder of a shard, which is lost.
 */
#include "cli/store/store_private.h"

#include "base/hash.h"
#include "mirror/adopt.h"

#include <inttypes.h>

static int
find_newest(struct store_command *c, const char *shard, struct line_group *out, struct slu_err *err)
{
	char prefix[LINE_NAME_MAX], newest[STORE_NAME_MAX] = "";
	struct store_cursor names = { .store = c->store, .prefix = prefix };
	const char *name;
	int rc;

	if (strlen(shard) > LINE_SHARD_MAX)
		return slu_fail(err, SLU_ENOTFOUND, "no such shard: %.100s", shard);
	line_prefix(prefix, shard, LINE_GROUP);
	while (!(rc = store_cursor_next(&names, &name, err)) && name)
		(void)snprintf(newest, sizeof newest, "%s", name);
	store_cursor_release(&names);
	if (!rc && !*newest)
		rc = slu_fail(err, SLU_ENOTFOUND, "no such shard: %s", shard);
	if (!rc)
		rc = store_read(c, newest, err);
	return rc ? rc : line_group_decode(out, buf_slice(&c->object), err);
}

static void
print_pin(const char *shard, const struct line_group *newest)
{
	printf("shard %s is pinned to front folder ", shard);
	for (unsigned i = 0; i < LINE_LIFE; i++)
		printf("%02x", newest->life[i]);
	printf(", epoch %" PRIu64 ", group %" PRIu64 "\n", newest->epoch, newest->number);
}

static int
unpin(struct store_command *c, const char *shard, const struct line_group *newest, struct slu_err *err)
{
	struct adopt_conf conf = { .store = c->store, .shard = shard };
	uint64_t epoch = 0;
	int rc = hash_random(conf.life, sizeof conf.life, err);

	if (!rc)
		rc = adopt_unpin(&conf, newest, &epoch, err);
	if (!rc)
		printf("shard %s is free: a server takes it within half a minute, epoch %" PRIu64 "\n", shard, epoch);
	return rc;
}

int
store_take(struct store_command *c, const char *word, struct slu_err *err)
{
	struct line_group newest;
	int rc;

	if (!c->without_front)
		return session_usage(&c->s, "missing --without-front: take gives up what the front folder alone has");
	rc = find_newest(c, word, &newest, err);
	if (rc)
		return rc;
	if (!newest.pinned)
		return slu_fail(err, SLU_ECONFLICT, "shard %s is not pinned to a front folder; any server may take it", word);
	print_pin(word, &newest);
	if (c->apply)
		return unpin(c, word, &newest, err);
	printf("nothing was changed; --apply takes the shard without the folder: what the folder alone has is not "
	       "served\n");
	return 0;
}
