/*
 * tls.c - OpenSSL over a BIO of our own: it reads from the slice that tls_take was
 * given and writes behind what waits to be sent. Nothing is copied that OpenSSL does
 * not copy by itself.
 */
#include "net/tls.h"

#include "base/mem.h"
#include "net/tls_private.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum {
	MARKS = TLS_CHUNK / TLS_RECORD + 2,
	NAMED = 256 /* a name in DNS is shorter */
};

/* A record: where it ends in `out`, and what it carries. */
struct mark {
	size_t end;
	size_t plain;
};

struct tls {
	SSL *ssl;
	struct tls_context *context;
	struct tls_room *room;
	struct tls_peer *peer;
	struct slice wire; /* in tls_take: the unread bytes */
	struct buf out;
	size_t sent; /* of out */
	struct buf flying;
	size_t flying_plain;
	size_t plain; /* in out, not whole outside */
	struct mark marks[MARKS];
	uint8_t n_marks;
	uint8_t state; /* enum tls_state */
	bool fresh;
	char named[NAMED]; /* the last host that tls_is_named found; "": none */
	bool said_bye;
};

/* --- memory ------------------------------------------------------------------- */

struct tls_room *
tls_room_new(void)
{
	struct tls_room *const r = mem_zalloc(sizeof *r);

	if (r)
		buf_init(&r->spare, TLS_CHUNK + TLS_SLACK);
	return r;
}

void
tls_room_free(struct tls_room *r)
{
	if (!r)
		return;
	buf_release(&r->spare);
	mem_free(r);
}

static void
trade(struct buf *a, struct buf *b)
{
	const struct buf c = *a;

	*a = *b;
	*b = c;
}

/* Keeps one buffer in the room for the next connection. */
static void
give_back(struct tls *t, struct buf *b)
{
	buf_clear(b);
	if (!t->room->spare.p)
		trade(b, &t->room->spare);
	buf_release(b);
}

/* --- the BIO ------------------------------------------------------------------ */

static int
bio_read(BIO *b, char *p, int n)
{
	struct tls *const t = BIO_get_data(b);
	const size_t k = t->wire.n < (size_t)n ? t->wire.n : (size_t)n;

	BIO_clear_retry_flags(b);
	if (k == 0) {
		BIO_set_retry_read(b);
		return -1;
	}
	memcpy(p, t->wire.p, k);
	slice_skip(&t->wire, k);
	return (int)k;
}

static int
bio_write(BIO *b, const char *p, int n)
{
	struct tls *const t = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (!t->out.p)
		trade(&t->out, &t->room->spare);
	buf_put(&t->out, p, (size_t)n);
	return t->out.failed ? -1 : n;
}

static long
bio_ctrl(BIO *b, int what, long n, void *p)
{
	(void)b;
	(void)n;
	(void)p;
	return what == BIO_CTRL_FLUSH;
}

BIO_METHOD *
tls_bio_method(void)
{
	/* An index from BIO_get_new_index would be used up by each reload. */
	BIO_METHOD *const m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 0x7f, "sluice");

	if (m) {
		BIO_meth_set_read(m, bio_read);
		BIO_meth_set_write(m, bio_write);
		BIO_meth_set_ctrl(m, bio_ctrl);
	}
	return m;
}

/* --- open and close ----------------------------------------------------------- */

/* TLSCONTEXT-4: an IP address is checked as an address, and has no SNI. */
static bool
expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *const p = SSL_get0_param(ssl);

	if (X509_VERIFY_PARAM_set1_ip_asc(p, host) == 1)
		return true;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static bool
open_ssl(struct tls *t, const char *host)
{
	BIO *bio;

	t->ssl = SSL_new(t->context->ssl);
	if (!t->ssl)
		return false;
	bio = BIO_new(t->context->method);
	if (!bio)
		return false;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio); /* SSL owns it now */
	if (!host) {
		SSL_set_accept_state(t->ssl);
		return true;
	}
	SSL_set_connect_state(t->ssl);
	return t->context->peers || expect_host(t->ssl, host);
}

struct tls *
tls_new(struct tls_context *x, struct tls_room *r, const char *host)
{
	struct tls *const t = mem_zalloc(sizeof *t);

	if (!t)
		return NULL;
	t->context = tls_context_ref(x);
	t->room = r;
	t->fresh = true;
	buf_init(&t->out, TLS_CHUNK + TLS_SLACK);
	buf_init(&t->flying, TLS_CHUNK + TLS_SLACK);
	if (open_ssl(t, host))
		return t;
	ERR_clear_error();
	tls_free(t);
	return NULL;
}

void
tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	tls_context_unref(t->context);
	tls_peer_free(t->peer);
	give_back(t, &t->out);
	give_back(t, &t->flying);
	mem_free(t);
}

/* --- failures ----------------------------------------------------------------- */

/* OpenSSL's verdict on a certificate, or its reason for a failure: what it means here.
 * The first row that fits. */
struct verdict {
	int code;
	enum tls_fault fault;
};

