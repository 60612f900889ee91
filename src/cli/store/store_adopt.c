/*
 * store_adopt.c - `sluice admin store adopt`: moves the log of a data folder into an empty store.
 *
 *      1  open and check the log of each shard; they stay locked
 *      2  the store has no objects
 *      3  put payloads and logs: the line of each shard
 *      4  put the beat of this command, which has given all shards: a server takes them at once
 *      5  put the settings: from now on the store counts. A server refuses a store with objects and
 *         without settings (members/find.h)
 *      6  claim the folders: they are caches of the store
 */
#include "cli/lib/json_line.h"
#include "cli/lib/progress.h"
#include "cli/store/store_private.h"

#include "base/hash.h"
#include "base/mem.h"
#include "engine/log/logengine.h"
#include "members/beat.h"
#include "members/settings.h"
#include "mirror/adopt.h"
#include "store/probe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
	PATH = 4096
};

struct adopt_shard {
	char folder[PATH];
	char name[16]; /* in the store */
	struct logengine_adopt *log;
	struct logengine_facts facts;
	uint64_t bytes;
	uint64_t epoch;
};

struct store_adopt {
	struct store_command *c;
	struct adopt_shard *shards;
	uint32_t n;
	uint64_t bytes, done;
	struct settings settings;
	uint8_t life[LINE_LIFE];
	struct progress bar;
};

/* ---- The folder ---- */

static bool
exists(const char *folder, const char *name)
{
	char path[PATH];
	struct stat st;

	return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && stat(path, &st) == 0;
}

/* How many logs the folder has (broker/layout.h). Version 0.1.0 did not write the number. */
static uint32_t
count_logs(const char *data)
{
	char path[PATH], name[16] = "0";
	unsigned n = 0;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/shards", data); /* a cut path does not exist */
	f = fopen(path, "re");
	if (f) {
		n = fgets(name, sizeof name, f) ? (unsigned)strtoul(name, NULL, 10) : 0;
		fclose(f);
		return n;
	}
	while (exists(data, name))
		(void)snprintf(name, sizeof name, "%u", ++n);
	return n ? n : 1;
}

static int
open_shard(struct store_adopt *a, uint32_t i, struct slu_err *err)
{
	struct adopt_shard *const s = &a->shards[i];
	const char *const data = a->c->data;
	const int n = a->n > 1 ? snprintf(s->folder, sizeof s->folder, "%s/%" PRIu32, data, i)
			       : snprintf(s->folder, sizeof s->folder, "%s", data);
	int rc;

	if (n >= (int)sizeof s->folder)
		return slu_fail(err, SLU_EINVAL, "invalid folder: the name is too long");
	(void)snprintf(s->name, sizeof s->name, "%" PRIu32, i);
	rc = logengine_adopt_open(&s->log, s->folder, &s->facts, err);
	if (rc)
		return rc;
	if (s->facts.records == 0)
		return slu_fail(err, SLU_ENOTFOUND, "%.200s has no log", s->folder);
	if (s->facts.wrong || s->facts.missing || s->facts.bad_files)
		return slu_fail(err, SLU_ECORRUPT, "%.150s is damaged; see `sluice admin journal check`", s->folder);
	s->bytes = logengine_adopt_bytes(s->log);
	a->bytes += s->bytes;
	return 0;
}

static int
open_folder(struct store_adopt *a, struct slu_err *err)
{
	int rc = 0;

	if (!exists(a->c->data, "."))
		return slu_fail(err, SLU_ENOTFOUND, "no such folder: %s", a->c->data);
	a->n = count_logs(a->c->data);
	if (a->n < 1 || a->n > BEAT_SHARDS_MAX)
		return slu_fail(err, SLU_ECORRUPT, "%s/shards is damaged; expected a number from 1 to %d", a->c->data,
				BEAT_SHARDS_MAX);
	a->shards = mem_array(a->n, sizeof *a->shards);
	if (!a->shards)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	for (uint32_t i = 0; !rc && i < a->n; i++)
		rc = open_shard(a, i, err);
	return rc;
}

/* ---- The store ---- */

/* Empty, and fit for several servers. */
static int
check_store(const struct store_adopt *a, struct slu_err *err)
{
	char name[STORE_NAME_MAX];
	int rc = 0;

	if (!a->c->store)
		return 0;
	if (store_first(a->c->store, name, err) != STORE_OK)
		rc = (int)err->code;
	else if (name[0])
		rc = slu_fail(err, SLU_EEXISTS, "%s is not empty: it has %s; expected a new store", a->c->store->label, name);
	if (!rc && a->c->apply && store_probe(a->c->store, err) != STORE_OK)
		rc = (int)err->code;
	return rc;
}

static void
on_progress(void *arg, uint64_t bytes)
{
	struct store_adopt *const a = arg;

	a->done += bytes;
	progress_at(&a->bar, a->done);
}

static int
put_logs(struct store_adopt *a, struct slu_err *err)
{
	int rc = 0;

	progress_begin(&a->bar, "adopting", a->bytes, true);
	for (uint32_t i = 0; !rc && i < a->n; i++) {
		struct adopt_shard *const s = &a->shards[i];
		struct adopt_conf to = { .store = a->c->store, .shard = s->name, .progress = on_progress, .arg = a };

		memcpy(to.life, a->life, LINE_LIFE);
		rc = logengine_adopt_put(s->log, &to, &s->epoch, err);
	}
	progress_end(&a->bar);
	return rc;
}

