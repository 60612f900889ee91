/*
 * config.c - `sluice admin config check` and `diff`.
 */
#include "cli/config.h"

#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "conf/options.h"

#include <inttypes.h>
#include <unistd.h>

enum {
	SAMPLES = 10000 /* of queues, where a hash chooses */
};

static int
load(struct conf *c, const char *file, struct conf_faults *faults)
{
	const char *words[] = { "sluiced", "--config", file };

	return conf_load(c, 3, (char **)words, faults); /* they are only read */
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
	json_out_close(w);
	json_out_end(w);
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

int
config_check(const char *file, bool json)
{
	struct conf_faults faults = { 0 };
	struct json_out w;
	struct buf out;
	struct conf c;
	const int rc = load(&c, file, &faults);

	if (json) {
		buf_init(&out, CONF_JSON_MAX);
		json_out_init(&w, &out);
		json_out_object(&w, NULL);
		json_out_bool(&w, "ok", rc == 0);
		put_texts(&w, "faults", &faults);
		put_texts(&w, "warnings", &c.sharding->warnings);
		print_json(&w, &out);
	} else {
		print_faults(&faults, "");
		print_faults(&c.sharding->warnings, "warning: ");
		if (!rc)
			printf("%s: the settings are fine\n", file);
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

/* A queue, or all of a kind, that lives elsewhere. */
struct move {
	const char *kind, *name, *from, *to;
	bool served; /* from both, until it has been moved */
};

struct diff {
	struct side old, new;
	struct table table;
	struct json_out w;
	struct buf out;
	bool json;
	unsigned moves, unserved;
};

/* No tenant and no command is called that. */
static const struct slice any = { "\1", 1 };

static const char *
lives(const struct side *s, struct slice tenant, struct slice command)
{
	struct shard_choice c;

	return shardmap_current(s->map, tenant, command, &c, NULL) ? "nowhere"
								   : shardmap_name(s->map, c.shard);
}

/* Does the new map say that it lived there? */
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

/* All that one side names; of the second what the first does not. */
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

/* How many of a hundred queues live elsewhere, where a hash chooses. */
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

/* Is there any difference but in the version? */
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
		(void)table_print(&d->table, stdout, isatty(STDOUT_FILENO)); /* no memory: no table */
	else if (!percent)
		puts(changed ? "no queue lives elsewhere" : "the maps are the same");
	if (percent)
		printf("about %u %% of the queues live elsewhere\n", percent);
	if (d->unserved || (percent && !d->new.conf.sharding->before.said))
		puts("what is on the former shards is not served until it is moved there: name them in "
		     "sharding.previousShards, or migrate first");
	if (changed && !rises)
		fprintf(stderr, "sharding.version must rise: it is %" PRIu64 " in both, or lower in the "
				"new one\n",
			shardmap_version(d->old.map));
}

/* Is it fine to go from one to the other? */
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

int
config_diff(const char *old, const char *new, bool json)
{
	static const char *const heads[] = { "WHAT", "NAME", "FROM", "TO", "SERVED FROM" };
	struct diff d = { .json = json };
	int rc = open_side(&d.old, old);
	bool fine = false;

	rc = open_side(&d.new, new) ? SLU_EINVAL : rc;
	if (!rc) {
		table_init(&d.table, heads, sizeof heads / sizeof heads[0], 0);
		buf_init(&d.out, CONF_JSON_MAX);
		json_out_init(&d.w, &d.out);
		json_out_object(&d.w, NULL);
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
