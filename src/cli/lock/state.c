/*
 * state.c - `sluice state`: the JSON document of a key.
 *
 * If the key was acquired (SLUICE_LOCK_*), a command works under that lease: changes are committed
 * when the lease is released. Otherwise a change acquires and releases the lease itself.
 */
#include "cli/lib/escape.h"
#include "cli/lib/exports.h"

#include "base/json/json.h"
#include "base/parse.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STATE_MAX = 100 << 20 /* bytes of a document, at most */
};

struct state_command {
	struct session s;
	const char *key;
	const char *block;
	const char *if_version, *if_etag;
	struct slu_state_if only;
	struct buf text; /* the new document */
	bool remove;
	bool held; /* the lease comes from SLUICE_LOCK_* */
	bool raw;
	struct slu_lease lease;
};

/* Reads the lease from SLUICE_LOCK_* if it is of this key. */
static int
find_lease(struct state_command *t, struct slu_err *err)
{
	const char *key = exports_get("SLUICE_LOCK_KEY");

	t->held = key && strcmp(key, t->key) == 0;
	return t->held ? exports_read_lease(&t->lease, err) : 0;
}

static int
read_only(struct state_command *t, struct slu_err *err)
{
	t->only.struct_size = sizeof t->only;
	t->only.etag = t->if_etag;
	t->only.has_version = t->if_version;
	return t->if_version ? parse_i64(slice_of(t->if_version), 0, INT64_MAX, &t->only.version, err)
			     : 0;
}

static void
print_version(struct state_command *t)
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
get(struct state_command *t, struct slu_state *out, struct slu_err *err)
{
	const int rc = find_lease(t, err);

	if (rc)
		return rc;
	return t->held ? slu_state_get(t->s.client, &t->lease, out, NULL, err)
		       : slu_state_peek(t->s.client, t->key, out, NULL, err);
}

static int
run_get(struct session *s, struct slu_err *err)
{
	struct state_command *const t = (void *)s;
	struct slu_state found = { 0 };
	int rc;

	t->key = t->s.words[0];
	rc = get(t, &found, err);
	if (!rc && !found.text) {
		session_nothing(&t->s, "%s has no state", t->key);
	} else if (!rc && t->s.json) {
		printf("{\"version\":%" PRId64 ",\"etag\":\"%s\",\"state\":%s}\n", found.version,
		       found.etag, found.text);
	} else if (!rc && escape_wanted(stdout, t->raw)) {
		escape_print(stdout, slice_of(found.text));
		putchar('\n');
	} else if (!rc) {
		puts(found.text);
	}
	slu_free(found.text);
	return rc;
}

const struct command cli_state_get = {
	.name = "state get",
	.summary = "print the document of a key",
	.usage = "KEY [options]",
	.text = "Prints the document of a key. Under an acquired lease of the key it includes the\n"
		"changes that are not committed yet. Exits 3 if the key has no document.\n",
	.examples = "  sluice state get orders/17\n  sluice state get orders/17 --json | jq .version\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--raw", ARG_FLAG, AT(state_command, raw), "do not escape the document on a terminal" }),
	.size = sizeof(struct state_command),
	.run = run_get,
};

/* --- put, rm -------------------------------------------------------------------- */

static int
change(struct state_command *t, struct slu_client *c, struct slu_lease *l, struct slu_err *err)
{
	if (t->remove)
		return slu_state_remove(c, l, &t->only, NULL, err);
	return slu_state_put(c, l, t->text.p, t->text.n, &t->only, NULL, err);
}

static int
on_update(struct slu_client *c, struct slu_lease *l, struct slu_state *s, void *arg,
	  struct slu_err *err)
{
	struct state_command *t = arg;
	const int rc = change(t, c, l, err);

	(void)s; /* `only` has the conditions */
	t->lease = *l;
	return rc;
}

/* Changes the document under the acquired lease, or under a lease of its own. */
static int
apply(struct state_command *t, struct slu_err *err)
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
	const int rc = session_read(fd, name, STATE_MAX, out, err);

	return rc == SLU_ENOMEM ? slu_fail(err, SLU_ETOOBIG, "%s: too large; expected at most %d bytes", name, STATE_MAX)
				: rc;
}

static const struct arg change_args[] = {
	{ "--if-version N", ARG_TEXT, AT(state_command, if_version), "only if the document has this version" },
	{ "--if-etag TEXT", ARG_TEXT, AT(state_command, if_etag), "only if the document has this etag" },
	{ "--block TIME", ARG_TEXT, AT(state_command, block), "wait this long for the lease of the key (forever)" },
	{ 0 }
};

