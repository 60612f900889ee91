#include "store/s3/keys.h"

#include "base/json/json_table.h"
#include "base/mem.h"
#include "store/web/web.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ANSWER_MAX = 16 << 10, /* bytes of an answer of a metadata service */
	ROLE_MAX = 128
};

#define EARLY   (5 * 60 * SLU_SEC) /* keys are renewed so long before they end */
#define TIMEOUT (2 * SLU_SEC)      /* of a service on this machine */

/* Reads keys from one source. Returns 0, SLU_ENOTFOUND if this machine does not have the source, or
 * another error. */
typedef int source_read(struct s3_chain *c, struct s3_keys *out, struct slu_err *err);

struct s3_chain {
	char *file, *profile; /* of the file of credentials */
	struct web *web;
	source_read *source;

	pthread_mutex_t mtx;
	struct s3_keys keys;
};

static const char *
environment(const char *name)
{
	const char *const value = getenv(name);

	return value && *value ? value : NULL;
}

static int
set_key(char *to, size_t size, struct slice from, const char *name, struct slu_err *err)
{
	if (from.n >= size)
		return slu_fail(err, SLU_EINVAL, "invalid %s; expected at most %zu bytes", name, size - 1);
	memcpy(to, from.p, from.n);
	to[from.n] = '\0';
	return 0;
}

static int
set_keys(struct s3_keys *out, struct slice id, struct slice secret, struct slice token,
	 struct slu_err *err)
{
	int rc = set_key(out->id, sizeof out->id, id, "access key", err);

	if (!rc)
		rc = set_key(out->secret, sizeof out->secret, secret, "secret key", err);
	if (!rc)
		rc = set_key(out->token, sizeof out->token, token, "session token", err);
	return rc;
}

/* ---- 1. the environment ---- */

static int
read_environment(struct s3_chain *c, struct s3_keys *out, struct slu_err *err)
{
	const char *const id = environment("AWS_ACCESS_KEY_ID");
	const char *const secret = environment("AWS_SECRET_ACCESS_KEY");
	const char *const token = environment("AWS_SESSION_TOKEN");

	(void)c;
	if (!id && !secret)
		return SLU_ENOTFOUND;
	if (!id || !secret)
		return slu_fail(err, SLU_EFORBIDDEN, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: expected both or none");
	out->until = SLU_NEVER;
	return set_keys(out, slice_of(id), slice_of(secret), slice_of(token ? token : ""), err);
}

/* ---- 2. a file ---- */

struct keys_found {
	bool profile; /* the file has it */
	bool inside;  /* the current line is in it */
	char id[S3_KEY_MAX], secret[S3_KEY_MAX], token[S3_TOKEN_MAX];
};

static const struct {
	const char *name;
	size_t offset, size;
} file_rows[] = {
	{ "aws_access_key_id", offsetof(struct keys_found, id), S3_KEY_MAX },
	{ "aws_secret_access_key", offsetof(struct keys_found, secret), S3_KEY_MAX },
	{ "aws_session_token", offsetof(struct keys_found, token), S3_TOKEN_MAX },
};

static int
read_line(struct keys_found *f, struct slice line, const char *profile, struct slu_err *err)
{
	struct slice name;
	int rc = 0;

	line = slice_trim(line, " \t\r\n");
	if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';')
		return 0;
	if (line.p[0] == '[') {
		const struct slice section = slice_trim(line, "[] \t");

		f->inside = slice_eq(section, slice_of(profile));
		f->profile |= f->inside;
		return 0;
	}
	if (!f->inside || !slice_cut(&line, '=', &name))
		return 0;
	for (size_t i = 0; i < COUNT(file_rows) && !rc; i++)
		if (slice_eq(slice_trim(name, " \t"), slice_of(file_rows[i].name)))
			rc = set_key((char *)f + file_rows[i].offset, file_rows[i].size,
				     slice_trim(line, " \t"), file_rows[i].name, err);
	return rc;
}