static int
put_object(const struct store_adopt *a, const char *name, struct slice object, enum store_mode mode,
	   struct slu_err *err)
{
	const enum store_result r = store_put(a->c->store, name, object, mode, err);

	if (r == STORE_EXISTS)
		return slu_fail(err, SLU_EEXISTS, "another process uses the store: it has put %s", name);
	return r == STORE_OK ? 0 : (int)err->code;
}

static int
put_beat(struct store_adopt *a, struct slu_err *err)
{
	struct beat b = {
		.draining = true,
		.number = 1,
		.writes = SETTINGS_FORMAT,
		.reads = SETTINGS_FORMAT,
		.name = SLICE("adopt"),
		.address = SLICE("none"),
		.version = SLICE(SLUICE_VERSION),
		.n_shards = a->n,
	};
	char name[LINE_NAME_MAX];
	struct buf shards, object;
	int rc;

	buf_init(&shards, BEAT_MAX);
	buf_init(&object, BEAT_MAX);
	memcpy(b.life, a->life, LINE_LIFE);
	for (uint32_t i = 0; i < a->n; i++)
		beat_shard_put(&shards, &(struct beat_shard){ i, true, a->shards[i].epoch });
	b.shards = buf_slice(&shards);
	beat_encode(&b, &object);
	beat_name(name, a->life);
	rc = shards.failed || object.failed ? slu_fail(err, SLU_ENOMEM, "out of memory")
					    : put_object(a, name, buf_slice(&object), STORE_REPLACE, err);
	buf_release(&shards);
	buf_release(&object);
	return rc;
}

static int
put_settings(struct store_adopt *a, struct slu_err *err)
{
	char name[LINE_NAME_MAX], object[SETTINGS_SIZE];

	settings_name(name, a->settings.version);
	settings_encode(&a->settings, object);
	return put_object(a, name, (struct slice){ object, sizeof object }, STORE_IF_ABSENT, err);
}

static int
draw(struct store_adopt *a, struct slu_err *err)
{
	int rc = hash_random(a->life, sizeof a->life, err);

	a->settings = (struct settings){ .version = 1, .format = SETTINGS_FIRST, .shards = a->n };
	if (!rc)
		rc = hash_random(a->settings.uuid, sizeof a->settings.uuid, err);
	return rc ? rc : hash_random(a->settings.secret, sizeof a->settings.secret, err);
}

/* A folder that is not claimed can be opened without the store: the command names it. */
static int
claim(struct store_adopt *a, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < a->n; i++)
		rc = logengine_adopt_claim(a->shards[i].log, a->settings.uuid, a->shards[i].name, err);
	return rc;
}

static int
apply(struct store_adopt *a, struct slu_err *err)
{
	struct slu_err why;
	int rc = draw(a, err);

	if (!rc)
		rc = put_logs(a, err);
	if (!rc)
		rc = put_beat(a, err);
	if (!rc)
		rc = put_settings(a, err);
	if (rc) {
		why = *err;
		return slu_fail(err, why.code, "%.300s; the folder is as it was; empty the store before you try again",
				why.text);
	}
	return claim(a, err);
}

/* ---- Output ---- */

static void
print_json(const struct store_adopt *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct adopt_shard *const s = &a->shards[i];
		struct json_line l;
		struct json_out *const w = json_line_begin(&l);

		json_out_u64(w, "shard", i);
		json_out_str(w, "folder", slice_of(s->folder));
		json_out_u64(w, "messages", s->facts.messages);
		json_out_u64(w, "queues", s->facts.queues);
		json_out_u64(w, "lock_keys", s->facts.locks);
		json_out_u64(w, "payload_files", s->facts.files);
		json_out_u64(w, "bytes", s->bytes);
		json_out_bool(w, "adopted", a->c->apply);
		json_line_end(&l, stdout);
	}
}

static void
print_text(const struct store_adopt *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct adopt_shard *const s = &a->shards[i];

		printf("shard %" PRIu32 ": %" PRIu32 " messages in %" PRIu32 " queues, %" PRIu32 " lock keys, %" PRIu64
		       " payload files, %" PRIu64 " bytes\n",
		       i, s->facts.messages, s->facts.queues, s->facts.locks, s->facts.files, s->bytes);
	}
	if (a->c->apply)
		printf("adopted: start it with: sluiced --store %s --data %s\n", a->c->s.words[1], a->c->data);
	else
		printf("nothing was changed; --apply moves the log into %s\n", a->c->s.words[1]);
}

int
store_adopt(struct store_command *c, const char *word, struct slu_err *err)
{
	struct store_adopt a = { .c = c };
	int rc;

	(void)word;
	if (!c->data)
		return session_usage(&c->s, "missing --data FOLDER; see `sluice admin store --help`");
	rc = open_folder(&a, err);
	if (!rc)
		rc = check_store(&a, err);
	if (!rc && c->apply)
		rc = apply(&a, err);
	if (!rc && c->s.json)
		print_json(&a);
	else if (!rc)
		print_text(&a);
	for (uint32_t i = 0; a.shards && i < a.n; i++)
		logengine_adopt_close(a.shards[i].log);
	mem_free(a.shards);
	return rc;
}
