/*
 * mirror_fixture.h - a log in a store in memory, on a simulated disk.
 *
 *         FIXTURE(before_mirror, after_mirror);
 *         open_log(); put_groups(10); close_log();
 */
#ifndef TESTS_MIRROR_FIXTURE_H
#define TESTS_MIRROR_FIXTURE_H

#include "test.h"

#include "memstore.h"
#include "mirror/cache.h"
#include "mirror/mirror.h"
#define WALKIT_OWN_FIXTURE
#include "walkit.h"

#include <sched.h>
#include <stdio.h>

enum {
	SEGMENT = 16 << 10
};

static const struct store_ops *const rows[] = { &store_memory, NULL };

static struct {
	struct store *store;
	struct mirror *mirror;
	struct mirror_conf conf;
	char boot[16];
	_Atomic unsigned pokes;
} my;

static inline void
poke(void *arg)
{
	(void)arg;
	my.pokes++;
}

static inline struct store *
open_store(const char *url)
{
	struct store *s;
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_open(&s, rows, &(struct store_conf){ .url = url }, &err));
	return s;
}

static inline void
before_mirror(void)
{
	walkit_init(SEGMENT);
	my.store = open_store("memory://test");
	snprintf(my.boot, sizeof my.boot, "boot-1");
	my.conf = (struct mirror_conf){
		.store = my.store,
		.shard = "s",
		.folder = "wal",
		.disk = &k.disk.disk,
		.log = k.log,
		.patience = SLU_MIN,
		.retry = { .base = SLU_MS, .max = SLU_MS },
		.boot = my.boot,
		.poke = poke,
	};
}

/* ---- One node ---- */

static inline int
open_mirror(struct slu_err *err)
{
	int rc;

	rc = mirror_open(&my.mirror, &my.conf, err);
	if (rc)
		return rc;
	k.conf.mirror = mirror_hook(my.mirror);
	rc = walkit_open();
	*err = k.err;
	if (rc) {
		mirror_close(my.mirror);
		my.mirror = NULL;
	}
	return rc;
}

static inline void
open_log(void)
{
	struct slu_err err = { 0 };

	if (open_mirror(&err))
		test_fail(__FILE__, __LINE__, "open: %s", err.text);
}

static inline void
close_log(void)
{
	mirror_close(my.mirror);
	my.mirror = NULL;
	walkit_close();
}

static inline void
after_mirror(void)
{
	if (my.mirror)
		close_log();
	store_close(my.store);
	walkit_release();
}

static inline void
commit(void)
{
	struct slu_err err = { 0 };

	if (mirror_commit(my.mirror, k.attempted, &err) || mirror_wait(my.mirror, SLU_NEVER, &err))
		test_fail(__FILE__, __LINE__, "commit: %s", err.text);
}

static inline void
put_groups(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(0, walkit_group(1 + i % 3, 300 + i * 10, true));
		commit();
	}
}

/* A group that never becomes part of the line. */
static inline void
write_ahead(void)
{
	const uint32_t answered = k.answered;

	for (int i = 0; i < 40; i++)
		CHECK_EQ(0, walkit_group(2, 900, true));
	k.answered = answered;
}

static inline void
lose_folder(void)
{
	simdisk_release(&k.disk);
	simdisk_init(&k.disk);
}

static inline unsigned
count(const char *prefix)
{
	return memstore_count(my.store, prefix);
}

/* ---- A second node ---- */

struct second_node {
	struct simdisk disk;
	struct mirror *mirror;
	struct wal *wal;
};

static inline void
open_node(struct second_node *n)
{
	struct mirror_conf mc = my.conf;
	struct wal_conf wc = k.conf;
	struct slu_err err = { 0 };

	simdisk_init(&n->disk);
	mc.disk = wc.disk = &n->disk.disk;
	mc.life[0] = 2;
	CHECK_EQ(0, mirror_open(&n->mirror, &mc, &err));
	wc.mirror = mirror_hook(n->mirror);
	CHECK_EQ(0, wal_open(&n->wal, &wc, NULL, NULL, &err));
	CHECK_EQ(0, mirror_commit(n->mirror, 1, &err));
	CHECK_EQ(0, mirror_wait(n->mirror, SLU_NEVER, &err));
}

static inline void
close_node(struct second_node *n)
{
	mirror_close(n->mirror);
	wal_close(n->wal);
	simdisk_release(&n->disk);
}

#endif
