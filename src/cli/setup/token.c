/*
 * token.c - `sluice token`: makes tokens and keys for development and scripts.
 */
#include "auth/keyring.h"
#include "auth/mint.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/lib/session.h"

#include <stdlib.h>

enum {
	TTL_DAYS_MAX = 3660
};

struct token_command {
	struct session s;
	const char *secret_file, *key_file, *alg, *kid;
	const char *sub, *scope, *issuer, *audience;
	slu_time ttl;
	bool new_key, public;

	struct buf scopes; /* the scopes of --scope and of the words */
	struct key key;
};

/* --- keys ------------------------------------------------------------------------- */

static int
find_alg(const struct token_command *r, enum jwt_alg *alg, struct slu_err *err)
{
	*alg = jwt_alg_of(slice_of(r->alg ? r->alg : "HS256"));
	if (*alg != JWT_NO_ALG)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"invalid --alg: %s; expected HS256, HS384, HS512, RS256, ES256 or EdDSA", r->alg);
}

static int
print(struct buf *out, struct slu_err *err)
{
	if (fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0)
		return 0;
	return slu_fail(err, SLU_EDOWN, "stdout: %m");
}

static int
new_key(const struct token_command *r, struct slu_err *err)
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

/* Reads a private key. Without --alg the type of the key decides. */
static int
take_pem(struct token_command *r, struct slice pem, struct slu_err *err)
{
	static const enum jwt_alg tries[] = { JWT_RS256, JWT_ES256, JWT_EDDSA };
	enum jwt_alg alg;
	int rc;

	if (r->alg) {
		rc = find_alg(r, &alg, err);
		if (!rc && key_is_secret(alg))
			rc = slu_fail(err, SLU_EINVAL, "%s needs a secret: --secret-file", r->alg);
		return rc ? rc : key_pem(&r->key, alg, pem, true, err);
	}
	rc = SLU_EINVAL;
	for (size_t i = 0; i < sizeof tries / sizeof tries[0] && rc; i++)
		rc = key_pem(&r->key, tries[i], pem, true, NULL);
	return rc ? slu_fail(err, rc, "invalid key; expected a private key in PEM: RSA, EC on P-256 or Ed25519") : 0;
}

static int
take_secret(struct token_command *r, struct slice secret, struct slu_err *err)
{
	enum jwt_alg alg;
	int rc;

	rc = find_alg(r, &alg, err);
	if (!rc && !key_is_secret(alg))
		rc = slu_fail(err, SLU_EINVAL, "%s needs a private key: --key-file", r->alg);
	return rc ? rc : key_secret(&r->key, alg, secret, err);
}

static int
load_key(struct token_command *r, struct slu_err *err)
{
	const char *const file = r->secret_file ? r->secret_file : r->key_file;
	struct slu_err why = { 0 };
	struct buf text;
	int rc;

	if (!r->secret_file == !r->key_file)
		return slu_fail(err, SLU_EINVAL,
				"missing key; expected --secret-file or --key-file; --new-key makes one");
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
print_public(struct token_command *r, struct slu_err *err)
{
	struct buf pem;
	int rc;

	if (!r->key.pkey)
		return slu_fail(err, SLU_EINVAL, "--public needs --key-file: a secret has no public half");
	buf_init(&pem, KEY_FILE_MAX);
	rc = mint_public(&r->key, &pem, err);
	if (!rc)
		rc = print(&pem, err);
	buf_release(&pem);
	return rc;
}

/* --- tokens ----------------------------------------------------------------------- */

static int
add_scopes(struct token_command *r, struct slice scopes, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	while (scopes.n > 0) {
		struct grants g = { .n = 0 };
		struct slice scope;

		(void)slice_cut(&scopes, ' ', &scope);
		if (scope.n > 0 && !grants_add_scope(&g, scope))
			return slu_fail(err, SLU_EINVAL,
					"invalid scope: %s; expected NAMESPACE:read, write, consume, admin or *",
					parse_shown(scope, shown));
		if (scope.n > 0 && r->scopes.n > 0)
			buf_putc(&r->scopes, ' ');
		buf_put(&r->scopes, scope.p, scope.n);
	}
	return 0;
}

static int
gather_scopes(struct token_command *r, struct slu_err *err)
{
	int rc = r->scope ? add_scopes(r, slice_of(r->scope), err) : 0;

	for (int i = 0; i < r->s.n_words && !rc; i++)
		rc = add_scopes(r, slice_of(r->s.words[i]), err);
	if (!rc && r->scopes.n == 0)
		rc = slu_fail(err, SLU_EINVAL,
			      "missing scope; expected payments:read or '*:*'; see --help");
	return rc;
}

static int
print_token(struct token_command *r, struct slu_err *err)
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
		return slu_fail(err, SLU_EINVAL, "invalid --ttl; expected 1s to ten years");
	buf_init(&token, JWT_MAX);
	rc = mint_token(&m, &r->key, &token, err);
	buf_putc(&token, '\n');
	if (!rc)
		rc = token.failed ? slu_fail(err, SLU_ETOOBIG, "token too long; expected at most %d bytes", JWT_MAX)
				  : print(&token, err);
	secret_free(&token);
	return rc;
}