static const struct verdict verdicts[] = {
	{ X509_V_ERR_CERT_HAS_EXPIRED, TLS_FAULT_EXPIRED },
	{ X509_V_ERR_CERT_NOT_YET_VALID, TLS_FAULT_EXPIRED },
	{ X509_V_ERR_HOSTNAME_MISMATCH, TLS_FAULT_HOST },
	{ X509_V_ERR_IP_ADDRESS_MISMATCH, TLS_FAULT_HOST },
	{ X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, TLS_FAULT_UNKNOWN_CA },
	{ X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, TLS_FAULT_UNKNOWN_CA },
	{ X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, TLS_FAULT_UNKNOWN_CA },
	{ X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, TLS_FAULT_UNKNOWN_CA },
	{ X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, TLS_FAULT_UNKNOWN_CA },
	{ X509_V_ERR_CERT_SIGNATURE_FAILURE, TLS_FAULT_UNKNOWN_CA },
};

static const struct verdict reasons[] = {
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, TLS_FAULT_NO_CERT },
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, TLS_FAULT_NO_CERT },
	{ SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, TLS_FAULT_NO_CERT },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, TLS_FAULT_CERT_REFUSED },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, TLS_FAULT_CERT_REFUSED },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, TLS_FAULT_CERT_REFUSED },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, TLS_FAULT_CERT_REFUSED },
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA, TLS_FAULT_CERT_REFUSED },
	{ SSL_R_WRONG_VERSION_NUMBER, TLS_FAULT_NOT_TLS },
	{ SSL_R_HTTP_REQUEST, TLS_FAULT_NOT_TLS },
	{ ERR_R_MALLOC_FAILURE, TLS_FAULT_OUT_OF_MEMORY },
};

static enum tls_fault
fault_of(const struct verdict *rows, size_t n, int code)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].code == code)
			return rows[i].fault;
	return TLS_FAULT_OTHER;
}

static enum tls_state
fail(struct tls *t)
{
	const unsigned long e = ERR_peek_last_error();
	const long verdict = SSL_get_verify_result(t->ssl);
	const char *const text = ERR_reason_error_string(e);
	struct tls_room *const r = t->room;

	if (ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		r->fault = fault_of(verdicts, sizeof verdicts / sizeof verdicts[0], (int)verdict);
		(void)snprintf(r->why, sizeof r->why, "%s", /* may be cut */
			       X509_verify_cert_error_string(verdict));
	} else {
		r->fault = fault_of(reasons, sizeof reasons / sizeof reasons[0],
				    ERR_GET_REASON(e));
		(void)snprintf(r->why, sizeof r->why, "%s", text ? text : "no memory");
	}
	ERR_clear_error();
	t->state = TLS_FAILED;
	return TLS_FAILED;
}

/* --- in ----------------------------------------------------------------------- */

/* The handshake checked the certificate; stores its names. */
static void
know_peer(struct tls *t)
{
	struct tls_room *const r = t->room;
	struct slu_err err = { 0 };
	X509 *cert;

	t->state = TLS_OPEN;
	if (!SSL_is_server(t->ssl))
		return;
	cert = SSL_get0_peer_certificate(t->ssl);
	if (!cert || !tls_peer_new(&t->peer, cert, &err))
		return;
	r->fault = err.code == SLU_ENOMEM ? TLS_FAULT_OUT_OF_MEMORY : TLS_FAULT_OTHER;
	(void)snprintf(r->why, sizeof r->why, "%s", err.text); /* may be cut */
	t->state = TLS_FAILED;
}

static void
shake(struct tls *t)
{
	const int rc = SSL_do_handshake(t->ssl);

	if (rc == 1)
		know_peer(t);
	else if (SSL_get_error(t->ssl, rc) != SSL_ERROR_WANT_READ)
		fail(t);
}

static void
open_records(struct tls *t, struct slice *plain)
{
	struct tls_room *const r = t->room;
	size_t n = 0, k;
	int rc;

	for (;;) {
		rc = SSL_read_ex(t->ssl, r->plain + n, sizeof r->plain - n, &k);
		if (rc != 1)
			break;
		n += k;
		assert(n < sizeof r->plain); /* TLS-1 */
	}
	rc = SSL_get_error(t->ssl, rc);
	if (rc == SSL_ERROR_ZERO_RETURN)
		t->state = TLS_ENDED;
	else if (rc != SSL_ERROR_WANT_READ)
		fail(t);
	*plain = (struct slice){ r->plain, n };
}

enum tls_state
tls_take(struct tls *t, struct slice wire, struct slice *plain)
{
	assert(wire.n <= TLS_READ);
	*plain = (struct slice){ t->room->plain, 0 };
	t->fresh &= wire.n == 0;
	t->wire = wire;
	ERR_clear_error();
	if (t->state == TLS_SHAKING)
		shake(t);
	if (t->state == TLS_OPEN)
		open_records(t, plain);
	t->wire = (struct slice){ NULL, 0 };
	return t->state;
}

