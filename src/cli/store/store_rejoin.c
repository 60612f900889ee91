/*
 * store_rejoin.c - `sluice admin store rejoin`: hands in what a folder accepted and its store does not have.
 *
 *      1  whose folder is it: the file `mirror` names store and shard
 *      2  where do the folder and the line part (rejoin_compare.c)
 *      3  read the log of the folder from there on (engine/log/rejoin.h)
 *      4  send the messages in numbered batches to a server (rejoin_send.c)
 */
#include "cli/lib/json_line.h"
#include "cli/lib/progress.h"
#include "cli/store/rejoin.h"

#include "base/mem.h"
#include "members/beat.h"
#include "members/settings.h"
#include "mirror/frontfolder.h"

#include <inttypes.h>
#include <sys/stat.h>

struct rejoin {
	struct store_command *c;
	char folder[REJOIN_PATH];
	struct cache_facts cache;
	struct frontfolder front;
	struct rejoin_split split;
	struct logengine_rejoin log;
	struct rejoin_sender sender;
	uint64_t messages; /* that are to be handed in */
	uint64_t done;     /* read so far */
	struct progress bar;
	uint64_t *ended; /* ids */
	uint32_t n_ended, max_ended;
};

/* ---- The folder ---- */

/* The newest version counts. */
static int
find_uuid(struct store_command *c, uint8_t uuid[static SETTINGS_UUID], struct slu_err *err)
{
	struct store_cursor names = { .store = c->store, .prefix = SETTINGS_PREFIX };
	char newest[STORE_NAME_MAX] = "";
	struct settings s;
	const char *name;
	int rc;

	while (!(rc = store_cursor_next(&names, &name, err)) && name)
		if (settings_version(name))
			(void)snprintf(newest, sizeof newest, "%s", name);
	store_cursor_release(&names);
	if (!rc && !*newest)
		rc = slu_fail(err, SLU_ENOTFOUND, "%s has no settings: it is not a store of servers", c->store->label);
	if (!rc)
		rc = store_read(c, newest, err);
	if (!rc)
		rc = settings_decode(&s, buf_slice(&c->object), err);
	if (!rc)
		memcpy(uuid, s.uuid, SETTINGS_UUID);
	return rc;
}

static int
peek(struct rejoin *r, struct slu_err *err)
{
	const int folder = disk_posix.ops->folder(&disk_posix, r->folder);
	int rc;

	if (folder < 0)
		return disk_fail(folder, "open", r->folder, err);
	rc = cache_peek(&disk_posix, folder, &r->cache, err);
	if (!rc)
		rc = frontfolder_read(&r->front, &disk_posix, folder, err);
	disk_posix.ops->close(&disk_posix, folder);
	return rc;
}

/* ---- The log ---- */

static int
count_message(void *arg, const struct message *m, struct slu_err *err)
{
	struct rejoin *const r = arg;

	(void)m;
	(void)err;
	r->messages++;
	return 0;
}

static int
send_message(void *arg, const struct message *m, struct slu_err *err)
{
	struct rejoin *const r = arg;

	progress_at(&r->bar, ++r->done);
	return rejoin_send(&r->sender, m, err);
}

static void
note_ended(void *arg, uint64_t id)
{
	struct rejoin *const r = arg;

	if (mem_room(&r->ended, &r->max_ended, r->n_ended + 1, sizeof *r->ended)) /* counted as a record, too */
		r->ended[r->n_ended++] = id;
}

static int
read_log(struct rejoin *r, int (*fn)(void *arg, const struct message *m, struct slu_err *err), struct slu_err *err)
{
	r->n_ended = 0;
	r->log = (struct logengine_rejoin){
		.folder = r->folder,
		.from = r->split.at,
		.message = fn,
		.ended = note_ended,
		.arg = r,
	};
	if (r->front.state != FRONT_WHOLE) /* all of a front folder was answered */
		r->log.to = (struct logengine_spot){ r->cache.end_segment, r->cache.end_offset };
	return logengine_rejoin(&r->log, err);
}

static int
send_all(struct rejoin *r, struct slu_err *err)
{
	int rc = rejoin_sender_open(&r->sender, &r->c->s, r->folder, &r->cache, err);

	progress_begin(&r->bar, "handing in", r->messages, false);
	if (!rc)
		rc = read_log(r, send_message, err);
	if (!rc)
		rc = rejoin_flush(&r->sender, err);
	progress_end(&r->bar);
	return rc;
}

/* ---- Output ---- */

