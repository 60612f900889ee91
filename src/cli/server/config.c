/*
 * config.c - `sluice admin config`: shows the settings of a running server, and checks and compares
 * configuration files before a server reads them.
 */
#include "cli/lib/session.h"
#include "cli/lib/table.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"
#include "conf/options.h"

#include <inttypes.h>
#include <unistd.h>

enum {
	SAMPLES = 10000 /* sample queues, to compare maps that place queues by hash */
};

static int
load(struct conf *c, const char *file, struct conf_faults *faults)
{
	const char *words[] = { "sluiced", "--config", file };

	return conf_load(c, engine_rows, 3, (char **)words, faults); /* conf_load only reads them */
}

/* ---- check ---- */

static void
put_texts(struct json_out *w, const char *name, const struct conf_faults *f)
{
	json_out_array(w, name);
	for (unsigned i = 0; i < f->n; i++)
		json_out_str(w, NULL, slice_of(f->items[i]));
	json_out_close(w);
}

static void
print_json(struct json_out *w, struct buf *out)
{
	json_out_finish(w);
	puts(buf_str(out));
	buf_release(out);
}

static void
print_faults(const struct conf_faults *f, const char *what)
{
	for (unsigned i = 0; i < f->n; i++)
		fprintf(stderr, "%s%s\n", what, f->items[i]);
	if (f->more)
		fprintf(stderr, "%sand %u more\n", what, f->more);
}

/* Prints the errors and warnings of a file. Returns an enum cli_exit. */
static int
check_file(const char *file, bool json)
{
	struct conf_faults faults = { 0 };
	struct json_out w;
	struct buf out;
	struct conf c;
	const int rc = load(&c, file, &faults);

	if (json) {
		buf_init(&out, CONF_JSON_MAX);
		json_out_open(&w, &out);
		json_out_bool(&w, "ok", rc == 0);
		put_texts(&w, "faults", &faults);
		put_texts(&w, "warnings", &c.sharding->warnings);
		print_json(&w, &out);
	} else {
		print_faults(&faults, "");
		print_faults(&c.sharding->warnings, "warning: ");
		if (!rc)
			printf("%s: the settings are valid\n", file);
	}
	faults_release(&faults);
	conf_release(&c);
	return rc ? CLI_FAILED : CLI_OK;
}

/* ---- diff ---- */

struct side {
	struct conf conf;
	struct shardmap *map;
};

/* A difference: a queue, or a group of queues, on another shard. */
struct move {
	const char *kind, *name, *from, *to;
	bool served; /* the new map serves it from both shards until it is moved */
};

struct diff {
	struct side old, new;
	struct text_table table;
	struct json_out w;
	struct buf out;
	bool json;
	unsigned moves, unserved;
};

/* Not a valid name: stands for a namespace or queue without a rule. */
static const struct slice any = { "\1", 1 };

static const char *
lives(const struct side *s, struct slice tenant, struct slice command)
{
	struct shard_choice c;

	return shardmap_current(s->map, tenant, command, &c, NULL) ? "nowhere"
								   : shardmap_name(s->map, c.shard);
}

/* Does the new map name the old shard as the previous one? */
static bool
is_served(const struct side *new, struct slice tenant, struct slice command, const char *from)
{
	struct shard_choice all[SUPPLIED_MAX];
	unsigned n = 0;

	if (shardmap_all(new->map, tenant, command, all, &n, NULL))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(shardmap_name(new->map, all[i].shard), from) == 0)
			return true;
	return false;
}

static void
tell(struct diff *d, const struct move *m)
{
	d->moves++;
	d->unserved += !m->served;
	if (!d->json) {
		table_cell(&d->table, "%s", m->kind);
		table_cell(&d->table, "%s", m->name);
		table_cell(&d->table, "%s", m->from);
		table_cell(&d->table, "%s", m->to);
		table_cell(&d->table, "%s", m->served ? "both, until moved" : "the new one alone");
		return;
	}
	json_out_object(&d->w, NULL);
	json_out_str(&d->w, "kind", slice_of(m->kind));
	json_out_str(&d->w, "name", slice_of(m->name));
	json_out_str(&d->w, "from", slice_of(m->from));
	json_out_str(&d->w, "to", slice_of(m->to));
	json_out_bool(&d->w, "previous", m->served);
	json_out_close(&d->w);
}

static void
compare(struct diff *d, const char *kind, const char *name, struct slice tenant,
	struct slice command)
{
	const char *const from = lives(&d->old, tenant, command);
	const char *const to = lives(&d->new, tenant, command);

