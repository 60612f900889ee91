/*
 * certs.c - `sluice certs`: makes certificates for development.
 */
#include "cli/lib/session.h"

#include "net/tls_make.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

enum {
	NAMES_MAX = 4096
};

struct certs {
	struct session s;
	const char *folder;
	const char *host;   /* separated by commas */
	const char *client; /* name of the client and of its files */
	const char *grant;  /* "payments:rw,mail:r" */
	uint64_t days;
};

static struct slice
next_part(const char **list)
{
	const size_t n = strcspn(*list, ",");
	const struct slice part = { *list, n };

	*list += n + ((*list)[n] == ',');
	return part;
}

/* Has the text no characters with a meaning in a list of names? */
static bool
is_plain(struct slice s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";

	return s.n > 0 && s.p[0] != '.' && strspn(s.p, plain) >= s.n;
}

/* Writes "IP:127.0.0.1,DNS:localhost". Returns false if a name is invalid. */
static bool
put_hosts(struct buf *out, const char *list)
{
	while (*list) {
		const struct slice part = next_part(&list);
		char text[INET6_ADDRSTRLEN] = "";
		unsigned char address[sizeof(struct in6_addr)];
		bool is_ip;

		if (part.n < sizeof text)
			memcpy(text, part.p, part.n);
		is_ip = inet_pton(AF_INET, text, address) == 1 ||
			inet_pton(AF_INET6, text, address) == 1;
		if (!is_ip && !is_plain(part))
			return false;
		buf_printf(out, "%s%s:%.*s", out->n ? "," : "", is_ip ? "IP" : "DNS", (int)part.n,
			   part.p);
	}
	return true;
}

/* Writes the claims that the server reads (auth/cert.h), one for each namespace. */
static bool
put_claims(struct buf *out, const char *list)
{
	while (*list) {
		const struct slice part = next_part(&list);
		const char *const colon = memchr(part.p, ':', part.n);
		const struct slice space = { part.p, colon ? (size_t)(colon - part.p) : part.n };
		const struct slice perm = colon ? (struct slice){ colon + 1, part.n - space.n - 1 }
						: SLICE("rw");

		if (!is_plain(space) || !(slice_eq(perm, SLICE("r")) || slice_eq(perm, SLICE("w")) ||
					  slice_eq(perm, SLICE("rw"))))
			return false;
		buf_printf(out, "%sURI:lockd://ns/%.*s?perm=%.*s", out->n ? "," : "", (int)space.n,
			   space.p, (int)perm.n, perm.p);
	}
	return true;
}

/* Makes one certificate. An existing one is fine if may_be_there. */
static int
make(const struct certs *c, const char *name, const char *subject,
     bool (*put)(struct buf *out, const char *list), const char *list, bool may_be_there,
     struct slu_err *err)
{
	char path[PATH_MAX], ca[PATH_MAX];
	struct tls_recipe r = { .subject = subject, .days = (int)c->days };
	bool fine = true;
	struct buf names;
	int rc;

	buf_init(&names, NAMES_MAX);
	if (snprintf(path, sizeof path, "%s/%s", c->folder, name) >= (int)sizeof path ||
	    snprintf(ca, sizeof ca, "%s/ca", c->folder) >= (int)sizeof ca)
		return slu_fail(err, SLU_EINVAL, "folder name too long");
	if (put) {
		fine = put(&names, list);
		r.names = buf_str(&names);
		r.ca = ca;
	}
	if (!fine || names.failed)
		rc = slu_fail(err, SLU_EINVAL, "invalid list: %.60s; expected %s", list,
			      put == put_hosts ? "names and addresses separated by commas"
					       : "NAMESPACE:r, :w or :rw, separated by commas");
	else
		rc = tls_make(path, &r, err);
	buf_release(&names);
	return rc == SLU_EEXISTS && may_be_there ? 0 : rc;
}

static int
make_all(const struct certs *c, struct slu_err *err)
{
	int rc;

	if (mkdir(c->folder, 0700) && errno != EEXIST)
		return slu_fail(err, SLU_EDOWN, "%s: %m", c->folder);
	rc = make(c, "ca", "Sluice development CA", NULL, NULL, true, err);
	if (!rc)
		rc = make(c, "server", "sluiced", put_hosts, c->host, true, err);
	if (!rc)
		rc = make(c, c->client, c->client, put_claims, c->grant, false, err);
	return rc;
}

static void
tell(const struct certs *c)
{
	printf("sluiced --listen https://127.0.0.1:7443 --tls-cert %s/server.pem --tls-key "
	       "%s/server.key \\\n        --tls-client-ca %s/ca.pem --tls-client-auth required\n"
	       "sluice stats --server https://127.0.0.1:7443 --ca-file %s/ca.pem \\\n"
	       "        --cert %s/%s.pem --cert-key %s/%s.key\n",
	       c->folder, c->folder, c->folder, c->folder, c->folder, c->client, c->folder,
	       c->client);
}

static int
run(struct session *s, struct slu_err *err)
{
	struct certs *const c = (void *)s;
	int rc;

	if (c->days > 36500)
		return session_usage(&c->s, "invalid --days: %" PRIu64 "; expected at most 36500", c->days);
	if (!is_plain(slice_of(c->client)))
		return session_usage(&c->s, "invalid --client: %s; expected letters, digits, . _ -", c->client);
	c->folder = c->s.words[0];
	rc = make_all(c, err);
	if (!rc)
		tell(c);
	return rc;
}

const struct command cli_certs = {
	.name = "certs",
	.group = "Setup",
	.summary = "make certificates for development",
	.usage = "FOLDER [options]",
	.text = "Makes certificates for development: a CA of your own (ca.pem), one for the server\n"
		"(server.pem, server.key) and one for a client. Existing files stay: a second call with\n"
		"another --client adds a client that the same server trusts.\n",
	.examples = "  sluice certs certs\n"
		    "  sluice certs certs --host queue.example,10.0.0.7 --days 90\n"
		    "  sluice certs certs --client billing --grant payments:rw,mail:r\n",
	CLI_ARGS({ "--host NAMES", ARG_TEXT, AT(certs, host), "names and addresses of the server (localhost,127.0.0.1,::1)" },
		 { "--client NAME", ARG_TEXT, AT(certs, client), "name of the client and of its files (client)" },
		 { "--grant NS:PERM", ARG_TEXT, AT(certs, grant), "namespaces it may use: r, w or rw; separated by commas (ALL:rw)" },
		 { "--days", ARG_COUNT, AT(certs, days), "days that they are valid (365)" }),
	CLI_STATE(struct certs, .host = "localhost,127.0.0.1,::1", .client = "client", .grant = "ALL:rw", .days = 365),
	.run = run,
};
