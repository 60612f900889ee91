/*
 * node.c - `sluice admin node`: the nodes of a store; drains one and waits until others own its shards.
 */
#include "cli/lib/json_line.h"
#include "cli/lib/progress.h"
#include "cli/lib/rows.h"
#include "cli/lib/session.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <inttypes.h>
#include <time.h>

enum {
	TEXT = 260,    /* bytes of an address */
	PAUSE_MS = 100 /* between two looks at the shards */
};

struct node_command {
	struct session s;
	const char *node; /* --node: an address or a name; NULL = the server itself */
	bool shards;
	bool no_wait;
	slu_time wait;
};

/* ---- What the server answers ---- */

struct node_answer {
	struct slice nodes, shards;
};

struct node_row {
	char name[TEXT], address[TEXT];
	bool self;
};

struct node_shard {
	char name[TEXT]; /* of the shard in the settings: "default" */
	uint64_t shard;  /* its number in the store */
	uint64_t epoch;
	char owner[TEXT]; /* "" = no living node */
};

static int
ask(struct session *s, const char *verb, struct node_answer *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(raw, struct node_answer, nodes, shards),
	};
	struct slice answer;
	int rc;

	query_path(&s->query, verb ? verb : "/v1/admin/nodes");
	rc = verb ? query_post(&s->query, SLICE("{}"), &answer, err) : query_get(&s->query, &answer, err);
	return rc ? rc : query_read(answer, fields, COUNT(fields), out, err);
}

/* Calls `each` for the elements of `list`, read by the fields into `row`, until it returns true. */
static bool
any(struct slice list, const struct json_field *fields, size_t n, void *row, size_t size,
    bool (*each)(const void *row, void *arg), void *arg)
{
	bool found = false;
	struct json r;

	json_init(&r, list.n ? list : SLICE("[]"), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		memset(row, 0, size);
		json_fields(&r, fields, n, JSON_LENIENT, row);
		found = found || each(row, arg);
	}
	return found;
}

static bool
any_node(const struct node_answer *a, bool (*each)(const void *row, void *arg), void *arg)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(chars, struct node_row, name, address),
		JSON_FIELDS(bool, struct node_row, self),
	};
	struct node_row row;

	return any(a->nodes, fields, COUNT(fields), &row, sizeof row, each, arg);
}

static bool
any_shard(const struct node_answer *a, bool (*each)(const void *row, void *arg), void *arg)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(u64, struct node_shard, shard, epoch),
		JSON_FIELDS(chars, struct node_shard, name, owner),
	};
	struct node_shard row;

	return any(a->shards, fields, COUNT(fields), &row, sizeof row, each, arg);
}

/* ---- list ---- */

static int
list(struct node_command *c, struct slu_err *err)
{
	static const struct column nodes[] = {
		{ "address", "ADDRESS", COLUMN_TEXT },
		{ "name", "NAME", COLUMN_TEXT },
		{ "version", "VERSION", COLUMN_TEXT },
		{ "living", "LIVING", COLUMN_TEXT },
		{ "draining", "DRAINING", COLUMN_TEXT },
		{ "beat_age_ms", "BEAT", COLUMN_MILLIS },
		{ "shards", "SHARDS", COLUMN_NUMBER },
		{ "life", "LIFE", COLUMN_TEXT },
	};
	static const struct column shards[] = {
		{ "name", "NAME", COLUMN_TEXT },
		{ "shard", "SHARD", COLUMN_NUMBER },
		{ "owner", "OWNER", COLUMN_TEXT },
		{ "epoch", "EPOCH", COLUMN_NUMBER },
		{ "next", "NEXT", COLUMN_TEXT },
	};
	static const struct rows_list of_nodes = { .member = "nodes", ROWS_COLUMNS(nodes) };
	static const struct rows_list of_shards = { .member = "shards", ROWS_COLUMNS(shards) };
	struct slice answer;
	int rc;

	query_path(&c->s.query, "/v1/admin/nodes");
	rc = query_get(&c->s.query, &answer, err);
	return rc ? rc : rows_print(&c->s, c->shards ? &of_shards : &of_nodes, answer, err);
}

/* ---- --node ---- */

struct wanted {
	const char *said;
	struct node_row found;
};

/* The address may lack its scheme. */
static bool
is_wanted(const void *row, void *arg)
{
	const struct node_row *const n = row;
	struct wanted *const w = arg;
	const char *const bare = strstr(n->address, "://");

	if (strcmp(n->name, w->said) != 0 && strcmp(n->address, w->said) != 0 &&
	    !(bare && strcmp(bare + 3, w->said) == 0))
		return false;
	w->found = *n;
	return true;
}

