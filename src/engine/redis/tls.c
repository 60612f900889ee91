#include "engine/redis/tls.h"

#include "base/mem.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>

struct rtls {
	SSL *ssl;
	char why[160];
};

/* The text of the last OpenSSL error. */
static const char *
reason(void)
{
	const char *text = NULL;
	unsigned long code;

	while ((code = ERR_get_error()) != 0)
		text = ERR_reason_error_string(code);
	return text ? text : "out of memory";
}

/* ---- Files ---- */

static int
bad_file(const struct rwire_conf *conf, const char *what, const char *file, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL, "redis %s: %s %s: %s", conf->address, what, file, reason());
}

static int
load_files(SSL_CTX *c, const struct rwire_conf *conf, struct slu_err *err)
{
	const bool pair = conf->tls_cert && conf->tls_key;

	if (!conf->tls_cert != !conf->tls_key)
		return slu_fail(err, SLU_EINVAL,
				"redis %s: expected both a certificate and its key",
				conf->address);
	if (conf->tls_ca && SSL_CTX_load_verify_file(c, conf->tls_ca) != 1)
		return bad_file(conf, "CA file", conf->tls_ca, err);
	if (!conf->tls_ca && SSL_CTX_set_default_verify_paths(c) != 1)
		return slu_fail(err, SLU_ENOMEM, "no memory for TLS");
	if (pair && SSL_CTX_use_certificate_chain_file(c, conf->tls_cert) != 1)
		return bad_file(conf, "certificate", conf->tls_cert, err);
	if (pair && SSL_CTX_use_PrivateKey_file(c, conf->tls_key, SSL_FILETYPE_PEM) != 1)
		return bad_file(conf, "key", conf->tls_key, err);
	return 0;
}

/* REDISTLS-1 */
static SSL_CTX *
new_context(void)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());

	if (!c)
		return NULL;
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) == 1)
		return c;
	SSL_CTX_free(c);
	return NULL;
}

/* ---- Opening ---- */

/* Sets the name to check. An IP address is checked as an address, and not sent as SNI. */
static bool
expect_name(SSL *ssl, const struct rwire_conf *conf)
{
	const char *colon = strrchr(conf->address, ':');
	char host[256];

	if (conf->tls_name)
		(void)snprintf(host, sizeof host, "%s", conf->tls_name);
	else
		(void)snprintf(host, sizeof host, "%.*s", (int)(colon - conf->address), conf->address);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
		return true;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

int
rtls_check(const struct rwire_conf *conf, struct slu_err *err)
{
	SSL_CTX *c;
	int rc;

	ERR_clear_error();
	c = new_context();
	rc = c ? load_files(c, conf, err) : slu_fail(err, SLU_ENOMEM, "no memory for TLS");
	SSL_CTX_free(c); /* NULL is fine */
	return rc;
}

int
rtls_open(struct rtls **out, const struct rwire_conf *conf, int fd, struct slu_err *err)
{
	struct rtls *t = mem_zalloc(sizeof *t);
	SSL_CTX *c;
	int rc = 0;

	ERR_clear_error();
	c = new_context();
	if (!t || !c)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for TLS");
	if (!rc)
		rc = load_files(c, conf, err);
	if (!rc) {
		t->ssl = SSL_new(c);
		if (!t->ssl || !expect_name(t->ssl, conf) || SSL_set_fd(t->ssl, fd) != 1)
			rc = slu_fail(err, SLU_ENOMEM, "no memory for TLS");
	}
	SSL_CTX_free(c); /* the session has its own reference */
	*out = t;
	if (rc) {
		rtls_close(t);
		*out = NULL;
	}
	return rc;
}

void
rtls_close(struct rtls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	mem_free(t);
}

const char *
rtls_why(const struct rtls *t)
{
	return t->why;
}

/* ---- Bytes ---- */

/* Stores why TLS failed. A certificate that is not trusted has a text of its own. */
static void
note_why(struct rtls *t)
{
	const long verdict = SSL_get_verify_result(t->ssl);

	(void)snprintf(t->why, sizeof t->why, "TLS: %s", verdict == X509_V_OK ? reason() : X509_verify_cert_error_string(verdict));
	ERR_clear_error();
}

/* The outcome of an OpenSSL call that returned n. */
static ssize_t
outcome(struct rtls *t, int n, short *events)
{
	const int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, n);

	switch (error) {
	case SSL_ERROR_NONE:
		return n;
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		*events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		errno = errno && n < 0 ? errno : ECONNRESET;
		return -1;
	default:
		note_why(t);
		errno = EPROTO;
		return -1;
	}
}

static int
at_most(size_t n)
{
	return n < 1 << 30 ? (int)n : 1 << 30;
}

int
rtls_shake(struct rtls *t, short *events)
{
	errno = 0;
	return (int)outcome(t, SSL_connect(t->ssl), events);
}

ssize_t
rtls_send(struct rtls *t, const char *p, size_t n, short *events)
{
	errno = 0;
	return outcome(t, SSL_write(t->ssl, p, at_most(n)), events);
}

ssize_t
rtls_recv(struct rtls *t, char *p, size_t n, short *events)
{
	errno = 0;
	return outcome(t, SSL_read(t->ssl, p, at_most(n)), events);
}
