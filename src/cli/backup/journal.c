/*
 * journal.c - `sluice admin journal`: reads the log of a shard, and does not change it.
 */
#include "cli/lib/report.h"
#include "cli/lib/session.h"

#include "base/json/json_out.h"
#include "base/rfc3339.h"
#include "engine/log/logengine.h"
#include "engine/log/record.h"
#include "wal/wal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

struct journal {
	struct session s;
	const char *folder;
	const char *to; /* salvage: the new folder */
	uint64_t from;  /* the first sequence number to show; 0 = all */
	uint64_t limit; /* how many records to show; 0 = all */
	uint64_t shown;
	struct buf line;
	struct json_out out; /* writes the line as JSON */
};

/* ---- check ---- */

static void
print_facts(const struct journal *j, const struct logengine_facts *f)
{
	char time[RFC3339_TEXT];

	if (j->s.json) {
		printf("{\"records\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64
		       ",\"time\":\"%s\",\"messages\":%" PRIu32 ",\"damaged\":%" PRIu32 ",\"queues\":%" PRIu32
		       ",\"lock_keys\":%" PRIu32 ",\"states\":%" PRIu32 ",\"payload_files\":%" PRIu64 ",\"closed\":%s,\"compared\":%s}\n",
		       f->records, f->first_seq, f->last_seq, rfc3339_format(f->time, time),
		       f->messages, f->damaged, f->queues, f->locks, f->states, f->files,
		       f->closed ? "true" : "false", f->compared ? "true" : "false");
		return;
	}
	printf("%s is sound\n"
	       "  records   %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")\n"
	       "  last      %s\n"
	       "  messages  %" PRIu32 " in %" PRIu32 " queues, %" PRIu32 " damaged\n"
	       "  locks     %" PRIu32 " keys; %" PRIu32 " messages have a state\n"
	       "  payloads  %" PRIu64 " in separate files\n"
	       "  counters  %s\n"
	       "  stopped   %s\n",
	       j->folder, f->records, f->first_seq, f->last_seq,
	       rfc3339_format(f->time, time), f->messages, f->queues, f->damaged, f->locks,
	       f->states, f->files,
	       f->compared ? "equal a scan"
			   : "not compared with a scan: too many queues and messages",
	       f->closed ? "cleanly" : "by a crash or a power failure");
}

static int
check(struct journal *j, struct slu_err *err)
{
	const struct engine_conf conf = { .folder = j->folder };
	struct logengine_facts facts;
	int rc;

	rc = logengine_check(&conf, &facts, err);
	if (rc)
		return rc;
	if (facts.records == 0)
		return slu_fail(err, SLU_ENOTFOUND, "the folder has no log");
	if (facts.wrong)
		return slu_fail(err, SLU_ECORRUPT, "inconsistent records: %s",
				facts.wrong);
	if (facts.missing)
		return slu_fail(err, SLU_ECORRUPT, "%" PRIu32 " documents of lock keys or messages "
						   "are missing",
				facts.missing);
	if (facts.bad_files)
		return slu_fail(err, SLU_ECORRUPT, "%" PRIu64 " of %" PRIu64 " payload files: %.180s",
				facts.bad_files, facts.files, facts.first_bad.text);
	print_facts(j, &facts);
	return 0;
}

/* ---- dump ---- */

static void
show_plain(void *arg, const char *name, int64_t number, struct slice text)
{
	struct journal *j = arg;

	buf_printf(&j->line, " %s=", name);
	if (!text.p) {
		buf_printf(&j->line, "%" PRId64, number);
		return;
	}
	for (size_t i = 0; i < text.n && i < 64; i++)
		buf_putc(&j->line, text.p[i] >= ' ' && text.p[i] < 127 ? text.p[i] : '?');
}

static void
show_json(void *arg, const char *name, int64_t number, struct slice text)
{
	struct journal *j = arg;

	if (text.p)
		json_out_str(&j->out, name, text);
	else
		json_out_i64(&j->out, name, number);
}

static void
line_plain(struct journal *j, const struct wal_record *rec, const struct logengine_entry *entry)
{
	char time[RFC3339_TEXT];

	buf_printf(&j->line, "%" PRIu64 " %08" PRIu32 ".log:%" PRIu32 " %s %s", rec->seq,
		   rec->where.segment, rec->where.offset, rfc3339_format(rec->time, time),
		   logengine_type_name(rec->type));
	logengine_show(entry, show_plain, j);
}

static void
line_json(struct journal *j, const struct wal_record *rec, const struct logengine_entry *entry)
{
	json_out_open(&j->out, &j->line);
	json_out_u64(&j->out, "seq", rec->seq);
	json_out_u64(&j->out, "segment", rec->where.segment);
	json_out_u64(&j->out, "offset", rec->where.offset);
	json_out_time(&j->out, "time", rec->time);
	json_out_str(&j->out, "type", slice_of(logengine_type_name(rec->type)));
	json_out_object(&j->out, "fields");
	logengine_show(entry, show_json, j);
	json_out_close(&j->out);
	json_out_finish(&j->out);
}

