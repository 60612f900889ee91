/*
 * store.c - `sluice admin store`: looks into a store, or fills it from a data folder.
 */
#include "cli/store/store_private.h"

#include "store/probe.h"

enum {
	SQL_MAX = 8 << 10
};

/* ---- What the verbs share ---- */

/* The SLU_ code of a call of the store that did not return STORE_OK. */
static int
code_of(enum store_result r, const char *name, struct slu_err *err)
{
	if (r == STORE_OK)
		return 0;
	return r == STORE_ABSENT ? slu_fail(err, SLU_ENOTFOUND, "no such object: %s", name)
				 : (int)err->code;
}

int
store_read(struct store_command *c, const char *name, struct slu_err *err)
{
	buf_clear(&c->object);
	return code_of(store_get(c->store, name, 0, SIZE_MAX, &c->object, NULL, err), name, err);
}

int
store_cursor_next(struct store_cursor *c, const char **name, struct slu_err *err)
{
	char after[STORE_NAME_MAX] = "";
	enum store_result r;

	*name = NULL;
	if (c->next == c->page.n) {
		if (c->begun && !c->page.more)
			return 0;
		if (c->begun)
			(void)snprintf(after, sizeof after, "%s", c->page.names[c->page.n - 1]);
		r = store_list(c->store, c->prefix, after, STORE_PAGE_MAX, &c->page, err);
		if (r != STORE_OK)
			return code_of(r, c->prefix, err);
		c->begun = true;
		c->next = 0;
	}
	if (c->next < c->page.n)
		*name = c->page.names[c->next++];
	return 0;
}

void
store_cursor_release(struct store_cursor *c)
{
	store_names_release(&c->page);
}

int
store_next_folder(struct store *s, char folder[static STORE_NAME_MAX], struct slu_err *err)
{
	struct store_names names = { 0 };
	char after[STORE_NAME_MAX + 4] = "";
	enum store_result r;

	if (*folder)
		snprintf(after, sizeof after, "%s/\177", folder); /* behind all names in it */
	r = store_list(s, "", after, 1, &names, err);
	*folder = '\0';
	if (r == STORE_OK && names.n)
		(void)snprintf(folder, STORE_NAME_MAX, "%.*s",
			       (int)strcspn(names.names[0], "/"), names.names[0]);
	store_names_release(&names);
	return code_of(r, "", err);
}

/* ---- The command ---- */

/* The store is open: its place exists. */
static int
init(struct store_command *c, const char *word, struct slu_err *err)
{
	const enum store_result r = store_probe(c->store, err);

	(void)word;
	if (r == STORE_OK)
		printf("ready: start a server with: sluiced --store %s\n", c->store->label);
	return code_of(r, "", err);
}

static int
print_sql(struct store_command *c, struct slu_err *err)
{
	struct buf sql;
	int rc;

	buf_init(&sql, SQL_MAX);
	rc = store_sql(store_rows, c->s.words[1], &sql, err);
	if (!rc)
		printf("%s", buf_str(&sql));
	buf_release(&sql);
	return rc == SLU_EINVAL ? session_usage(&c->s, "%s", err->text) : rc;
}

static const struct verb {
	const char *name;
	int (*run)(struct store_command *c, const char *word, struct slu_err *err);
	int words[2]; /* the fewest and the most words behind the URL */
	const char *usage;
	bool writes; /* with --apply; init: always */
} verbs[] = {
	{ "init", init, { 0, 0 }, "init URL", true },
	{ "ls", store_ls, { 0, 1 }, "ls URL [SHARD]", false },
	{ "show", store_show, { 1, 1 }, "show URL NAME", false },
	{ "check", store_check, { 0, 1 }, "check URL [SHARD]", false },
	{ "adopt", store_adopt, { 0, 0 }, "adopt URL --data FOLDER", true },
	{ "rejoin", store_rejoin, { 0, 0 }, "rejoin URL --data FOLDER", false },
	{ "take", store_take, { 1, 1 }, "take URL SHARD --without-front", true },
};

static const struct verb *
find(const char *name)
{
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	return NULL;
}

static int
run_verb(struct store_command *c, const struct verb *verb, struct slu_err *err)
{
	const struct store_conf conf = {
		.url = c->s.words[1],
		.read_only = !(verb->writes && (c->apply || verb->run == init)),
		.unsafe = c->unsafe,
	};
	const enum store_result r = store_open(&c->store, store_rows, &conf, err);
	int rc;

	if (r == STORE_REFUSED && err->code == SLU_EINVAL)
		return session_usage(&c->s, "%s", err->text);
	if (conf.read_only && verb->writes && err->code == SLU_ENOTFOUND)
		c->store = NULL; /* a store that does not exist yet is empty */
	else if (r != STORE_OK)
		return (int)err->code;
	buf_init(&c->object, STORE_OBJECT_MAX);
	rc = verb->run(c, c->s.words[2], err);
	buf_release(&c->object);
	store_close(c->store);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct store_command *const c = (void *)s;
	const struct verb *const verb = find(c->s.words[0]);
	const int n = c->s.n_words - 2;

	if (n < verb->words[0] || n > verb->words[1])
		return session_usage(&c->s, "wrong number of words; expected %s; "
					    "see `sluice admin store --help`",
				     verb->usage);
	if (c->print_sql && verb->run == init)
		return print_sql(c, err);
	return run_verb(c, verb, err);
}

