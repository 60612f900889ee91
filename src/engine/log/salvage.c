/*
 * salvage.c - copies the sound records of a damaged log to a new log.
 *
 *      damaged folder ──whole groups──> a ledger: does it follow? ──> new folder
 *
 *  LOGSALVAGE-1  A change that does not follow, because an earlier change is lost, is left
 *      out. So the new log can be opened, whatever was damaged.
 *  LOGSALVAGE-2  Numbers and tokens continue above all that were found: LOGENGINE-3.
 *  LOGSALVAGE-3  A message whose end is lost may come back. A message whose record is lost is
 *      missing. A key whose head is lost continues with the next message. A lock key has the
 *      state of its last record that was found; a state whose document is lost cannot be
 *      read.
 *  LOGSALVAGE-4  Payload files of kept messages are copied and their sums are checked. A
 *      message whose file is missing or damaged is kept without the file, and quarantined
 *      when it is read.
 */
#include "engine/log/logengine_private.h"

struct salvager {
	struct logengine *l; /* dry: without places */
	struct wal *to;      /* the new log */
	struct logengine_salvage *out;
	bool begun;         /* the current group has its time */
	struct buf message; /* a MESSAGE whose RESTORE comes next */
	uint64_t top;       /* the highest number or token found */
	struct buf files;   /* of struct named: LOGSALVAGE-4 */
};

/* A message that names a payload file; a document if etag is not 0. */
struct named {
	uint64_t id;
	uint64_t etag;
	uint64_t file;
	uint64_t size;
	uint32_t mark;
};

static int
write_record(struct salvager *s, uint8_t type, struct slice body, struct slu_err *err)
{
	const uint64_t size = wal_size(body.n);
	int rc;

	rc = wal_reserve(s->to, WAL_NEW, size, size, err);
	if (rc)
		return rc;
	(void)wal_append(s->to, type, &body, 1);
	s->out->kept++;
	return 0;
}

static bool
has_message(const struct wal_record *rec)
{
	return rec->type == LOGENGINE_ACCEPT || rec->type == LOGENGINE_MESSAGE || rec->type == LOGENGINE_DOCUMENT;
}

static void
note_top(struct salvager *s, const struct wal_record *rec)
{
	struct logengine_entry entry;
	uint64_t top = 0;

	if (logengine_decode(rec->type, rec->body, &entry, NULL))
		return;
	if (has_message(rec))
		top = entry.message.number;
	else if (rec->type == LOGENGINE_LOCK)
		top = logengine_lock_top(&entry.lock.lock);
	else
		top = entry.change.number > entry.change.token ? entry.change.number
							       : entry.change.token;
	s->top = top > s->top ? top : s->top;
}

/* LOGSALVAGE-4: stores every payload file that is named; is_wanted checks at the end which ones live. */
static int
note_file(struct salvager *s, const struct wal_record *rec, struct slu_err *err)
{
	struct named named = { 0 };
	struct logengine_entry entry;

	if (!has_message(rec))
		return 0;
	if (logengine_decode(rec->type, rec->body, &entry, NULL) || !entry.message.file)
		return 0;
	named.id = entry.message.id;
	named.etag = rec->type == LOGENGINE_DOCUMENT ? entry.message.number : 0;
	named.file = entry.message.file;
	named.size = entry.message.payload_size;
	named.mark = entry.message.mark;
	buf_put(&s->files, &named, sizeof named);
	return s->files.failed ? logengine_no_memory(err) : 0;
}

static bool
is_wanted(const struct salvager *s, const struct named *it)
{
	if (it->etag)
		return logengine_names_document(s->l, it->etag);
	return ledger_find_any(s->l->ledger, it->id) != SLAB_NONE;
}

static int
copy_files(struct salvager *s, struct logengine_files *from, struct logengine_files *to,
	   struct slu_err *err)
{
	const size_t n = s->files.n / sizeof(struct named);

	for (size_t i = 0; i < n; i++) {
		struct slu_err why = { 0 };
		struct message m = { 0 };
		struct named it;
		int rc;

		memcpy(&it, s->files.p + i * sizeof it, sizeof it);
		if (!is_wanted(s, &it))
			continue;
		m.id = it.id;
		m.file = it.file;
		m.payload_size = it.size;
		m.mark = it.mark;
		rc = logengine_file_copy(from, &m, to, &why);
		if (rc == SLU_EEXISTS)
			continue;
		if (rc && rc != SLU_ECORRUPT)
			return slu_fail(err, (enum slu_code)rc, "%s", why.text);
		s->out->files += rc == 0;
		if (rc && s->out->bad_files++ == 0)
			s->out->first_bad = why;
	}
	return 0;
}

