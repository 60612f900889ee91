/*
 * token.c - `sluice token`: tokens and keys for development, and for scripts.
 */
#include "auth/keyring.h"
#include "auth/mint.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/args.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum {
	TTL_DAYS_MAX = 3660
};

struct request {
	const char *secret_file, *key_file, *alg, *kid;
	const char *sub, *scope, *issuer, *audience;
	slu_time ttl;
	bool new_key, public, help;

	struct buf scopes; /* --scope and the words */
	struct key key;
};

static void
help(const struct arg *rows, size_t n)
{
	puts("usage: sluice token [SCOPE...] [options]\n\n"
	     "Print a token that a server with the same secret, or with the public half of the\n"
	     "same key, takes: for development, tests and small set-ups. A SCOPE is\n"
	     "NAMESPACE:read, write, consume, admin or *; the namespace may be * or end in one.\n"
	     "With --new-key print a fresh key instead; with --public the public half of one.\n");
	args_help(rows, n, stdout);
	puts("\nexamples:\n"
	     "  sluice token --new-key >secret && chmod 600 secret\n"
	     "  sluiced --auth-keys HS256:secret\n"
	     "  sluice token --secret-file secret 'payments:write' 'payments:read'\n"
	     "  export SLUICE_TOKEN=$(sluice token --secret-file secret --ttl 8h '*:*')\n"
	     "  sluice token --new-key --alg ES256 >key.pem\n"
	     "  sluice token --key-file key.pem --public >pub.pem\n"
	     "  sluice token --key-file key.pem --sub worker-1 'payments:*'");
}

/* --- keys ------------------------------------------------------------------------- */

static int
find_alg(const struct request *r, enum jwt_alg *alg, struct slu_err *err)
{
	*alg = jwt_alg_of(slice_of(r->alg ? r->alg : "HS256"));
	if (*alg != JWT_NO_ALG)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"--alg: expected HS256, HS384, HS512, RS256, ES256 or EdDSA, not %s", r->alg);
}

static int
print(struct buf *out, struct slu_err *err)
{
	if (fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0)
		return 0;
	return slu_fail(err, SLU_EDOWN, "stdout: %m");
}

static int
new_key(const struct request *r, struct slu_err *err)
{
	enum jwt_alg alg;
	struct buf text;
	int rc;

	buf_init(&text, KEY_FILE_MAX);
	rc = find_alg(r, &alg, err);
	if (!rc)
		rc = mint_key(alg, &text, err);
	if (!rc)
		rc = print(&text, err);
	secret_free(&text);
	return rc;
}

/* A private key tells what it is for, unless that was said. */
static int
take_pem(struct request *r, struct slice pem, struct slu_err *err)
{
	static const enum jwt_alg tries[] = { JWT_RS256, JWT_ES256, JWT_EDDSA };
	enum jwt_alg alg;
	int rc;

	if (r->alg) {
		rc = find_alg(r, &alg, err);
		if (!rc && key_is_secret(alg))
			rc = slu_fail(err, SLU_EINVAL, "%s is signed with a secret: --secret-file", r->alg);
		return rc ? rc : key_pem(&r->key, alg, pem, true, err);
	}
	rc = SLU_EINVAL;
	for (size_t i = 0; i < sizeof tries / sizeof tries[0] && rc; i++)
		rc = key_pem(&r->key, tries[i], pem, true, NULL);
	return rc ? slu_fail(err, rc, "expected a private key as PEM: RSA, EC on P-256 or Ed25519") : 0;
}

static int
take_secret(struct request *r, struct slice secret, struct slu_err *err)
{
	enum jwt_alg alg;
	int rc;

	rc = find_alg(r, &alg, err);
	if (!rc && !key_is_secret(alg))
		rc = slu_fail(err, SLU_EINVAL, "%s is signed with a private key: --key-file", r->alg);
	return rc ? rc : key_secret(&r->key, alg, secret, err);
}

static int
load_key(struct request *r, struct slu_err *err)
{
	const char *const file = r->secret_file ? r->secret_file : r->key_file;
	struct slu_err why = { 0 };
	struct buf text;
	int rc;

	if (!r->secret_file == !r->key_file)
		return slu_fail(err, SLU_EINVAL,
				"expected --secret-file or --key-file; --new-key makes one");
	rc = secret_read(file, KEY_FILE_MAX, &text, err);
	if (rc)
		return rc;
	rc = r->secret_file ? take_secret(r, buf_slice(&text), &why)
			    : take_pem(r, buf_slice(&text), &why);
	secret_free(&text);
	if (rc)
		return slu_fail(err, rc, "%s: %s", file, why.text);
	return key_name(&r->key, slice_of(r->kid ? r->kid : ""), err);
}