static int
dump_one(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	struct journal *j = arg;
	struct logengine_entry entry;
	int rc;

	(void)w;
	if (rec->seq < j->from || (j->limit && j->shown == j->limit))
		return 0;
	rc = logengine_decode(rec->type, rec->body, &entry, err);
	if (rc)
		return rc;
	buf_clear(&j->line);
	if (j->s.json)
		line_json(j, rec, &entry);
	else
		line_plain(j, rec, &entry);
	puts(buf_str(&j->line));
	j->shown++;
	return 0;
}

static int
dump(struct journal *j, struct slu_err *err)
{
	const struct wal_conf conf = { .folder = j->folder, .read_only = true };
	struct wal *w = NULL;
	int rc;

	buf_init(&j->line, 1 << 20);
	rc = wal_open(&w, &conf, dump_one, j, err);
	if (!rc)
		wal_close(w);
	buf_release(&j->line);
	return rc;
}

/* ---- salvage ---- */

static int
salvage(struct journal *j, struct slu_err *err)
{
	struct logengine_salvage s;
	int rc;

	rc = logengine_salvage(NULL, j->folder, j->to, &s, err);
	if (rc)
		return rc;
	if (j->s.json) {
		printf("{\"kept\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"broken\":%" PRIu64
		       ",\"left_out\":%" PRIu64 ",\"headless\":%" PRIu32
		       ",\"payload_files\":%" PRIu64 ",\"lost_payloads\":%" PRIu64 "}\n",
		       s.kept, s.found.missing, s.found.broken, s.n_left, s.found.headless,
		       s.files, s.bad_files);
		return 0;
	}
	printf("%s: salvaged\n"
	       "  kept      %" PRIu64 " records\n"
	       "  missing   %" PRIu64 " not found\n"
	       "  broken    %" PRIu64 " in incomplete groups\n"
	       "  left out  %" PRIu64 " depend on missing records%s%s\n"
	       "  headless  %" PRIu32 " segments without a readable head\n"
	       "  payloads  %" PRIu64 " files copied, %" PRIu64 " missing or damaged%s%s\n",
	       j->to, s.kept, s.found.missing, s.found.broken, s.n_left,
	       s.n_left ? "; the first: " : "", s.n_left ? s.first_left.text : "",
	       s.found.headless, s.files, s.bad_files, s.bad_files ? "; the first: " : "",
	       s.bad_files ? s.first_bad.text : "");
	return 0;
}

/* ---- The command ---- */

static const struct verb {
	const char *name;
	int (*run)(struct journal *j, struct slu_err *err);
	int folders;
} verbs[] = {
	{ "check", check, 1 },
	{ "dump", dump, 1 },
	{ "salvage", salvage, 2 },
};

static const struct verb *
find(const char *name)
{
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	return NULL;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct journal *const j = (void *)s;
	const struct verb *const verb = find(j->s.words[0]);
	struct slu_err why;
	struct stat st;
	int rc;

	if (j->s.n_words != 1 + verb->folders)
		return session_usage(&j->s, "wrong number of folders; expected check FOLDER, dump FOLDER or salvage FOLDER NEW-FOLDER; "
					    "see `sluice admin journal --help`");
	j->folder = j->s.words[1];
	j->to = j->s.words[verb->folders];
	if (stat(j->folder, &st) || !S_ISDIR(st.st_mode))
		return slu_fail(err, SLU_EFAILED, "%s: no such folder", j->folder);
	rc = verb->run(j, &why);
	if (!rc)
		return 0;
	slu_fail(err, rc, "%s: %s", j->folder, why.text);
	j->s.exit = cli_report(j->s.command->name, j->s.json, rc, CLI_FAILED, err->text);
	return 0;
}

const struct command cli_admin_journal = {
	.name = "admin journal",
	.summary = "check, show or salvage the log of a shard",
	.usage = "check|dump|salvage FOLDER [NEW-FOLDER] [options]",
	.text = "check reads every record of a log, compares its checksum and rebuilds the queues. dump\n"
		"prints the records, with --json a line for each. salvage writes the readable records of\n"
		"a damaged log to NEW-FOLDER, which must not have a log. FOLDER is the data folder of a\n"
		"server; with several shards, the folder of a shard, like data/0. FOLDER is never\n"
		"changed. The server must not be running.\n",
	.examples = "  sluice admin journal check data\n"
		    "  sluice admin journal dump data --from 1000 --limit 20\n"
		    "  sluice admin journal dump data --json | jq .type | sort | uniq -c\n"
		    "  sluice admin journal salvage data saved\n"
		    "\nexit codes:\n"
		    "  0  the log is sound; dump, salvage: done\n"
		    "  1  the log is damaged, in use or missing\n"
		    "  2  wrong options or words\n",
	.words = { 1, 3 },
	.options = CLI_JSON,
	CLI_ARGS({ "--from", ARG_NUMBER, AT(journal, from), "dump: number of the first record to show (the oldest)" },
		 { "-l, --limit", ARG_NUMBER, AT(journal, limit), "dump: how many records to show (all)" }),
	.size = sizeof(struct journal),
	.run = run,
};
