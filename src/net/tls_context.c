#include "net/tls_context.h"

#include "base/mem.h"
#include "net/tls_private.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SOON_DAYS = 14,
	CHAIN_DEPTH = 8
};

/* TLSCONTEXT-1: what TLS 1.2 may use; 1.3 has none that are weak. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

/* --- files -------------------------------------------------------------------- */

/* Reports the last error of OpenSSL for this file. */
static int
bad_file(struct slu_err *err, const char *what, const char *file, const char *hint)
{
	const unsigned long e = ERR_peek_error();
	const char *text = ERR_reason_error_string(e);

	if (ERR_SYSTEM_ERROR(e))
		text = strerror(ERR_GET_REASON(e));
	slu_fail(err, SLU_EINVAL, "%s %s: %s%s", what, file, text ? text : "not readable", hint);
	ERR_clear_error();
	return SLU_EINVAL;
}

/* A server has no terminal to type a password. */
static int
no_password(char *out, int size, int writing, void *arg)
{
	(void)writing;
	*(bool *)arg = true;
	if (size > 0)
		*out = '\0';
	return -1;
}

static int
load_key(SSL_CTX *c, const char *cert, const char *key, struct slu_err *err)
{
	bool locked = false;
	int rc;

	SSL_CTX_set_default_passwd_cb(c, no_password);
	SSL_CTX_set_default_passwd_cb_userdata(c, &locked);
	rc = SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM);
	SSL_CTX_set_default_passwd_cb_userdata(c, NULL);
	if (locked)
		return slu_fail(err, SLU_EINVAL,
				"key %s is locked with a password: store it without (openssl pkey) "
				"and readable by the server alone",
				key);
	if (rc == 1)
		return 0;
	if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH ||
	    ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_TYPE_MISMATCH) {
		ERR_clear_error();
		return slu_fail(err, SLU_EINVAL, "key %s is not the key of certificate %s", key,
				cert);
	}
	return bad_file(err, "key", key, ": expected a private key in PEM");
}

static int
load_pair(SSL_CTX *c, const char *cert, const char *key, struct slu_err *err)
{
	if (SSL_CTX_use_certificate_chain_file(c, cert) != 1)
		return bad_file(err, "certificate", cert, ": expected certificates in PEM");
	return load_key(c, cert, key, err);
}

static int
load_ca(SSL_CTX *c, const char *file, struct slu_err *err)
{
	if (SSL_CTX_load_verify_file(c, file) != 1)
		return bad_file(err, "CA file", file, ": expected certificates in PEM");
	return 0;
}

/* --- warnings ----------------------------------------------------------------- */

static void
warn_key(struct tls_context *x, const char *key)
{
	struct stat st;

	if (stat(key, &st) == 0 && st.st_mode & S_IROTH)
		(void)snprintf(x->warning, sizeof x->warning,
			       "everybody on this machine can read key %s: chmod o-r it", key);
}

static void
warn_date(struct tls_context *x, const char *cert)
{
	const ASN1_TIME *const end = X509_get0_notAfter(SSL_CTX_get0_certificate(x->ssl));
	const size_t n = strlen(x->warning);
	int days = 0, seconds = 0;

	if (ASN1_TIME_diff(&days, &seconds, NULL, end) != 1)
		return;
	if (days < 0 || seconds < 0)
		(void)snprintf(x->warning + n, sizeof x->warning - n,
			       "%scertificate %s has expired: clients will refuse it", n ? "; " : "",
			       cert);
	else if (days < SOON_DAYS)
		(void)snprintf(x->warning + n, sizeof x->warning - n,
			       "%scertificate %s expires in %d days", n ? "; " : "", cert, days);
}

const char *
tls_context_warning(const struct tls_context *x)
{
	return x->warning[0] ? x->warning : NULL;
}

/* --- what all share ----------------------------------------------------------- */

static int
open_context(struct tls_context **out, const SSL_METHOD *method, enum tls_version min,
	     struct slu_err *err)
{
	struct tls_context *const x = mem_zalloc(sizeof *x);