static bool
is_self(const void *row, void *arg)
{
	const struct node_row *const n = row;

	if (n->self)
		*(struct node_row *)arg = *n;
	return n->self;
}

/* Connects to the node of --node, with the same credentials. Returns SLU_ENOTFOUND. */
static int
go_to_node(struct node_command *c, struct slu_err *err)
{
	struct wanted w = { .said = c->node };
	struct node_answer a;
	int rc;

	if (!c->node)
		return 0;
	rc = ask(&c->s, NULL, &a, err);
	if (rc)
		return rc;
	if (!any_node(&a, is_wanted, &w))
		return slu_fail(err, SLU_ENOTFOUND, "no such node: %s; see `sluice admin node list`", c->node);
	return w.found.self ? 0 : session_reconnect(&c->s, w.found.address, err);
}

/* ---- drain ---- */

struct handing {
	char self[TEXT];           /* address of the node that drains */
	struct node_shard *shards; /* that it owned at first */
	uint64_t n;
	uint64_t left; /* how many of them have no new owner */
	bool failed;   /* no memory */
};

static bool
note_own(const void *row, void *arg)
{
	const struct node_shard *const s = row;
	struct handing *const h = arg;
	struct node_shard *more;

	if (strcmp(s->owner, h->self) != 0)
		return false;
	more = mem_realloc(h->shards, (h->n + 1) * sizeof *more);
	h->failed |= !more;
	if (!more)
		return true;
	h->shards = more;
	more[h->n++] = *s;
	return false;
}

static bool
note_owner(const void *row, void *arg)
{
	const struct node_shard *const s = row;
	const struct handing *const h = arg;

	for (uint64_t i = 0; i < h->n; i++)
		if (h->shards[i].shard == s->shard && strcmp(h->shards[i].name, s->name) == 0)
			h->shards[i] = *s;
	return false;
}

/* Sets h->left from an answer. */
static void
count_left(struct handing *h, const struct node_answer *a)
{
	(void)any_shard(a, note_owner, h);
	h->left = 0;
	for (uint64_t i = 0; i < h->n; i++)
		h->left += !*h->shards[i].owner || strcmp(h->shards[i].owner, h->self) == 0;
}

static int
begin(struct node_command *c, struct handing *h, struct slu_err *err)
{
	struct node_row self = { 0 };
	struct node_answer a;
	int rc = go_to_node(c, err);

	if (!rc)
		rc = ask(&c->s, NULL, &a, err);
	if (rc)
		return rc;
	if (any_node(&a, is_self, &self))
		memcpy(h->self, self.address, sizeof h->self);
	(void)any_shard(&a, note_own, h);
	return h->failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

static int
wait_for_owners(struct node_command *c, struct handing *h, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + c->wait;
	struct progress bar;
	struct node_answer a;
	int rc = 0;

	progress_begin(&bar, "handing over", h->n, false);
	while (!rc && h->left > 0 && clock_mono(&clock_system) < until) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * SLU_MS }, NULL);
		rc = ask(&c->s, NULL, &a, err);
		if (!rc)
			count_left(h, &a);
		progress_at(&bar, h->n - h->left);
	}
	progress_end(&bar);
	return rc;
}

static void
print_json(const struct handing *h, bool draining)
{
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "node", slice_of(h->self));
	json_out_bool(w, "draining", draining);
	json_out_u64(w, "handed_over", h->n - h->left);
	json_out_u64(w, "left", h->left);
	json_out_array(w, "shards");
	for (uint64_t i = 0; i < h->n; i++) {
		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(h->shards[i].name));
		json_out_u64(w, "shard", h->shards[i].shard);
		json_out_str(w, "owner", slice_of(h->shards[i].owner));
		json_out_u64(w, "epoch", h->shards[i].epoch);
		json_out_close(w);
	}
	json_out_close(w);
	json_line_end(&l, stdout);
}

static void
print_text(const struct handing *h)
{
	for (uint64_t i = 0; i < h->n; i++) {
		const struct node_shard *const s = &h->shards[i];

		if (*s->owner && strcmp(s->owner, h->self) != 0)
			printf("shard %s/%" PRIu64 " is at %s, epoch %" PRIu64 "\n", s->name, s->shard, s->owner, s->epoch);
	}
	printf("%s drains: %" PRIu64 " of %" PRIu64 " shards handed over\n", h->self, h->n - h->left, h->n);
}