static int
make(struct token_command *r, struct slu_err *err)
{
	int rc;

	if (r->new_key)
		return new_key(r, err);
	rc = load_key(r, err);
	if (!rc && r->public)
		return print_public(r, err);
	if (!rc)
		rc = gather_scopes(r, err);
	return rc ? rc : print_token(r, err);
}

static int
run(struct session *s, struct slu_err *err)
{
	struct token_command *const r = (void *)s;
	int rc;

	r->sub = r->sub ? r->sub : getenv("USER");
	buf_init(&r->scopes, JWT_MAX);
	rc = make(r, err);
	key_release(&r->key);
	buf_release(&r->scopes);
	return rc == SLU_EINVAL ? session_usage(&r->s, "%s", err->text) : rc;
}

const struct command cli_token = {
	.name = "token",
	.group = "Setup",
	.summary = "make a token, or a key, for development",
	.usage = "[SCOPE...] [options]",
	.text = "Prints a token for development, tests and small set-ups. A server with the same secret,\n"
		"or with the public half of the same key, accepts it. A SCOPE is NAMESPACE:read, write,\n"
		"consume, admin or *; the namespace may be * or end in *. With --new-key prints a new\n"
		"key instead; with --public the public half of a key.\n",
	.examples = "  sluice token --new-key >secret && chmod 600 secret\n"
		    "  sluiced --auth-keys HS256:secret\n"
		    "  sluice token --secret-file secret 'payments:write' 'payments:read'\n"
		    "  export SLUICE_TOKEN=$(sluice token --secret-file secret --ttl 8h '*:*')\n"
		    "  sluice token --new-key --alg ES256 >key.pem\n"
		    "  sluice token --key-file key.pem --public >pub.pem\n"
		    "  sluice token --key-file key.pem --sub worker-1 'payments:*'\n",
	CLI_ARGS({ "--secret-file FILE", ARG_TEXT, AT(token_command, secret_file), "sign with this secret; - is stdin" },
		 { "--key-file FILE", ARG_TEXT, AT(token_command, key_file), "sign with this private key (PEM)" },
		 { "--alg HS256|HS384|HS512|RS256|ES256|EdDSA", ARG_TEXT, AT(token_command, alg), "signature algorithm (HS256)" },
		 { "--kid NAME", ARG_TEXT, AT(token_command, kid), "id of the key, if the server has several" },
		 { "--sub NAME", ARG_TEXT, AT(token_command, sub), "subject of the token (USER)" },
		 { "--scope SCOPES", ARG_TEXT, AT(token_command, scope), "scopes separated by spaces; like the words" },
		 { "--issuer TEXT", ARG_TEXT, AT(token_command, issuer), "iss: the value of the server's auth.issuer" },
		 { "--audience TEXT", ARG_TEXT, AT(token_command, audience), "aud: the value of the server's auth.audience" },
		 { "--ttl", ARG_TIME, AT(token_command, ttl), "how long the token is valid (1h)" },
		 { "--new-key", ARG_FLAG, AT(token_command, new_key), "print a new secret or private key for --alg" },
		 { "--public", ARG_FLAG, AT(token_command, public), "print the public half of --key-file" }),
	CLI_STATE(struct token_command, .ttl = SLU_HOUR),
	.run = run,
};
