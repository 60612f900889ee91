/*
 * state.c - `sluice state`: the JSON document beside a key.
 *
 * Who has acquired the key (SLUICE_LOCK_*) works under that lease: what is put is seen by
 * all when it is released. Otherwise a change takes the lease itself, for its own time.
 */
#include "cli/escape.h"
#include "cli/exports.h"

#include "base/json.h"
#include "base/parse.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STATE_MAX = 100 << 20 /* bytes of a document */
};

struct state {
	struct session s;
	const char *key;
	const char *block;
	const char *if_version, *if_etag;
	struct slu_state_if only;
	struct buf text; /* of what is put */
	bool remove;
	bool held; /* by SLUICE_LOCK_* */
	struct slu_lease lease;
};

/* Is this key the one that somebody acquired for us? */
static int
find_lease(struct state *t, struct slu_err *err)
{
	const char *key = exports_get("SLUICE_LOCK_KEY");

	t->held = key && strcmp(key, t->key) == 0;
	return t->held ? exports_read_lease(&t->lease, err) : 0;
}

static int
read_only(struct state *t, struct slu_err *err)
{
	t->only.struct_size = sizeof t->only;
	t->only.etag = t->if_etag;
	t->only.has_version = t->if_version;
	return t->if_version ? parse_i64(slice_of(t->if_version), 0, INT64_MAX, &t->only.version, err)
			     : 0;
}

static void
print_version(struct state *t)
{
	if (t->s.json)
		printf("{\"key\":\"%s\",\"version\":%" PRId64 ",\"etag\":\"%s\",\"staged\":%s}\n",
		       t->lease.key, t->lease.version, t->lease.etag, t->held ? "true" : "false");
	else
		printf("version %" PRId64 "%s\n", t->lease.version,
		       t->held ? ", staged: `sluice lock release` commits it" : "");
}

/* --- get ------------------------------------------------------------------------ */

static int
get(struct state *t, struct slu_state *out, struct slu_err *err)
{
	const int rc = find_lease(t, err);

	if (rc)
		return rc;
	return t->held ? slu_state_get(t->s.client, &t->lease, out, NULL, err)
		       : slu_state_peek(t->s.client, t->key, out, NULL, err);
}

int
cli_state_get(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "state get KEY [options]",
		.text = "Prints the document of a key: the committed one, or, to whoever has acquired the\n"
			"key, the one with what was put meanwhile. Exits 3 when there is none.\n",
		.examples = "  sluice state get orders/17\n  sluice state get orders/17 --json | jq .version\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct state t = { .s = SESSION("state get") };
	bool raw = false;
	const struct arg rows[] = {
		{ "--raw", ARG_FLAG, &raw, "as it is, also on a terminal" },
		SESSION_ROWS(&t.s),
	};
	struct slu_state found = { 0 };
	struct slu_err err;

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	t.key = argv[0];
	if (get(&t, &found, &err)) {
		session_fail(&t.s, &err);
	} else if (!found.text) {
		session_nothing(&t.s, "%s has no state", t.key);
	} else if (t.s.json) {
		printf("{\"version\":%" PRId64 ",\"etag\":\"%s\",\"state\":%s}\n", found.version,
		       found.etag, found.text);
	} else if (escape_wanted(stdout, raw)) {
		escape_print(stdout, slice_of(found.text));
		putchar('\n');
	} else {
		puts(found.text);
	}
	slu_free(found.text);
	return session_end(&t.s);
}

/* --- put, rm -------------------------------------------------------------------- */

static int
change(struct state *t, struct slu_client *c, struct slu_lease *l, struct slu_err *err)
{
	if (t->remove)
		return slu_state_remove(c, l, &t->only, NULL, err);
	return slu_state_put(c, l, t->text.p, t->text.n, &t->only, NULL, err);
}

static int
on_update(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg,
	  struct slu_err *err)
{
	struct state *t = arg;
	const int rc = change(t, c, l, err);

	(void)s; /* whatever it was: `only` says what it must be */
	t->lease = *l;
	return rc;
}

/* Under the lease that we have, or one that this takes. */
static int
apply(struct state *t, struct slu_err *err)
{
	struct slu_acquire want = { SLU_OPTIONS_INIT(struct slu_acquire), .key = t->key };
	int rc = find_lease(t, err);

	if (!rc)
		rc = read_only(t, err);
	if (rc)
		return rc;
	if (t->held)
		return change(t, t->s.client, &t->lease, err);
	rc = exports_wait(t->block, &want.wait, err);
	return rc ? rc : slu_lock_update(t->s.client, &want, on_update, t, NULL, err);
}