static int
copy_payloads(struct salvager *s, struct disk *disk, const char *from, const char *to,
	      struct slu_err *err)
{
	struct logengine_files old, new;
	int rc;

	if (s->files.n == 0)
		return 0;
	logengine_files_init(&old);
	logengine_files_init(&new);
	rc = logengine_files_open(&old, disk, NULL, from, true, err);
	if (!rc)
		rc = logengine_files_open(&new, disk, NULL, to, false, err);
	if (!rc)
		rc = logengine_files_folder(&new, err);
	if (!rc)
		rc = copy_files(s, &old, &new, err);
	logengine_files_release(&new);
	logengine_files_release(&old);
	return rc;
}

/* Writes a record that follows; a MESSAGE is written with its RESTORE. */
static int
keep(struct salvager *s, const struct wal_record *rec, struct slu_err *err)
{
	int rc;

	rc = note_file(s, rec, err);
	if (rc)
		return rc;
	if (rec->type == LOGENGINE_MESSAGE) {
		buf_clear(&s->message);
		buf_put(&s->message, rec->body.p, rec->body.n);
		return s->message.failed ? logengine_no_memory(err) : 0;
	}
	if (logengine_is_restore(rec->type) && s->message.n == 0)
		return 0; /* the log begins with it */
	if (logengine_is_restore(rec->type))
		rc = write_record(s, LOGENGINE_MESSAGE, buf_slice(&s->message), err);
	if (!rc)
		rc = write_record(s, rec->type, rec->body, err);
	buf_clear(&s->message);
	return rc;
}

static int
salvage_one(const struct wal_record *rec, bool last, void *arg, struct slu_err *err)
{
	struct salvager *s = arg;
	struct slu_err why;
	int rc;

	if (!s->begun)
		wal_begin(s->to, rec->time);
	s->begun = !last;
	note_top(s, rec);
	rc = logengine_replay(NULL, rec, s->l, &why);
	if (rc == SLU_ENOMEM)
		return logengine_no_memory(err);
	if (!rc)
		rc = keep(s, rec, err);
	else if (s->out->n_left++ == 0)
		s->out->first_left = why;
	if (rc == SLU_ECORRUPT || rc == SLU_EINVAL) {
		s->l->has_moved = false;
		buf_clear(&s->message);
		rc = 0;
	}
	return rc || !last ? rc : wal_commit(s->to, false, err);
}

/* LOGSALVAGE-2 */
static int
write_end(struct salvager *s, struct slu_err *err)
{
	const uint64_t top = s->top > s->l->ceiling ? s->top : s->l->ceiling;
	const struct logengine_entry entry = {
		.type = LOGENGINE_CEILING,
		.change = { .number = top + (1 << 20) },
		.highest = s->l->highest_id,
	};
	struct logengine_bytes bytes;
	int rc;

	logengine_encode(&entry, &bytes);
	wal_begin(s->to, 0);
	rc = write_record(s, LOGENGINE_CEILING, bytes.parts[0], err);
	return rc ? rc : wal_commit(s->to, true, err);
}

static int
count_old(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	(void)w;
	(void)rec;
	(void)arg;
	return slu_fail(err, SLU_EEXISTS, "the folder has a log already");
}

static int
copy(struct salvager *s, struct disk *disk, const char *from, const char *to,
     struct slu_err *err)
{
	const struct wal_conf conf = { .disk = disk, .folder = to, .first_size = WAL_FIRST_SIZE };
	int rc;

	rc = wal_open(&s->to, &conf, count_old, NULL, err);
	if (rc)
		return rc;
	rc = salvage_read(disk, from, salvage_one, s, &s->out->found, err);
	if (!rc) /* files are on disk before the last group of the log is synced */
		rc = copy_payloads(s, disk, from, to, err);
	if (!rc)
		rc = write_end(s, err);
	wal_close(s->to);
	return rc;
}

int
logengine_salvage(struct disk *disk, const char *from, const char *to, struct logengine_salvage *out,
		  struct slu_err *err)
{
	const struct engine_conf conf = { .folder = from };
	struct salvager s = { .out = out };
	int rc;

	*out = (struct logengine_salvage){ 0 };
	rc = logengine_new(&s.l, &conf, &(struct logengine_conf){ 0 }, err);
	if (rc)
		return rc;
	s.l->dry = true;
	buf_init(&s.message, SIZE_MAX);
	buf_init(&s.files, SIZE_MAX);
	rc = copy(&s, disk, from, to, err);
	buf_release(&s.message);
	buf_release(&s.files);
	logengine_free(s.l);
	return rc;
}