	if (strcmp(from, to) != 0)
		tell(d, &(struct move){ kind, name, from, to,
					is_served(&d->new, tenant, command, from) });
}

static bool
has_rule(const struct side *s, const struct sharding_rule *r)
{
	const struct sharding_layout *const l = &s->conf.sharding->now;

	for (unsigned i = 0; i < l->n_rules; i++)
		if (l->rules[i].by == r->by && strcmp(l->rules[i].name, r->name) == 0)
			return true;
	return false;
}

/* Visits all names of the first map, and the names that only the second map has. */
static void
compare_rules(struct diff *d, const struct side *s, const struct side *but)
{
	const struct sharding_layout *const l = &s->conf.sharding->now;

	for (unsigned i = 0; i < l->n_rules; i++) {
		const struct sharding_rule *const r = &l->rules[i];

		if (but && has_rule(but, r))
			continue;
		if (r->by == SUPPLIER_TENANT)
			compare(d, "tenant", r->name, slice_of(r->name), any);
		else
			compare(d, r->by == SUPPLIER_COMMAND ? "command" : "from", r->name, any,
				slice_of(r->name));
	}
}

static bool
by_hash(const struct side *s)
{
	const char *const word = sharding_suppliers[s->conf.sharding_supplier];

	return s->conf.sharding_enabled &&
	       (strcmp(word, "hash") == 0 || strcmp(word, "ring") == 0);
}

/* Estimates the percentage of hashed queues that change their shard. */
static unsigned
share(const struct diff *d)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		char name[16];
		const int n = snprintf(name, sizeof name, "queue-%u", i);
		const struct slice command = { name, (size_t)n };

		moved += strcmp(lives(&d->old, any, command), lives(&d->new, any, command)) != 0;
	}
	return (100 * moved + SAMPLES - 1) / SAMPLES;
}

/* Do the maps differ in anything but the version? */
static bool
differs(const struct diff *d)
{
	struct shardmap *as_old;
	bool same;

	if (sharding_map(&d->new.conf, shardmap_version(d->old.map), &as_old, NULL))
		return true;
	same = shardmap_hash(as_old) == shardmap_hash(d->old.map);
	shardmap_free(as_old);
	return !same;
}

static void
put_side(struct diff *d, const char *name, const struct side *s)
{
	char hash[17];

	(void)snprintf(hash, sizeof hash, "%016" PRIx64, shardmap_hash(s->map));
	json_out_object(&d->w, name);
	json_out_u64(&d->w, "version", shardmap_version(s->map));
	json_out_str(&d->w, "hash", slice_of(hash));
	json_out_close(&d->w);
}

static void
print_text(const struct diff *d, bool changed, bool rises, unsigned percent)
{
	if (d->moves)
		(void)table_print(&d->table, stdout, isatty(STDOUT_FILENO)); /* without memory there is no table */
	else if (!percent)
		puts(changed ? "no queue changes its shard" : "the maps are the same");
	if (percent)
		printf("about %u %% of the queues change their shard\n", percent);
	if (d->unserved || (percent && !d->new.conf.sharding->before.said))
		puts("messages on the previous shards are not served until they are moved: list the shards in "
		     "sharding.previousShards, or migrate first");
	if (changed && !rises)
		fprintf(stderr, "sharding.version must rise: it is %" PRIu64 " in both, or lower in the "
				"new one\n",
			shardmap_version(d->old.map));
}

/* Compares the maps. Returns true if a server may change from the old to the new one. */
static bool
run(struct diff *d)
{
	const bool changed = differs(d);
	const bool rises = shardmap_version(d->new.map) > shardmap_version(d->old.map);
	unsigned percent = 0;

	if (by_hash(&d->old) || by_hash(&d->new)) {
		percent = share(d);
	} else {
		compare(d, "all others", "", any, any);
		compare_rules(d, &d->old, NULL);
		compare_rules(d, &d->new, &d->old);
	}
	if (d->json) {
		json_out_close(&d->w);
		json_out_u64(&d->w, "percent", percent);
		put_side(d, "old", &d->old);
		put_side(d, "new", &d->new);
		json_out_bool(&d->w, "changed", changed);
		json_out_bool(&d->w, "ok", !changed || rises);
	} else {
		print_text(d, changed, rises, percent);
	}
	return !changed || rises;
}

static int
open_side(struct side *s, const char *file)
{
	struct conf_faults faults = { 0 };
	struct slu_err err = { 0 };
	int rc = load(&s->conf, file, &faults);

	if (rc)
		print_faults(&faults, "");
	else
		rc = sharding_map(&s->conf, s->conf.sharding_version, &s->map, &err);
	if (rc && err.code)
		fprintf(stderr, "%s: %s\n", file, err.text);
	faults_release(&faults);
	return rc;
}