static int
read_lines(FILE *file, struct keys_found *f, const char *profile, struct slu_err *err)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = getline(&line, &size, file)) >= 0)
		rc = read_line(f, (struct slice){ line, (size_t)n }, profile, err);
	free(line);
	return rc;
}

static int
read_file(struct s3_chain *c, struct s3_keys *out, struct slu_err *err)
{
	struct keys_found f = { 0 };
	FILE *const file = c->file ? fopen(c->file, "re") : NULL;
	int rc;

	if (!file && (!c->file || errno == ENOENT))
		return SLU_ENOTFOUND;
	if (!file)
		return slu_fail(err, SLU_EFORBIDDEN, "%.200s: %s", c->file, strerror(errno));
	rc = read_lines(file, &f, c->profile, err);
	fclose(file);
	if (rc)
		return rc;
	if (!f.id[0] || !f.secret[0])
		return slu_fail(err, SLU_EFORBIDDEN, "%.200s: profile %.40s %s", c->file, c->profile,
				f.profile ? "has no aws_access_key_id and aws_secret_access_key"
					  : "is missing");
	out->until = SLU_NEVER;
	return set_keys(out, slice_of(f.id), slice_of(f.secret), slice_of(f.token), err);
}

/* ---- 3. and 4. services on this machine ---- */

struct credentials {
	struct slice AccessKeyId, SecretAccessKey, Token;
	slu_time Expiration;
};

static const struct json_field answer_rows[] = {
	JSON_FIELD(text, struct credentials, AccessKeyId, .required = true),
	JSON_FIELD(text, struct credentials, SecretAccessKey, .required = true),
	JSON_FIELD(text, struct credentials, Token),
	JSON_FIELD(time, struct credentials, Expiration),
};

static int
read_answer(const struct buf *text, struct s3_keys *out, struct slu_err *err)
{
	struct credentials a = { .Expiration = SLU_NEVER };
	struct json r;
	int rc;

	json_init(&r, buf_slice(text), JSON_DEPTH);
	json_fields(&r, answer_rows, COUNT(answer_rows), JSON_LENIENT, &a);
	rc = json_end(&r, err);
	if (rc)
		return rc;
	out->until = a.Expiration;
	return set_keys(out, a.AccessKeyId, a.SecretAccessKey, a.Token, err);
}

/* One request; the field may be NULL. The body of the answer replaces the content of out. */
static int
ask(struct s3_chain *c, const char *method, const char *url, const char *field, const char *value,
    struct buf *out, struct slu_err *err)
{
	struct web_call call = { .method = method, .url = url, .out = out };
	int rc;

	buf_clear(out);
	if (field)
		web_field(&call, "%s: %s", field, value);
	rc = web_run(c->web, &call, err);
	if (!rc && call.status != 200)
		rc = slu_fail(err, SLU_EDOWN, "%.100s: status %u", url, call.status);
	web_call_release(&call);
	return rc;
}

static int
read_container(struct s3_chain *c, struct s3_keys *out, struct slu_err *err)
{
	const char *const full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *const relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *const token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	char url[STORE_URL_MAX];
	struct buf text;
	int rc;

	if (!full && !relative)
		return SLU_ENOTFOUND;
	snprintf(url, sizeof url, "%s%s", full ? "" : "http://169.254.170.2", full ? full : relative);
	buf_init(&text, ANSWER_MAX);
	rc = ask(c, "GET", url, token ? "Authorization" : NULL, token, &text, err);
	if (!rc)
		rc = read_answer(&text, out, err);
	buf_release(&text);
	return rc;
}