static void
print_json(const struct rejoin *r)
{
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "folder", slice_of(r->folder));
	json_out_str(w, "shard", slice_of(r->cache.shard));
	json_out_u64(w, "last_group", r->cache.seen.number);
	json_out_u64(w, "parted_at_group", r->split.group);
	json_out_u64(w, "messages", r->messages);
	json_out_u64(w, "handed_in", r->sender.sent);
	json_out_u64(w, "handed_in_before", r->sender.known);
	json_out_u64(w, "ended", r->log.done);
	json_out_u64(w, "dead", r->log.dead);
	json_out_object(w, "records");
	for (unsigned i = 0; i < LOGENGINE_TYPES; i++)
		if (r->log.types[i])
			json_out_u64(w, logengine_type_name((uint8_t)i), r->log.types[i]);
	json_out_close(w);
	json_out_array(w, "may_come_again");
	for (uint32_t i = 0; i < r->n_ended; i++)
		json_out_u64(w, NULL, r->ended[i]);
	json_out_close(w);
	json_out_bool(w, "applied", r->c->apply);
	json_line_end(&l, stdout);
}

static void
print_text(const struct rejoin *r)
{
	printf("%s: shard %s, ", r->folder, r->cache.shard);
	if (r->split.group)
		printf("another way than the store since group %" PRIu64 "\n", r->split.group);
	else
		printf("the store has no other groups\n");
	printf("  accepted here alone   %" PRIu64 " messages: %" PRIu64 " open, %" PRIu64 " ended, %" PRIu64 " dead\n",
	       r->log.accepted, r->messages, r->log.done, r->log.dead);
	if (r->c->apply)
		printf("  handed in             %" PRIu64 ", and %" PRIu64 " by an earlier run\n", r->sender.sent, r->sender.known);
	printf("  records here alone   ");
	for (unsigned i = 0; i < LOGENGINE_TYPES; i++)
		if (r->log.types[i])
			printf(" %s %" PRIu64, logengine_type_name((uint8_t)i), r->log.types[i]);
	putchar('\n');
	for (uint32_t i = 0; i < r->n_ended; i++)
		printf("  ended here, may come again: %" PRIu64 "\n", r->ended[i]);
}

/* ---- The command ---- */

/* The server of a front folder serves its messages, unless the folder was given up. */
static int
check_front(const struct rejoin *r, struct slu_err *err)
{
	if (r->front.state == FRONT_NONE || !r->split.pinned || memcmp(r->split.life, r->front.uuid, LINE_LIFE) != 0)
		return 0;
	return slu_fail(err, SLU_ECONFLICT,
			"%.200s is the front folder of shard %s; start its server, or give the folder up with `sluice admin "
			"store take`",
			r->folder, r->cache.shard);
}

static int
rejoin_folder(struct rejoin *r, const uint8_t *uuid, struct slu_err *err)
{
	int rc = 0;

	if (memcmp(uuid, r->cache.uuid, CACHE_UUID) != 0)
		return slu_fail(err, SLU_EINVAL, "%.200s is the cache of another store", r->folder);
	rc = rejoin_compare(r->c, r->folder, r->cache.shard, &r->split, err);
	if (!rc)
		rc = check_front(r, err);
	if (!rc)
		rc = read_log(r, count_message, err);
	if (!rc && r->c->apply)
		rc = send_all(r, err);
	if (!rc && r->c->s.json)
		print_json(r);
	else if (!rc)
		print_text(r);
	rejoin_sender_close(&r->sender);
	mem_free(r->ended);
	return rc;
}

static bool
is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Rejoins one folder, if it is a cache and has a log. Counts it in *n then. An error is reported, and the other
 * folders go on. */
static void
try_folder(struct store_command *c, const char *path, const uint8_t *uuid, unsigned *n)
{
	struct rejoin r = { .c = c };
	struct slu_err err = { 0 };
	int rc;

	(void)snprintf(r.folder, sizeof r.folder, "%s", path);
	rc = peek(&r, &err);
	if (rc == SLU_ENOTFOUND || (!rc && r.cache.end_segment == 0))
		return;
	++*n;
	if (rc || rejoin_folder(&r, uuid, &err))
		(void)session_fail(&c->s, &err);
}

/* The data folder of a server is one log, or has one for each shard. */
static unsigned
rejoin_all(struct store_command *c, const uint8_t *uuid)
{
	char path[REJOIN_PATH];
	unsigned n = 0;

	try_folder(c, c->data, uuid, &n);
	for (unsigned i = 0; i < BEAT_SHARDS_MAX; i++) {
		(void)snprintf(path, sizeof path, "%s/%u", c->data, i);
		if (is_folder(path))
			try_folder(c, path, uuid, &n);
	}
	return n;
}

int
store_rejoin(struct store_command *c, const char *word, struct slu_err *err)
{
	uint8_t uuid[SETTINGS_UUID];
	int rc;

	(void)word;
	if (!c->data)
		return session_usage(&c->s, "missing --data FOLDER; see `sluice admin store --help`");
	if (!is_folder(c->data))
		return slu_fail(err, SLU_ENOTFOUND, "no such folder: %s", c->data);
	rc = find_uuid(c, uuid, err);
	if (rc)
		return rc;
	if (rejoin_all(c, uuid) == 0)
		return slu_fail(err, SLU_ENOTFOUND, "%s has no log of a store", c->data);
	if (!c->apply && !c->s.json)
		printf("nothing was changed; --apply hands the messages in to %s\n", c->s.shown);
	return 0;
}
