#define WALKIT_OWN_FIXTURE /* of the test program */
#include "walkit.h"

#include "base/le.h"
#include "base/log.h"
#include "store_rig.h"
#include "mirror/mirror.h"

#include <stdio.h>
#include <stdlib.h>

struct walkit k;

enum {
	HEAD = 16 /* group, index, count, life */
};

static void
catch_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	const size_t used = strlen(k.logged);

	(void)arg;
	(void)level;
	if (used + n < sizeof k.logged)
		snprintf(k.logged + used, sizeof k.logged - used, "%.*s", (int)n, line);
}

/* ---- KIT_STORE ---- */

static struct {
	struct store *store;   /* NULL: the log is in its folder */
	struct mirror *mirror; /* NULL: not open */
	unsigned boots;        /* how often the machine has started */
	char boot[16];
} in;

static void
begin_boot(void)
{
	snprintf(in.boot, sizeof in.boot, "boot-%u", ++in.boots);
}

static void
open_store(void)
{
	struct store_rig rig = { .row = store_rig_kit_row() };

	if (!getenv("KIT_STORE"))
		return;
	rig.row->url(rig.url);
	in.store = store_rig_open(&rig);
	begin_boot();
}

static int
open_mirror(void)
{
	const struct mirror_conf conf = {
		.store = in.store,
		.shard = "0",
		.folder = k.conf.folder,
		.disk = k.conf.disk,
		.log = k.log,
		.boot = in.boot,
	};
	int rc;

	if (!in.store)
		return 0;
	rc = mirror_open(&in.mirror, &conf, &k.err);
	k.conf.mirror = rc ? NULL : mirror_hook(in.mirror);
	return rc;
}

static void
close_mirror(void)
{
	if (!in.mirror)
		return;
	mirror_close(in.mirror);
	in.mirror = NULL;
	k.conf.mirror = NULL;
}

/* The store has what the log wrote. */
static int
commit_mirror(void)
{
	int rc;

	if (!in.mirror)
		return 0;
	rc = mirror_commit(in.mirror, (slu_time)k.attempted, &k.err);
	if (!rc)
		rc = mirror_wait(in.mirror, SLU_NEVER, &k.err);
	return !rc && k.disk.dead ? SLU_EDOWN : rc; /* the store goes on without power */
}

/* ---- The log ---- */

static void
close_log(void)
{
	close_mirror();
	wal_close(k.w);
	k.w = NULL;
}

void
walkit_init(uint32_t segment_size)
{
	walkit_release();
	simdisk_init(&k.disk);
	fakeclock_init(&k.clock, SLU_SEC, 1700000000 * SLU_SEC);
	k.log = slu_log_new(SLU_LOG_WARN, SLU_LOG_LOGFMT, catch_log, NULL);
	k.life_of = calloc(WALKIT_GROUPS, sizeof *k.life_of);
	CHECK(k.life_of); /* without a log lines go to stderr */
	k.conf = (struct wal_conf){
		.disk = &k.disk.disk,
		.clock = &k.clock.clock,
		.log = k.log,
		.folder = "wal",
		.segment_size = segment_size,
	};
	open_store();
}

void
walkit_release(void)
{
	if (!k.life_of)
		return;
	close_log();
	store_close(in.store);
	in.store = NULL;
	simdisk_release(&k.disk);
	fakeclock_release(&k.clock);
	slu_log_free(k.log);
	free(k.life_of);
	memset(&k, 0, sizeof k);
}

void
walkit_start(uint32_t segment_size)
{
	walkit_init(segment_size);
	CHECK_EQ(0, walkit_open());
}

static char
filler(uint32_t group, uint32_t index, size_t at)
{
	return (char)(group * 31 + index * 7 + at * 13 + 1);
}

static void
fill_body(char *p, size_t n, uint32_t group, uint32_t index, uint32_t count,
	  uint32_t life)
{
	le32_put(p, group);
	le32_put(p + 4, index);
	le32_put(p + 8, count);
	le32_put(p + 12, life);
	for (size_t i = HEAD; i < n; i++)
		p[i] = filler(group, index, i);
}

static void
check_body(const struct wal_record *rec)
{
	const char *p = rec->body.p;

	CHECK(rec->body.n >= HEAD);
	for (size_t i = HEAD; i < rec->body.n; i++)
		if (p[i] != filler(le32_get(p), le32_get(p + 4), i))
			test_fail(__FILE__, __LINE__, "wrong data in group %u record %u",
				  le32_get(p), le32_get(p + 4));
}