/* A session with a token, the name of the role, the keys of the role. */
static int
read_instance(struct s3_chain *c, struct s3_keys *out, struct slu_err *err)
{
	static const char path[] = "latest/meta-data/iam/security-credentials/";
	const char *const disabled = environment("AWS_EC2_METADATA_DISABLED");
	const char *const given = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *const root = given ? given : "http://169.254.169.254";
	char url[STORE_URL_MAX], token[S3_KEY_MAX], role[ROLE_MAX];
	struct buf text;
	int rc;

	if (disabled && strcmp(disabled, "true") == 0)
		return SLU_ENOTFOUND;
	buf_init(&text, ANSWER_MAX);
	snprintf(url, sizeof url, "%.400s/latest/api/token", root);
	rc = ask(c, "PUT", url, "X-aws-ec2-metadata-token-ttl-seconds", "21600", &text, err);
	if (rc) {
		buf_release(&text);
		return SLU_ENOTFOUND; /* no instance of EC2 */
	}
	snprintf(token, sizeof token, "%s", buf_str(&text));
	snprintf(url, sizeof url, "%.400s/%s", root, path);
	rc = ask(c, "GET", url, "X-aws-ec2-metadata-token", token, &text, err);
	snprintf(role, sizeof role, "%.*s", (int)strcspn(buf_str(&text), "\r\n"), buf_str(&text));
	snprintf(url, sizeof url, "%.400s/%s%s", root, path, role);
	if (!rc)
		rc = ask(c, "GET", url, "X-aws-ec2-metadata-token", token, &text, err);
	if (!rc)
		rc = read_answer(&text, out, err);
	buf_release(&text);
	return rc;
}

/* ---- The chain ---- */

static source_read *const sources[] = {
	read_environment,
	read_file,
	read_container,
	read_instance,
};

/* The first source that this machine has. */
static int
find(struct s3_chain *c, struct slu_err *err)
{
	int rc = SLU_ENOTFOUND;

	for (size_t i = 0; i < COUNT(sources) && rc == SLU_ENOTFOUND; i++) {
		c->source = sources[i];
		rc = c->source(c, &c->keys, err);
	}
	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_EFORBIDDEN, "no keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write %.100s",
				c->file ? c->file : "a file of credentials");
	return rc;
}

/* ~/.aws/credentials, or the file that the URL or the environment names. Returns false if memory is
 * out. */
static bool
name_file(struct s3_chain *c, const struct s3_place *place)
{
	const char *const named = place->credentials ? place->credentials : environment("AWS_SHARED_CREDENTIALS_FILE");
	const char *const home = environment("HOME");
	const char *const profile = place->profile ? place->profile : environment("AWS_PROFILE");
	char path[STORE_URL_MAX];

	c->profile = mem_strdup(profile ? profile : "default");
	snprintf(path, sizeof path, "%.900s/.aws/credentials", home ? home : "");
	if (named || home)
		c->file = mem_strdup(named ? named : path);
	return c->profile && (c->file || (!named && !home));
}

struct s3_chain *
s3_chain_new(const struct s3_place *place, struct slu_err *err)
{
	struct s3_chain *const c = mem_zalloc(sizeof *c);
	int rc;

	if (!c) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->mtx, NULL);
	c->web = web_new(&(struct web_conf){ .proxy = "", .timeout = TIMEOUT });
	rc = c->web && name_file(c, place) ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc)
		rc = find(c, err);
	if (!rc)
		return c;
	s3_chain_free(c);
	return NULL;
}

void
s3_chain_free(struct s3_chain *c)
{
	if (!c)
		return;
	web_free(c->web);
	pthread_mutex_destroy(&c->mtx);
	mem_free(c->file);
	mem_free(c->profile);
	mem_free(c);
}

int
s3_chain_keys(struct s3_chain *c, slu_time wall, bool renew, struct s3_keys *out,
	      struct slu_err *err)
{
	struct slu_err why = { .text = "the source of the keys does not answer" };
	struct s3_keys fresh = { 0 };
	bool ended = false;

	pthread_mutex_lock(&c->mtx);
	if (renew || (c->keys.until != SLU_NEVER && c->keys.until - EARLY <= wall)) {
		if (c->source(c, &fresh, &why) == 0)
			c->keys = fresh;
		else
			ended = renew || wall >= c->keys.until;
	}
	*out = c->keys;
	pthread_mutex_unlock(&c->mtx);
	return ended ? slu_fail(err, SLU_EDOWN, "the keys have expired: %.200s", why.text) : 0;
}