static int
finish(struct state_command *t, int rc)
{
	if (!rc)
		print_version(t);
	buf_release(&t->text);
	return rc;
}

static int
put(struct session *s, struct slu_err *err)
{
	struct state_command *const t = (void *)s;
	int rc = 0;

	t->key = t->s.words[0];
	buf_init(&t->text, STATE_MAX);
	if (t->s.n_words > 1)
		buf_puts(&t->text, t->s.words[1]);
	else
		rc = read_all(STDIN_FILENO, "stdin", &t->text, err);
	return finish(t, rc ? rc : apply(t, err));
}

const struct command cli_state_put = {
	.name = "state put",
	.summary = "set it",
	.usage = "KEY [JSON] [options]",
	.text = "Sets the document of a key to a JSON value, from the command line or from stdin.\n"
		"Acquires the lease of the key for that. If the lease was acquired before, the change\n"
		"is committed when the lease is released.\n",
	.examples = "  sluice state put orders/17 '{\"step\":2}'\n"
		    "  jq .config <all.json | sluice state put config --if-version 4\n",
	.options = CLI_QUEUE,
	.args = change_args,
	CLI_STATE(struct state_command, .block = "forever"),
	.run = put,
};

static int
rm(struct session *s, struct slu_err *err)
{
	struct state_command *const t = (void *)s;

	t->key = t->s.words[0];
	buf_init(&t->text, 1);
	return finish(t, apply(t, err));
}

const struct command cli_state_rm = {
	.name = "state rm",
	.summary = "remove it",
	.usage = "KEY [options]",
	.text = "Removes the document of a key.\n",
	.examples = "  sluice state rm orders/17\n",
	.options = CLI_QUEUE,
	.args = change_args,
	CLI_STATE(struct state_command, .block = "forever", .remove = true),
	.run = rm,
};

/* --- edit ----------------------------------------------------------------------- */

/* Runs $EDITOR on a file. Returns SLU_EFAILED unless the editor exits 0. */
static int
run_editor(const char *path, struct slu_err *err)
{
	const char *editor = exports_get("VISUAL");
	char command[4200];
	int status;

	editor = editor ? editor : exports_get("EDITOR");
	(void)snprintf(command, sizeof command, "%s '%s'", editor ? editor : "vi", path);
	status = system(command); /* NOLINT(cert-env33-c): a shell runs it, because $EDITOR may have arguments */
	if (status == 0)
		return 0;
	return slu_fail(err, SLU_EFAILED, "%s: %s; nothing was changed", editor ? editor : "vi",
			WIFEXITED(status) ? "the editor failed" : "the editor was killed");
}

static int
edit_file(struct state_command *t, int fd, const char *path, const struct slu_state *s,
	  struct slu_err *err)
{
	static const char none[] = "{}";
	const char *text = s->text ? s->text : none;
	struct json r;
	int rc;

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || write(fd, "\n", 1) != 1)
		return slu_fail(err, SLU_EFAILED, "%s: %m", path);
	rc = run_editor(path, err);
	fd = rc ? -1 : open(path, O_RDONLY | O_CLOEXEC); /* an editor may replace the file */
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
	struct state_command *t = arg;
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

static int
edit(struct session *s, struct slu_err *err)
{
	struct state_command *const t = (void *)s;
	struct slu_acquire want = { SLU_OPTIONS_INIT(struct slu_acquire), .key = t->s.words[0] };
	int rc = read_only(t, err);

	t->key = want.key;
	buf_init(&t->text, STATE_MAX);
	if (!rc)
		rc = exports_wait(t->block, &want.wait, err);
	if (!rc)
		rc = slu_lock_update(t->s.client, &want, on_edit, t, NULL, err);
	return finish(t, rc);
}

const struct command cli_state_edit = {
	.name = "state edit",
	.summary = "change it in an editor",
	.usage = "KEY [options]",
	.text = "Opens the document of a key in $VISUAL or $EDITOR and stores the saved text. The lease\n"
		"of the key is held meanwhile, so no other client can change the document.\n",
	.examples = "  EDITOR=nano sluice state edit config\n",
	.options = CLI_QUEUE,
	.args = change_args,
	CLI_STATE(struct state_command, .block = "forever"),
	.run = edit,
};