/* What was recycled may be missing, in the middle of a group, too. */
static void
see_first(const struct wal_record *rec, uint32_t group)
{
	CHECK(group <= k.recycled + 1);
	k.seen = group - 1;
	k.in_group = group <= k.recycled ? le32_get(rec->body.p + 4) : 0;
}

/* Groups come in order and whole, from the life that wrote them last. */
static int
see(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	const uint32_t group = le32_get(rec->body.p);

	(void)arg;
	(void)w;
	(void)err;
	check_body(rec);
	if (k.records == 0)
		see_first(rec, group);
	CHECK_EQ(1, rec->type);
	CHECK(rec->seq > k.last_seq);
	k.last_seq = rec->seq;
	CHECK_EQ(k.seen + 1, group);
	CHECK_EQ(k.in_group, le32_get(rec->body.p + 4));
	CHECK_EQ(k.life_of[group], le32_get(rec->body.p + 12), "its life");
	CHECK_EQ(1700000000 * SLU_SEC + (slu_time)group, rec->time, "its time");
	k.records++;
	k.in_group++;
	if (k.in_group == le32_get(rec->body.p + 8)) {
		k.in_group = 0;
		k.seen = group;
	}
	return 0;
}

int
walkit_open(void)
{
	int rc;

	CHECK(!k.w);
	k.seen = k.records = k.in_group = 0;
	k.last_seq = 0;
	rc = open_mirror();
	if (!rc)
		rc = wal_open(&k.w, &k.conf, see, NULL, &k.err);
	if (rc) {
		k.w = NULL;
		close_mirror();
		return rc;
	}
	CHECK_EQ(0, k.in_group, "the last group is whole");
	if (k.records == 0)
		k.seen = k.recycled;
	if (k.seen < k.answered)
		test_fail(__FILE__, __LINE__, "group %u was answered, %u is the last there",
			  k.answered, k.seen);
	CHECK(k.seen <= k.attempted);
	k.answered = k.attempted = k.seen;
	k.life++;
	return 0;
}

void
walkit_close(void)
{
	close_log();
	if (!k.disk.dead)
		k.answered = k.attempted;
}

static void
append_all(unsigned records, size_t n)
{
	char *p = malloc(n);
	const struct slice body = { p, n };

	CHECK(p);
	for (unsigned i = 0; i < records; i++) {
		fill_body(p, n, k.attempted, i, records, k.life);
		k.where = wal_append(k.w, 1, &body, 1);
	}
	free(p);
}

int
walkit_group(unsigned records, size_t body, bool sync)
{
	const size_t n = body < HEAD ? HEAD : body;
	int rc;

	wal_begin(k.w, 1700000000 * SLU_SEC + (slu_time)k.attempted + 1);
	rc = wal_reserve(k.w, WAL_NEW, records * wal_size(n), wal_size(n), &k.err);
	if (rc)
		return rc;
	CHECK(k.attempted + 1 < WALKIT_GROUPS);
	k.attempted++;
	k.life_of[k.attempted] = k.life;
	append_all(records, n);
	rc = wal_commit(k.w, sync, &k.err);
	if (!rc)
		rc = commit_mirror();
	if (!rc && sync)
		k.answered = k.attempted;
	return rc;
}

int
walkit_recycle(void)
{
	struct wal_cursor c;
	struct wal_record rec;

	CHECK_EQ(0, wal_cursor_open(&c, k.w, wal_oldest(k.w), &k.err));
	for (;;) {
		CHECK_EQ(0, wal_cursor_next(&c, &rec, &k.err));
		if (rec.type == 0)
			break;
		check_body(&rec);
		if (le32_get(rec.body.p) > k.recycled)
			k.recycled = le32_get(rec.body.p);
	}
	wal_cursor_close(&c);
	return wal_recycle(k.w, &k.err);
}

static void
abandon(void)
{
	k.disk.dead = true; /* so that closing changes nothing */
	close_log();
}

void
walkit_crash(uint64_t seed)
{
	abandon();
	simdisk_crash(&k.disk, seed);
	begin_boot();
}

void
walkit_kill(void)
{
	abandon();
	simdisk_kill(&k.disk);
}

char *
walkit_file(const char *name, size_t *size)
{
	char path[SIM_NAME];

	snprintf(path, sizeof path, "wal/%s", name);
	return simdisk_content(&k.disk, path, size);
}