const struct command cli_admin_store = {
	.name = "admin store",
	.summary = "list, show or check the objects of a store; move a data folder into one, or hand in what it lost",
	.usage = "init|ls|show|check|adopt|rejoin|take URL [SHARD|NAME] [options]",
	.text = "init makes the place of a store and tests it: the tables of a database, the folder of a file\n"
		"store. A server does so by itself at its first start, if it has the right. With --print-sql it\n"
		"prints the SQL for an administrator instead, with the least rights for the user of the URL.\n"
		"\nls lists the shards of a store, or the objects of SHARD. show prints what the object NAME\n"
		"holds: a group, a span of groups, a node, or the settings of the store. check reads the\n"
		"whole log of every shard, or of SHARD, and names each group that is missing, damaged or\n"
		"does not continue the one before. These three change nothing, and servers may use the\n"
		"store meanwhile.\n"
		"\nadopt moves the log of a data folder into an empty store: messages, dead letters, locks and\n"
		"everything else, so that a server of one machine goes on as a server on a store. The server of\n"
		"the folder must be stopped. Without --apply it only checks the log and counts. With --apply the\n"
		"folder is a cache of the store afterwards, to be used with --store. If adopt fails, the folder\n"
		"is as it was; empty the store before the next try. A named shard of the settings has a folder\n"
		"and a store of its own: adopt each.\n"
		"\nrejoin is for a folder whose shard went another way: the store lost groups that it had confirmed,\n"
		"and another server went on without them. Messages that the folder accepted and that have not\n"
		"ended are handed in to the server of --server in numbered batches, each accepted once: the\n"
		"command may be repeated. Everything else that the folder has and the store has not is counted,\n"
		"and messages that ended in the folder and may come again are listed. The server of the folder must\n"
		"be stopped. Without --apply nothing is sent. Remove the folder afterwards: a server fills it again.\n"
		"\ntake --without-front gives up the front folder of SHARD, which is lost with its machine: servers\n"
		"take the shard, as the store has it. What the folder alone has is not served. If the folder comes\n"
		"back, its server refuses it, and rejoin hands in its messages. Without --apply nothing changes.\n"
		"\nURL is the value of the setting store: file:///FOLDER, s3://BUCKET,\n"
		"azure://ACCOUNT/CONTAINER, postgres://HOST/DATABASE. In\n"
		"NAME, zeros before the number may be left out: 0/group/7.\n",
	.examples = "  sluice admin store init postgres://sluice@db/jobs --print-sql | psql -h db -U postgres jobs\n"
		    "  sluice admin store ls file:///srv/sluice\n"
		    "  sluice admin store ls file:///srv/sluice 0\n"
		    "  sluice admin store show file:///srv/sluice 0/group/7\n"
		    "  sluice admin store check file:///srv/sluice --json | jq .problems\n"
		    "  sluice admin store adopt file:///srv/sluice --data /var/lib/sluice\n"
		    "  sluice admin store adopt file:///srv/sluice --data /var/lib/sluice --apply\n"
		    "  sluice admin store rejoin file:///srv/sluice --data /var/lib/sluice --server 10.0.0.2:7171 --apply\n"
		    "  sluice admin store take file:///srv/sluice 3 --without-front --apply\n"
		    "\nexit codes:\n"
		    "  0  done; check: everything is sound\n"
		    "  1  something is damaged, the store cannot be read, or it is not empty (adopt)\n"
		    "  2  wrong options, words or URL\n"
		    "  3  no such store, shard, object or folder\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "--print-sql", ARG_FLAG, AT(store_command, print_sql), "init: print what an administrator runs; change nothing" },
		 { "--data FOLDER", ARG_TEXT, AT(store_command, data), "adopt, rejoin: the data folder of a stopped server" },
		 { "--apply", ARG_FLAG, AT(store_command, apply), "adopt: change the store and the folder; rejoin: hand the messages in; take: take the shard" },
		 { "--without-front", ARG_FLAG, AT(store_command, without_front), "take: give up what the front folder alone has" },
		 { "--unsafe", ARG_FLAG, AT(store_command, unsafe), "adopt, init: as the setting store.unsafe" }),
	.size = sizeof(struct store_command),
	.run = run,
};
