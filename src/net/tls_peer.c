#include "net/tls_peer.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* Names gather here, each with its terminator; the first two are subject and serial. */
struct tls_gathered {
	struct buf text;
	unsigned n_uris, n_dns;
	size_t uris[TLS_URIS_MAX], dns[TLS_DNS_MAX];
	size_t serial;
};

static int
no_memory(struct slu_err *err)
{
	ERR_clear_error();
	return slu_fail(err, SLU_ENOMEM, "no memory for the names of a certificate");
}

static int
put_name(struct tls_gathered *g, struct slice name, struct slu_err *err)
{
	buf_put(&g->text, name.p, name.n);
	buf_putc(&g->text, '\0');
	if (!g->text.failed)
		return 0;
	if (g->text.n + name.n < TLS_TEXT_MAX)
		return no_memory(err);
	return slu_fail(err, SLU_EINVAL, "the certificate's names are longer than %d bytes together",
			TLS_TEXT_MAX);
}

static bool
is_plain(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return s.n > 0 && s.n <= TLS_NAME_MAX;
}

/* --- subject and serial --------------------------------------------------------- */

/* The format escapes whatever is not printable. */
static int
put_subject(struct tls_gathered *g, const X509 *cert, struct slu_err *err)
{
	BIO *const b = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n;
	int rc;

	if (!b || X509_NAME_print_ex(b, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) < 0) {
		BIO_free(b);
		return no_memory(err);
	}
	n = BIO_get_mem_data(b, &p);
	if (n > TLS_NAME_MAX)
		rc = slu_fail(err, SLU_EINVAL, "the certificate's subject is longer than %d bytes",
			      TLS_NAME_MAX);
	else
		rc = put_name(g, (struct slice){ p, (size_t)n }, err);
	BIO_free(b);
	return rc;
}

static int
put_serial(struct tls_gathered *g, const X509 *cert, struct slu_err *err)
{
	const ASN1_INTEGER *const serial = X509_get0_serialNumber(cert);
	struct buf hex;
	int rc;

	buf_init(&hex, TLS_NAME_MAX);
	for (int i = 0; i < ASN1_STRING_length(serial); i++)
		buf_printf(&hex, "%02x", ASN1_STRING_get0_data(serial)[i]);
	g->serial = g->text.n;
	rc = hex.failed ? slu_fail(err, SLU_EINVAL, "the certificate's serial number is too long")
			: put_name(g, buf_slice(&hex), err);
	buf_release(&hex);
	return rc;
}

/* --- other names ---------------------------------------------------------------- */

static int
put_alternative(struct tls_gathered *g, const GENERAL_NAME *name, struct slu_err *err)
{
	int kind;
	const ASN1_STRING *const s = GENERAL_NAME_get0_value(name, &kind);
	const bool is_uri = kind == GEN_URI;
	unsigned *const n = is_uri ? &g->n_uris : &g->n_dns;
	const unsigned max = is_uri ? TLS_URIS_MAX : TLS_DNS_MAX;
	struct slice text;

	if (!is_uri && kind != GEN_DNS)
		return 0;
	text = (struct slice){ (const char *)ASN1_STRING_get0_data(s),
			       (size_t)ASN1_STRING_length(s) };
	if (!is_plain(text))
		return slu_fail(err, SLU_EINVAL,
				"a name of the certificate is empty, longer than %d bytes, or not "
				"printable",
				TLS_NAME_MAX);
	if (*n == max)
		return slu_fail(err, SLU_EINVAL, "the certificate has more than %u %s names", max,
				is_uri ? "URI" : "DNS");
	(is_uri ? g->uris : g->dns)[(*n)++] = g->text.n;
	return put_name(g, text, err);
}

static int
put_alternatives(struct tls_gathered *g, const X509 *cert, struct slu_err *err)
{
	int found = 0, rc = 0;
	GENERAL_NAMES *const names = X509_get_ext_d2i(cert, NID_subject_alt_name, &found, NULL);

	if (!names) {
		ERR_clear_error();
		return found == -1 ? 0 : slu_fail(err, SLU_EINVAL, "the certificate's names are malformed");
	}
	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !rc; i++)
		rc = put_alternative(g, sk_GENERAL_NAME_value(names, i), err);
	GENERAL_NAMES_free(names);
	return rc;
}

/* --- both ------------------------------------------------------------------------ */

static struct tls_peer *
peer_of(const struct tls_gathered *g)
{
	struct tls_peer *const p = mem_zalloc(sizeof *p + g->text.n);

	if (!p)
		return NULL;
	memcpy(p->text, g->text.p, g->text.n);
	p->subject = p->text;
	p->serial = p->text + g->serial;
	p->n_uris = g->n_uris;
	p->n_dns = g->n_dns;
	for (unsigned i = 0; i < g->n_uris; i++)
		p->uris[i] = p->text + g->uris[i];
	for (unsigned i = 0; i < g->n_dns; i++)
		p->dns[i] = p->text + g->dns[i];
	return p;
}

int
tls_peer_new(struct tls_peer **out, const X509 *cert, struct slu_err *err)
{
	struct tls_gathered g = { .n_uris = 0 };
	int rc;

	*out = NULL;
	buf_init(&g.text, TLS_TEXT_MAX);
	rc = put_subject(&g, cert, err);
	if (!rc)
		rc = put_serial(&g, cert, err);
	if (!rc)
		rc = put_alternatives(&g, cert, err);
	if (!rc) {
		*out = peer_of(&g);
		rc = *out ? 0 : no_memory(err);
	}
	buf_release(&g.text);
	return rc;
}

void
tls_peer_free(struct tls_peer *p)
{
	mem_free(p);
}