static int
print_public(struct request *r, struct slu_err *err)
{
	struct buf pem;
	int rc;

	if (!r->key.pkey)
		return slu_fail(err, SLU_EINVAL, "--public: a secret has no public half");
	buf_init(&pem, KEY_FILE_MAX);
	rc = mint_public(&r->key, &pem, err);
	if (!rc)
		rc = print(&pem, err);
	buf_release(&pem);
	return rc;
}

/* --- tokens ----------------------------------------------------------------------- */

static int
add_scopes(struct request *r, struct slice scopes, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	while (scopes.n > 0) {
		const char *const space = memchr(scopes.p, ' ', scopes.n);
		const size_t n = space ? (size_t)(space - scopes.p) : scopes.n;
		const struct slice scope = { scopes.p, n };
		struct grants g = { .n = 0 };

		if (n > 0 && !grants_add_scope(&g, scope))
			return slu_fail(err, SLU_EINVAL,
					"expected NAMESPACE:read, write, consume, admin or *, not %s",
					parse_shown(scope, shown));
		if (n > 0 && r->scopes.n > 0)
			buf_putc(&r->scopes, ' ');
		buf_put(&r->scopes, scope.p, n);
		scopes = (struct slice){ scopes.p + n + (space != NULL), scopes.n - n - (space != NULL) };
	}
	return 0;
}

static int
gather_scopes(struct request *r, int argc, char **argv, struct slu_err *err)
{
	int rc = r->scope ? add_scopes(r, slice_of(r->scope), err) : 0;

	for (int i = 0; i < argc && !rc; i++)
		rc = add_scopes(r, slice_of(argv[i]), err);
	if (!rc && r->scopes.n == 0)
		rc = slu_fail(err, SLU_EINVAL,
			      "expected a scope: payments:read, '*:*'; see --help");
	return rc;
}

static int
print_token(struct request *r, struct slu_err *err)
{
	const struct mint m = {
		.sub = r->sub,
		.scope = buf_str(&r->scopes),
		.issuer = r->issuer,
		.audience = r->audience,
		.now = clock_wall(&clock_system),
		.ttl = r->ttl,
	};
	struct buf token;
	int rc;

	if (r->ttl < SLU_SEC || r->ttl > TTL_DAYS_MAX * 24 * SLU_HOUR)
		return slu_fail(err, SLU_EINVAL, "--ttl: expected 1s to ten years");
	buf_init(&token, JWT_MAX);
	rc = mint_token(&m, &r->key, &token, err);
	buf_putc(&token, '\n');
	if (!rc)
		rc = token.failed ? slu_fail(err, SLU_ETOOBIG, "a token has at most %d bytes", JWT_MAX)
				  : print(&token, err);
	secret_free(&token);
	return rc;
}

static int
run(struct request *r, int argc, char **argv, struct slu_err *err)
{
	int rc;

	if (r->new_key)
		return new_key(r, err);
	rc = load_key(r, err);
	if (!rc && r->public)
		return print_public(r, err);
	if (!rc)
		rc = gather_scopes(r, argc, argv, err);
	return rc ? rc : print_token(r, err);
}

int
cli_token(int argc, char **argv)
{
	struct request r = { .sub = getenv("USER"), .ttl = SLU_HOUR };
	const struct arg rows[] = {
		{ "--secret-file FILE", ARG_TEXT, &r.secret_file, "sign with this secret; - is stdin" },
		{ "--key-file FILE", ARG_TEXT, &r.key_file, "sign with this private key (PEM)" },
		{ "--alg HS256|HS384|HS512|RS256|ES256|EdDSA", ARG_TEXT, &r.alg, "how to sign (HS256)" },
		{ "--kid NAME", ARG_TEXT, &r.kid, "which key this is, where the server has several" },
		{ "--sub NAME", ARG_TEXT, &r.sub, "who the token is for (USER)" },
		{ "--scope SCOPES", ARG_TEXT, &r.scope, "what it may do, with spaces between; as the words" },
		{ "--issuer TEXT", ARG_TEXT, &r.issuer, "iss: what the server's auth.issuer says" },
		{ "--audience TEXT", ARG_TEXT, &r.audience, "aud: what the server's auth.audience says" },
		{ "--ttl", ARG_TIME, &r.ttl, "how long it is good (1h)" },
		{ "--new-key", ARG_FLAG, &r.new_key, "print a fresh secret or private key for --alg" },
		{ "--public", ARG_FLAG, &r.public, "print the public half of --key-file" },
		{ "-h, --help", ARG_FLAG, &r.help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err;
	int rc;

	argc--;
	argv++;
	buf_init(&r.scopes, JWT_MAX);
	rc = args_parse(&argc, argv, rows, n, &err);
	if (!rc && r.help)
		help(rows, n);
	else if (!rc)
		rc = run(&r, argc, argv, &err);
	if (rc)
		fprintf(stderr, "sluice token: %s\n", err.text);
	key_release(&r.key);
	buf_release(&r.scopes);
	if (!rc)
		return CLI_OK;
	return rc == SLU_EINVAL ? CLI_USAGE : CLI_FAILED;
}