static int
read_all(int fd, const char *name, struct buf *out, struct slu_err *err)
{
	char piece[64 << 10];
	ssize_t n;

	while ((n = read(fd, piece, sizeof piece)) > 0)
		buf_put(out, piece, (size_t)n);
	if (n < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", name);
	return out->failed ? slu_fail(err, SLU_ETOOBIG, "%s: more than %d bytes", name, STATE_MAX)
			   : 0;
}

#define CHANGE_ROWS(t)                                                                                          \
	{ "--if-version N", ARG_TEXT, &(t)->if_version, "only if that is its version" },                        \
		{ "--if-etag TEXT", ARG_TEXT, &(t)->if_etag, "only if that is its etag" },                      \
		{ "--block TIME", ARG_TEXT, &(t)->block, "wait so long while somebody has the key (forever)" }, \
		SESSION_ROWS(&(t)->s)

static int
finish(struct state *t, int rc, const struct slu_err *err)
{
	if (rc)
		session_fail(&t->s, err);
	else
		print_version(t);
	buf_release(&t->text);
	return session_end(&t->s);
}

int
cli_state_put(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "state put KEY [JSON] [options]",
		.text = "Sets the document of a key to a JSON value, from the command line or from stdin.\n"
			"Takes the lease of the key for that, unless it was acquired before: then all see\n"
			"the change when it is released.\n",
		.examples = "  sluice state put orders/17 '{\"step\":2}'\n"
			    "  jq .config <all.json | sluice state put config --if-version 4\n",
		.min_words = 1,
		.max_words = 2,
	};
	struct state t = { .s = SESSION("state put"), .block = "forever" };
	const struct arg rows[] = { CHANGE_ROWS(&t) };
	struct slu_err err;
	int rc = 0;

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	t.key = argv[0];
	buf_init(&t.text, STATE_MAX);
	if (argc > 1)
		buf_puts(&t.text, argv[1]);
	else
		rc = read_all(STDIN_FILENO, "stdin", &t.text, &err);
	if (!rc)
		rc = apply(&t, &err);
	return finish(&t, rc, &err);
}

int
cli_state_rm(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "state rm KEY [options]",
		.text = "Removes the document of a key.\n",
		.examples = "  sluice state rm orders/17\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct state t = { .s = SESSION("state rm"), .block = "forever", .remove = true };
	const struct arg rows[] = { CHANGE_ROWS(&t) };
	struct slu_err err;

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	t.key = argv[0];
	buf_init(&t.text, 1);
	return finish(&t, apply(&t, &err), &err);
}

/* --- edit ----------------------------------------------------------------------- */

/* $EDITOR on a file; SLU_EFAILED unless it exits 0. */
static int
run_editor(const char *path, struct slu_err *err)
{
	const char *editor = exports_get("VISUAL");
	char command[4200];
	int status;

	editor = editor ? editor : exports_get("EDITOR");
	(void)snprintf(command, sizeof command, "%s '%s'", editor ? editor : "vi", path);
	status = system(command); /* as a shell has it: it may have arguments */
	if (status == 0)
		return 0;
	return slu_fail(err, SLU_EFAILED, "%s: %s; nothing was changed", editor ? editor : "vi",
			WIFEXITED(status) ? "it failed" : "it was killed");
}

static int
edit_file(struct state *t, int fd, const char *path, const struct slu_state *s,
	  struct slu_err *err)
{
	static const char none[] = "{}";
	const char *text = s->text ? s->text : none;
	struct json r;
	int rc;

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || write(fd, "\n", 1) != 1)
		return slu_fail(err, SLU_EFAILED, "%s: %m", path);
	rc = run_editor(path, err);
	fd = rc ? -1 : open(path, O_RDONLY | O_CLOEXEC); /* editors like to replace files */
	if (!rc && fd < 0)
		rc = slu_fail(err, SLU_EFAILED, "%s: %m", path);
	if (!rc)
		rc = read_all(fd, path, &t->text, err);
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	json_init(&r, buf_slice(&t->text), JSON_DEPTH);
	json_skip(&r);
	return json_end(&r, err);
}

static int
on_edit(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg,
	struct slu_err *err)
{
	const char *folder = exports_get("TMPDIR");
	struct state *t = arg;
	char path[4096];
	int fd, rc;

	(void)snprintf(path, sizeof path, "%s/sluice-state-XXXXXX.json", folder ? folder : "/tmp");
	fd = mkostemps(path, 5, O_CLOEXEC);
	if (fd < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", path);
	rc = edit_file(t, fd, path, s, err);
	close(fd);
	(void)unlink(path); /* it has been read */
	return rc ? rc : on_update(c, l, s, arg, err);
}

int
cli_state_edit(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "state edit KEY [options]",
		.text = "Opens the document of a key in $VISUAL or $EDITOR, while the lease is kept, and\n"
			"sets it to what was saved. Nobody else can change it meanwhile.\n",
		.examples = "  EDITOR=nano sluice state edit config\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct state t = { .s = SESSION("state edit"), .block = "forever" };
	const struct arg rows[] = { CHANGE_ROWS(&t) };
	struct slu_acquire want = { SLU_OPTIONS_INIT(struct slu_acquire) };
	struct slu_err err;
	int rc;

	if (!session_begin(&t.s, &help, &argc, &argv, rows, COUNT(rows)))
		return t.s.exit;
	t.key = want.key = argv[0];
	buf_init(&t.text, STATE_MAX);
	rc = read_only(&t, &err);
	if (!rc)
		rc = exports_wait(t.block, &want.wait, &err);
	if (!rc)
		rc = slu_lock_update(t.s.client, &want, on_edit, &t, NULL, &err);
	return finish(&t, rc, &err);
}