	*out = x;
	if (x) {
		atomic_store(&x->refs, 1);
		x->ssl = SSL_CTX_new(method);
		x->method = tls_bio_method();
	}
	if (!x || !x->ssl || !x->method ||
	    SSL_CTX_set_min_proto_version(x->ssl, min == TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(x->ssl, ciphers) != 1) {
		ERR_clear_error();
		slu_fail(err, SLU_ENOMEM, "no memory for TLS");
		return SLU_ENOMEM;
	}
	SSL_CTX_set_options(x->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					    SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(x->ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(x->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify_depth(x->ssl, CHAIN_DEPTH);
	return 0;
}

static int
done(struct tls_context **out, int rc, struct slu_err *err)
{
	if (!rc)
		return 0;
	if (rc != SLU_EINVAL)
		slu_fail(err, rc, "no memory for TLS");
	ERR_clear_error();
	tls_context_unref(*out);
	*out = NULL;
	return rc;
}

struct tls_context *
tls_context_ref(struct tls_context *x)
{
	atomic_fetch_add(&x->refs, 1);
	return x;
}

void
tls_context_unref(struct tls_context *x)
{
	if (!x || atomic_fetch_sub(&x->refs, 1) != 1)
		return;
	SSL_CTX_free(x->ssl);
	BIO_meth_free(x->method);
	mem_free(x);
}

/* --- servers ------------------------------------------------------------------ */

/* Names of ALPN, each behind its length. */
static const unsigned char http_protocol[] = "\x08http/1.1";
static const unsigned char peer_protocol[] = "\x0bsluice-peer";

/* A client that offers protocols must offer the one in arg. A client that offers no protocol is accepted. */
static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		const unsigned char *in, unsigned in_len, void *arg)
{
	const unsigned char *const ours = arg;

	(void)ssl;
	if (SSL_select_next_proto((unsigned char **)out, out_len, ours, 1u + ours[0], in,
				  in_len) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* TLSCONTEXT-2. The names of the authorities tell a client which of its certificates to show. */
static int
ask_clients(struct tls_context *x, const struct tls_server_conf *conf, struct slu_err *err)
{
	STACK_OF(X509_NAME) * names;
	int mode = SSL_VERIFY_PEER;
	int rc;

	if (conf->client_auth == TLS_AUTH_OFF)
		return 0;
	if (!conf->client_ca)
		return slu_fail(err, SLU_EINVAL,
				"client certificates need a CA file: set tls.client_ca");
	rc = load_ca(x->ssl, conf->client_ca, err);
	if (rc)
		return rc;
	names = SSL_load_client_CA_file(conf->client_ca);
	if (!names)
		return bad_file(err, "CA file", conf->client_ca, "");
	SSL_CTX_set_client_CA_list(x->ssl, names);
	if (conf->client_auth == TLS_AUTH_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(x->ssl, mode, NULL);
	return 0;
}

/* TLSCONTEXT-3: the keys of tickets are OpenSSL's, random for each context. */
static int
set_tickets(SSL_CTX *c)
{
	static const unsigned char id[] = "sluice";

	SSL_CTX_set_timeout(c, TLS_TICKET_SECONDS);
	SSL_CTX_set_num_tickets(c, 1);
	return SSL_CTX_set_session_id_context(c, id, sizeof id - 1) == 1 ? 0 : SLU_ENOMEM;
}

int
tls_context_server(struct tls_context **out, const struct tls_server_conf *conf,
		   struct slu_err *err)
{
	int rc;

	if (!conf->cert || !conf->key) {
		*out = NULL;
		return slu_fail(err, SLU_EINVAL, "TLS needs a certificate and its key");
	}
	ERR_clear_error();
	rc = open_context(out, TLS_server_method(), conf->min_version, err);
	if (!rc)
		rc = load_pair((*out)->ssl, conf->cert, conf->key, err);
	if (!rc)
		rc = ask_clients(*out, conf, err);
	if (!rc)
		rc = set_tickets((*out)->ssl);
	if (rc)
		return done(out, rc, err);
	SSL_CTX_set_alpn_select_cb((*out)->ssl, choose_protocol, (void *)http_protocol);
	warn_key(*out, conf->key);
	warn_date(*out, conf->cert);
	return 0;
}

/* --- clients ------------------------------------------------------------------ */

static int
offer_protocol(SSL_CTX *c, const unsigned char *ours)
{
	return SSL_CTX_set_alpn_protos(c, ours, 1u + ours[0]) == 0 ? 0 : SLU_ENOMEM;
}

int
tls_context_client(struct tls_context **out, const struct tls_client_conf *conf,
		   struct slu_err *err)
{
	int rc;

	if (!conf->cert != !conf->key) {
		*out = NULL;
		return slu_fail(err, SLU_EINVAL, "a certificate and its key go together: give both");
	}
	ERR_clear_error();
	rc = open_context(out, TLS_client_method(), TLS_1_2, err);
	if (!rc && conf->ca_file)
		rc = load_ca((*out)->ssl, conf->ca_file, err);
	else if (!rc)
		rc = SSL_CTX_set_default_verify_paths((*out)->ssl) == 1 ? 0 : SLU_ENOMEM;
	if (!rc && conf->cert)
		rc = load_pair((*out)->ssl, conf->cert, conf->key, err);
	if (!rc)
		rc = offer_protocol((*out)->ssl, http_protocol);
	if (rc)
		return done(out, rc, err);
	SSL_CTX_set_verify((*out)->ssl, SSL_VERIFY_PEER, NULL); /* TLSCONTEXT-4 */
	return 0;
}

/* --- peers -------------------------------------------------------------------- */

/* Every node is a server: its certificate is checked as a server's, also where the node connects. */
static int
check_peers(SSL_CTX *c, const char *ca, struct slu_err *err)
{
	const int rc = ca ? load_ca(c, ca, err) : 0;

	if (rc || !ca)
		return rc;
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return SSL_CTX_set_purpose(c, X509_PURPOSE_SSL_SERVER) == 1 ? 0 : SLU_ENOMEM;
}

int
tls_context_peers(struct tls_context **out, const struct tls_peers_conf *conf, struct slu_err *err)
{
	int rc;

	ERR_clear_error();
	rc = open_context(out, TLS_method(), TLS_1_3, err);
	if (!rc)
		rc = load_pair((*out)->ssl, conf->cert, conf->key, err);
	if (!rc)
		rc = check_peers((*out)->ssl, conf->ca, err);
	if (!rc)
		rc = offer_protocol((*out)->ssl, peer_protocol);
	if (rc)
		return done(out, rc, err);
	SSL_CTX_set_alpn_select_cb((*out)->ssl, choose_protocol, (void *)peer_protocol);
	SSL_CTX_set_num_tickets((*out)->ssl, 0);
	(*out)->peers = true;
	return 0;
}

/* --- the one in force --------------------------------------------------------- */

void
tls_slot_init(struct tls_slot *s)
{
	*s = (struct tls_slot){ .mtx = PTHREAD_MUTEX_INITIALIZER };
}

void
tls_slot_release(struct tls_slot *s)
{
	tls_context_unref(s->now);
	s->now = NULL;
}

void
tls_slot_set(struct tls_slot *s, struct tls_context *x)
{
	struct tls_context *old;

	pthread_mutex_lock(&s->mtx);
	old = s->now;
	s->now = tls_context_ref(x);
	pthread_mutex_unlock(&s->mtx);
	tls_context_unref(old);
}

struct tls_context *
tls_slot_get(struct tls_slot *s)
{
	struct tls_context *x;

	pthread_mutex_lock(&s->mtx);
	x = s->now ? tls_context_ref(s->now) : NULL;
	pthread_mutex_unlock(&s->mtx);
	return x;
}