bool
tls_is_fresh(const struct tls *t)
{
	return t->fresh;
}

enum tls_state
tls_state(const struct tls *t)
{
	return t->state;
}

const struct tls_peer *
tls_peer(const struct tls *t)
{
	return t->peer;
}

static bool
has_name(X509 *cert, const char *host)
{
	char address[NAMED];
	const size_t n = strlen(host);

	if (host[0] == '[' && host[n - 1] == ']') {
		memcpy(address, host + 1, n - 2);
		address[n - 2] = '\0';
		return X509_check_ip_asc(cert, address, 0) == 1;
	}
	return X509_check_ip_asc(cert, host, 0) == 1 || X509_check_host(cert, host, n, 0, NULL) == 1;
}

bool
tls_is_named(struct tls *t, struct slice host)
{
	X509 *const cert = SSL_get_certificate(t->ssl);
	char text[NAMED];

	if (!cert || host.n == 0 || host.n >= sizeof text || memchr(host.p, '\0', host.n))
		return false;
	if (slice_eq(slice_of(t->named), host))
		return true;
	memcpy(text, host.p, host.n);
	text[host.n] = '\0';
	if (!has_name(cert, text)) {
		ERR_clear_error();
		return false;
	}
	memcpy(t->named, text, host.n + 1);
	return true;
}

const char *
tls_version(const struct tls *t)
{
	return SSL_get_version(t->ssl);
}

bool
tls_binding(struct tls *t, uint8_t out[static TLS_BINDING])
{
	static const char label[] = "EXPORTER-Channel-Binding";
	const bool made = SSL_export_keying_material(t->ssl, out, TLS_BINDING, label, sizeof label - 1, NULL, 0, 1) == 1;

	ERR_clear_error();
	return made;
}

/* --- out ---------------------------------------------------------------------- */

static bool
is_writable(const struct tls *t)
{
	return (t->state == TLS_OPEN || t->state == TLS_ENDED) && !t->said_bye;
}

static int
seal(struct tls *t, const char *p, size_t n)
{
	size_t done;

	assert(t->n_marks < MARKS);
	ERR_clear_error();
	if (SSL_write_ex(t->ssl, p, n, &done) != 1) {
		fail(t);
		return SLU_EDOWN;
	}
	assert(done == n);
	t->marks[t->n_marks++] = (struct mark){ t->out.n, n };
	t->plain += n;
	return 0;
}

size_t
tls_room_for(const struct tls *t)
{
	const size_t used = t->plain + t->room->n_record;

	return is_writable(t) && used < TLS_CHUNK ? TLS_CHUNK - used : 0;
}

/* Small pieces are gathered, so that a record carries many. */
int
tls_put(struct tls *t, const char *p, size_t n)
{
	struct tls_room *const r = t->room;
	int rc = is_writable(t) ? 0 : SLU_EDOWN;

	while (n > 0 && !rc) {
		const size_t room = TLS_RECORD - r->n_record;
		const size_t k = n < room ? n : room;

		if (k == TLS_RECORD) {
			rc = seal(t, p, k);
		} else {
			memcpy(r->record + r->n_record, p, k);
			r->n_record += k;
			if (r->n_record == TLS_RECORD)
				rc = tls_put_end(t);
		}
		p += k;
		n -= k;
	}
	return rc;
}

int
tls_put_end(struct tls *t)
{
	const size_t n = t->room->n_record;

	t->room->n_record = 0;
	return n > 0 ? seal(t, t->room->record, n) : 0;
}

void
tls_put_bye(struct tls *t)
{
	if (!is_writable(t))
		return;
	t->said_bye = true;
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl); /* 0: the close_notify of the client has not arrived, and is not needed */
	ERR_clear_error();
}

struct slice
tls_out(const struct tls *t)
{
	return (struct slice){ t->out.n ? t->out.p + t->sent : NULL, t->out.n - t->sent };
}

size_t
tls_sent(struct tls *t, size_t k)
{
	size_t whole = 0;
	uint8_t n = 0;

	t->sent += k;
	assert(t->sent <= t->out.n);
	for (; n < t->n_marks && t->marks[n].end <= t->sent; n++)
		whole += t->marks[n].plain;
	t->n_marks = (uint8_t)(t->n_marks - n);
	memmove(t->marks, t->marks + n, t->n_marks * sizeof t->marks[0]);
	t->plain -= whole;
	if (t->sent == t->out.n) {
		give_back(t, &t->out);
		t->sent = 0;
	}
	return whole;
}

struct slice
tls_fly(struct tls *t)
{
	const struct slice rest = tls_out(t);

	assert(!t->flying.n);
	trade(&t->out, &t->flying);
	t->flying_plain = t->plain;
	t->plain = 0;
	t->n_marks = 0;
	t->sent = 0;
	return rest;
}

size_t
tls_landed(struct tls *t)
{
	const size_t n = t->flying_plain;

	t->flying_plain = 0;
	give_back(t, &t->flying);
	return n;
}
