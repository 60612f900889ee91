/*
 * journal.c - `sluice admin journal`: the log of a shard, read and not changed.
 */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/report.h"

#include "base/json_out.h"
#include "base/rfc3339.h"
#include "engine/log.h"
#include "engine/log_record.h"
#include "wal/wal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct journal {
	const char *folder;
	const char *to; /* salvage: the new one */
	bool json;
	bool wants_help;
	uint64_t from;  /* the first sequence to show; 0: all */
	uint64_t limit; /* records; 0: all */
	uint64_t shown;
	struct buf line;
	struct json_out out; /* of the line, when it is JSON */
};

/* ---- check ---- */

static void
print_facts(const struct journal *j, const struct log_facts *f)
{
	char time[RFC3339_TEXT];

	if (j->json) {
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
	       "  messages  %" PRIu32 " in %" PRIu32 " queues, %" PRIu32 " set aside as damaged\n"
	       "  locks     %" PRIu32 " keys; %" PRIu32 " messages have a state\n"
	       "  payloads  %" PRIu64 " in files of their own\n"
	       "  counters  %s\n"
	       "  stopped   %s\n",
	       j->folder, f->records, f->first_seq, f->last_seq,
	       rfc3339_format(f->time, time), f->messages, f->queues, f->damaged, f->locks,
	       f->states, f->files,
	       f->compared ? "equal a scan"
			   : "not compared with a scan: so many queues and messages take too long",
	       f->closed ? "cleanly" : "without saying so: killed, or the power went");
}