static void
close_side(struct side *s)
{
	shardmap_free(s->map);
	conf_release(&s->conf);
}

/* Prints the queues that the second file places on another shard. Returns an enum cli_exit: CLI_FAILED
 * if one of the files is invalid, or if a server would refuse to change from the first to the second. */
static int
diff_files(const char *old, const char *new, bool json)
{
	static const char *const heads[] = { "WHAT", "NAME", "FROM", "TO", "SERVED FROM" };
	struct diff d = { .json = json };
	int rc = open_side(&d.old, old);
	bool fine = false;

	rc = open_side(&d.new, new) ? SLU_EINVAL : rc;
	if (!rc) {
		table_init(&d.table, heads, sizeof heads / sizeof heads[0], 0);
		buf_init(&d.out, CONF_JSON_MAX);
		json_out_open(&d.w, &d.out);
		json_out_array(&d.w, "moves");
		fine = run(&d);
		if (json)
			print_json(&d.w, &d.out);
		table_release(&d.table);
		buf_release(&d.out);
	}
	close_side(&d.old);
	close_side(&d.new);
	return fine ? CLI_OK : CLI_FAILED;
}

/* ---- the command ---- */

struct shown_setting {
	struct slice value;
	struct slice from;
};

static void
add_setting(struct text_table *t, const struct json_str *name, struct json *in)
{
	static const struct json_field fields[] = {
		JSON_FIELD(raw, struct shown_setting, value),
		JSON_FIELD(text, struct shown_setting, from),
	};
	struct shown_setting s = { 0 };

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &s);
	table_text(t, name->raw);
	table_text(t, s.value.n ? s.value : SLICE("-"));
	table_text(t, s.from);
}

static int
print_settings(struct slice answer, struct slu_err *err)
{
	static const char *const heads[] = { "SETTING", "VALUE", "FROM" };
	char *room = mem_alloc(answer.n + 1);
	struct json_str name;
	struct text_table t;
	struct json r;
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for the answer");
	table_init(&t, heads, COUNT(heads), 0);
	json_init(&r, answer, JSON_DEPTH);
	json_room(&r, room, answer.n);
	json_object(&r);
	while (json_member(&r, &name))
		add_setting(&t, &name, &r);
	rc = json_end(&r, err);
	if (!rc)
		(void)table_print(&t, stdout, session_colours(stdout)); /* without memory there is no table */
	table_release(&t);
	mem_free(room);
	return rc ? SLU_EUNKNOWN : 0;
}

/* The subcommands that need no server. */
static int
look_at_files(struct session *s)
{
	if (s->n_words == 2 && strcmp(s->words[0], "check") == 0)
		s->exit = check_file(s->words[1], s->json);
	else if (s->n_words == 3 && strcmp(s->words[0], "diff") == 0)
		s->exit = diff_files(s->words[1], s->words[2], s->json);
	else
		return session_usage(s, "unexpected words; expected check FILE, diff OLD NEW, or none; see `sluice admin config --help`");
	return 0;
}

static int
config(struct session *s, struct slu_err *err)
{
	struct slice answer;
	int rc;

	if (s->n_words)
		return look_at_files(s);
	query_path(&s->query, "/v1/admin/config");
	rc = query_get(&s->query, &answer, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		rc = print_settings(answer, err);
	return rc;
}

const struct command cli_admin_config = {
	.name = "admin config",
	.summary = "show every setting of the server and its source",
	.usage = "[check FILE | diff OLD NEW] [options]",
	.text = "Prints every setting of the running server and its source. Secrets are masked.\n\n"
		"check reads a file as sluiced does, with the variables of this environment, and prints\n"
		"its errors (exit code 1) and warnings. diff prints the queues and namespaces that the\n"
		"second file places on another shard; it exits 1 if a file is invalid, or if the maps\n"
		"differ and sharding.version does not rise. Both need no server.\n"
		"`sluiced --check-config` also checks the files, folders and addresses in the settings.\n",
	.examples = "  sluice admin config\n  sluice admin config --json | jq '.\"log.level\"'\n"
		    "  sluice admin config check /etc/sluice/sluice.yaml\n"
		    "  sluice admin config diff /etc/sluice/sluice.yaml new.yaml --json\n",
	.words = { 0, 3 },
	.options = CLI_SERVER,
	.run = config,
};