static int
drain(struct node_command *c, struct slu_err *err)
{
	struct handing h = { 0 };
	struct node_answer a;
	int rc = begin(c, &h, err);

	if (!rc)
		rc = ask(&c->s, "/v1/admin/nodes/drain", &a, err);
	if (!rc) {
		count_left(&h, &a);
		if (!c->no_wait)
			rc = wait_for_owners(c, &h, err);
	}
	if (!rc && c->s.json)
		print_json(&h, true);
	else if (!rc)
		print_text(&h);
	if (!rc && h.left > 0 && !c->no_wait)
		rc = slu_fail(err, SLU_ETIMEOUT, "%" PRIu64 " shards have no new owner yet; the node still drains", h.left);
	mem_free(h.shards);
	return rc;
}

static int
resume(struct node_command *c, struct slu_err *err)
{
	struct handing h = { 0 };
	struct node_answer a;
	int rc = begin(c, &h, err);

	if (!rc)
		rc = ask(&c->s, "/v1/admin/nodes/resume", &a, err);
	h.n = 0;
	if (!rc && c->s.json)
		print_json(&h, false);
	else if (!rc)
		printf("%s takes shards again\n", h.self);
	mem_free(h.shards);
	return rc;
}

static int
flush(struct node_command *c, struct slu_err *err)
{
	struct handing h = { 0 };
	struct node_answer a;
	int rc = begin(c, &h, err);

	if (!rc)
		rc = ask(&c->s, "/v1/admin/nodes/flush", &a, err);
	if (!rc && !c->s.json)
		printf("%s carries its front folders to the store\n", h.self);
	mem_free(h.shards);
	return rc;
}

/* ---- The command ---- */

static int
run(struct session *s, struct slu_err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct node_command *c, struct slu_err *err);
	} verbs[] = { { "list", list }, { "drain", drain }, { "resume", resume }, { "flush", flush } };

	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(s->words[0], verbs[i].name) == 0)
			return verbs[i].run((void *)s, err);
	return session_usage(s, "unknown word: %s; expected list, drain, resume or flush", s->words[0]);
}

const struct command cli_admin_node = {
	.name = "admin node",
	.summary = "list the nodes of a store; drain, resume or flush one",
	.usage = "list|drain|resume|flush [options]",
	.text = "For servers that share a store (sluiced --store). list prints the nodes as the server sees\n"
		"them: address, whether its beats rise, how long ago the server saw the last one, and how many\n"
		"shards it owns. list --shards prints the shards: owner, epoch, and the node that ranks first.\n"
		"\ndrain makes a node hand over its shards, for example before its machine is stopped. The node\n"
		"finishes what runs and gives each shard to the node that ranks next; requests for its\n"
		"shards get 503 `moved` with the new owner. It takes no shards until it resumes or restarts,\n"
		"unless all other nodes drain or die. The command waits until each shard has a new owner\n"
		"and names it. resume ends that: the node gets its share back after store.settle.\n"
		"\nflush makes a node with front folders (store.front) carry to the store what it has, without\n"
		"waiting for front.flush.interval.\n"
		"\nWithout --node the server itself is meant. With --node the command finds the node in the\n"
		"list of the server and calls it, with the same credentials.\n",
	.examples = "  sluice admin node list\n"
		    "  sluice admin node list --shards\n"
		    "  sluice admin node drain --server 10.0.0.1:7171\n"
		    "  sluice admin node drain --node http://10.0.0.2:7171 --wait 5m\n"
		    "  sluice admin node resume --node http://10.0.0.2:7171\n"
		    "  sluice admin node flush\n"
		    "  sluice admin node list --json | jq 'select(.living | not)'\n"
		    "\nexit codes:\n"
		    "  0  done; drain: other nodes own all shards\n"
		    "  1  refused, or not all shards have a new owner in time: the node still drains\n"
		    "  2  wrong options or words\n"
		    "  3  no such node, or the server shares no store\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "--node ADDRESS", ARG_TEXT, AT(node_command, node), "the node to drain, resume or flush: its address or name (the server)" },
		 { "--shards", ARG_FLAG, AT(node_command, shards), "list: the shards instead of the nodes" },
		 { "--wait", ARG_TIME, AT(node_command, wait), "drain: how long to wait for the new owners (60s)" },
		 { "--no-wait", ARG_FLAG, AT(node_command, no_wait), "drain: do not wait" }),
	CLI_STATE(struct node_command, .wait = 60 * SLU_SEC),
	.run = run,
};