static int
check(struct journal *j, struct slu_err *err)
{
	const struct engine_conf conf = { .folder = j->folder };
	struct log_facts facts;
	int rc;

	rc = log_check(&conf, &facts, err);
	if (rc)
		return rc;
	if (facts.records == 0)
		return slu_fail(err, SLU_ENOTFOUND, "there is no log in it");
	if (facts.wrong)
		return slu_fail(err, SLU_ECORRUPT, "the records do not fit together: %s",
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
line_plain(struct journal *j, const struct wal_record *rec, const struct log_entry *entry)
{
	char time[RFC3339_TEXT];

	buf_printf(&j->line, "%" PRIu64 " %08" PRIu32 ".log:%" PRIu32 " %s %s", rec->seq,
		   rec->where.segment, rec->where.offset, rfc3339_format(rec->time, time),
		   log_type_name(rec->type));
	log_show(entry, show_plain, j);
}

static void
line_json(struct journal *j, const struct wal_record *rec, const struct log_entry *entry)
{
	json_out_init(&j->out, &j->line);
	json_out_object(&j->out, NULL);
	json_out_u64(&j->out, "seq", rec->seq);
	json_out_u64(&j->out, "segment", rec->where.segment);
	json_out_u64(&j->out, "offset", rec->where.offset);
	json_out_time(&j->out, "time", rec->time);
	json_out_str(&j->out, "type", slice_of(log_type_name(rec->type)));
	json_out_object(&j->out, "fields");
	log_show(entry, show_json, j);
	json_out_close(&j->out);
	json_out_close(&j->out);
	json_out_end(&j->out);
}

static int
dump_one(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	struct journal *j = arg;
	struct log_entry entry;
	int rc;

	(void)w;
	if (rec->seq < j->from || (j->limit && j->shown == j->limit))
		return 0;
	rc = log_decode(rec->type, rec->body, &entry, err);
	if (rc)
		return rc;
	buf_clear(&j->line);
	if (j->json)
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
	struct log_salvage s;
	int rc;

	rc = log_salvage(NULL, j->folder, j->to, &s, err);
	if (rc)
		return rc;
	if (j->json) {
		printf("{\"kept\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"broken\":%" PRIu64
		       ",\"left_out\":%" PRIu64 ",\"headless\":%" PRIu32
		       ",\"payload_files\":%" PRIu64 ",\"lost_payloads\":%" PRIu64 "}\n",
		       s.kept, s.found.missing, s.found.broken, s.n_left, s.found.headless,
		       s.files, s.bad_files);
		return 0;
	}
	printf("%s has what could be saved\n"
	       "  kept      %" PRIu64 " records\n"
	       "  missing   %" PRIu64 " were not found\n"
	       "  broken    %" PRIu64 " are of groups that are not whole\n"
	       "  left out  %" PRIu64 " do not follow from what is left%s%s\n"
	       "  headless  %" PRIu32 " segments that cannot be read at all\n"
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

static void
help(const struct arg *rows, size_t n)
{
	puts("usage: sluice admin journal check|dump FOLDER [options]\n"
	     "       sluice admin journal salvage FOLDER NEW-FOLDER [options]\n\n"
	     "check reads every record of a log with its checksum and rebuilds what they add up\n"
	     "to. dump shows the records. salvage writes what can still be read of a damaged log\n"
	     "to NEW-FOLDER, which has no log yet. FOLDER is the data folder of a server or, if it\n"
	     "has several shards, that of a shard, as data/0. FOLDER is never changed. The server\n"
	     "must not be running.\n");
	args_help(rows, n, stdout);
	puts("\nexit codes:\n  0  the log is sound; dump, salvage: done\n"
	     "  1  the log is damaged, in use or not there\n  2  the call was wrong\n"
	     "\nexamples:\n  sluice admin journal check data\n"
	     "  sluice admin journal dump data --from 1000 --limit 20\n"
	     "  sluice admin journal dump data --json | jq .type | sort | uniq -c\n"
	     "  sluice admin journal salvage data saved");
}

static int
usage(const struct journal *j, const char *what)
{
	char text[320];

	(void)snprintf(text, sizeof text, "%s; see `sluice admin journal --help`", what);
	return cli_report("admin journal", j->json, SLU_EINVAL, CLI_USAGE, text);
}

static int
unknown(const struct journal *j, const char *verb)
{
	struct slu_err err;

	(void)args_check_form("word", "check|dump|salvage", verb, &err);
	return usage(j, err.text);
}

static int
run(struct journal *j, const struct verb *verb)
{
	struct slu_err err = { 0 }, why;
	struct stat st;
	int rc;

	if (stat(j->folder, &st) || !S_ISDIR(st.st_mode)) {
		slu_fail(&err, SLU_EFAILED, "%s: no such folder", j->folder);
		return cli_report("admin journal", j->json, SLU_EFAILED, CLI_FAILED, err.text);
	}
	rc = verb->run(j, &err);
	if (!rc)
		return CLI_OK;
	why = err;
	slu_fail(&err, rc, "%s: %s", j->folder, why.text);
	return cli_report("admin journal", j->json, rc, CLI_FAILED, err.text);
}

int
cli_admin_journal(int argc, char **argv)
{
	struct journal j = { 0 };
	const struct arg rows[] = {
		{ "--json", ARG_FLAG, &j.json, "print JSON; dump: a line for each record" },
		{ "--from", ARG_NUMBER, &j.from, "dump: the number of the first record to show (the oldest)" },
		{ "-l, --limit", ARG_NUMBER, &j.limit, "dump: how many records to show (all)" },
		{ "-h, --help", ARG_FLAG, &j.wants_help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	const struct verb *verb;
	struct slu_err err;

	argc--;
	argv++;
	j.json = args_have_json(argc, argv);
	if (args_parse(&argc, argv, rows, n, &err))
		return usage(&j, err.text);
	if (j.wants_help) {
		help(rows, n);
		return CLI_OK;
	}
	verb = argc > 0 ? find(argv[0]) : NULL;
	if (argc > 0 && !verb)
		return unknown(&j, argv[0]);
	if (!verb || argc != 1 + verb->folders)
		return usage(&j, "expected check FOLDER, dump FOLDER or salvage FOLDER NEW-FOLDER");
	j.folder = argv[1];
	j.to = argv[verb->folders];
	return run(&j, verb);
}
