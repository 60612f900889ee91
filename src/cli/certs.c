/*
 * certs.c - `sluice certs`: certificates to try TLS with, in one command.
 */
#include "cli/args.h"
#include "cli/cli.h"

#include "base/bytes.h"
#include "net/tls_make.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

enum {
	NAMES_MAX = 4096
};

struct certs {
	const char *folder;
	const char *host;   /* commas between */
	const char *client; /* its name, and its files' */
	const char *grant;  /* "payments:rw,mail:r" */
	uint64_t days;
	bool wants_help;
};

static void
help(const struct arg *rows, size_t n)
{
	puts("usage: sluice certs FOLDER [options]\n\n"
	     "Makes certificates for development: a CA of your own (ca.pem), one for the server\n"
	     "(server.pem, server.key) and one for a client. What is there stays: called again\n"
	     "with another --client it adds one that the same server trusts.\n");
	args_help(rows, n, stdout);
	puts("\nexamples:\n  sluice certs certs\n"
	     "  sluice certs certs --host queue.example,10.0.0.7 --days 90\n"
	     "  sluice certs certs --client billing --grant payments:rw,mail:r");
}

static int
usage(const char *what)
{
	fprintf(stderr, "sluice certs: %s; see `sluice certs --help`\n", what);
	return CLI_USAGE;
}

static struct slice
next_part(const char **list)
{
	const size_t n = strcspn(*list, ",");
	const struct slice part = { *list, n };

	*list += n + ((*list)[n] == ',');
	return part;
}

/* Characters that mean nothing to whoever reads the lists of names. */
static bool
is_plain(struct slice s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";

	return s.n > 0 && s.p[0] != '.' && strspn(s.p, plain) >= s.n;
}

/* "IP:127.0.0.1,DNS:localhost". False: one is no name. */
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

/* The claims that the server reads (auth/cert.h), one a namespace. */
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

/* One of the three. What is there already is fine if it may be. */
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
		return slu_fail(err, SLU_EINVAL, "the folder's name is too long");
	if (put) {
		fine = put(&names, list);
		r.names = buf_str(&names);
		r.ca = ca;
	}
	if (!fine || names.failed)
		rc = slu_fail(err, SLU_EINVAL, "%.60s: expected %s", list,
			      put == put_hosts ? "names and addresses, commas between"
					       : "NAMESPACE:r, :w or :rw, commas between");
	else
		rc = tls_make(path, &r, err);
	buf_release(&names);
	return rc == SLU_EEXISTS && may_be_there ? 0 : rc;
}

static int
run(const struct certs *c, struct slu_err *err)
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

int
cli_certs(int argc, char **argv)
{
	struct certs c = {
		.host = "localhost,127.0.0.1,::1", .client = "client", .grant = "ALL:rw", .days = 365
	};
	const struct arg rows[] = {
		{ "--host NAMES", ARG_TEXT, &c.host, "what the server is called (localhost,127.0.0.1,::1)" },
		{ "--client NAME", ARG_TEXT, &c.client, "who the client is, and its file (client)" },
		{ "--grant NS:PERM", ARG_TEXT, &c.grant, "namespaces it may use: r, w or rw; commas between (ALL:rw)" },
		{ "--days", ARG_COUNT, &c.days, "how long they are good for (365)" },
		{ "-h, --help", ARG_FLAG, &c.wants_help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err = { 0 };

	argc--;
	argv++;
	if (args_parse(&argc, argv, rows, n, &err))
		return usage(err.text);
	if (c.wants_help) {
		help(rows, n);
		return CLI_OK;
	}
	if (argc != 1 || c.days > 36500)
		return usage(argc != 1 ? "name one folder" : "--days: at most 36500");
	if (!is_plain(slice_of(c.client)))
		return usage("--client: letters, digits, . _ and - alone");
	c.folder = argv[0];
	if (run(&c, &err)) {
		fprintf(stderr, "sluice certs: %s\n", err.text);
		return CLI_FAILED;
	}
	tell(&c);
	return CLI_OK;
}
