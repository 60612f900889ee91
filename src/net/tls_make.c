#include "net/tls_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

enum {
	DAY = 24 * 60 * 60,
	SERIAL_BYTES = 16,
	CERT_MODE = 0644,
	KEY_MODE = 0600
};

/* A certificate and its key. */
struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

static void
pair_release(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	*p = (struct pair){ 0 };
}

static int
failed(struct slu_err *err, const char *what)
{
	const char *const why = ERR_reason_error_string(ERR_peek_last_error());

	slu_fail(err, SLU_EINVAL, "%s: %s", what, why ? why : "OpenSSL gives no reason");
	ERR_clear_error();
	return SLU_EINVAL;
}

/* --- files ---------------------------------------------------------------------- */

static FILE *
open_new(const char *path, const char *suffix, mode_t mode, struct slu_err *err)
{
	char name[PATH_MAX];
	int fd;
	FILE *f;

	if (snprintf(name, sizeof name, "%s%s", path, suffix) >= (int)sizeof name) {
		slu_fail(err, SLU_EINVAL, "%.60s...: the path is too long", path);
		return NULL;
	}
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f)
		return f;
	if (errno == EEXIST)
		slu_fail(err, SLU_EEXISTS, "%s exists: remove it or choose another folder",
			 name);
	else
		slu_fail(err, SLU_EDOWN, "%s: %m", name);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int
written(FILE *f, bool fine, const char *path, struct slu_err *err)
{
	fine &= fclose(f) == 0;
	ERR_clear_error();
	return fine ? 0 : slu_fail(err, SLU_EDOWN, "write %s: %m", path);
}

static int
save(const struct pair *p, const char *path, struct slu_err *err)
{
	FILE *f = open_new(path, ".key", KEY_MODE, err);
	int rc;

	if (!f)
		return err->code;
	rc = written(f, PEM_write_PKCS8PrivateKey(f, p->key, NULL, NULL, 0, NULL, NULL) == 1, path,
		     err);
	if (rc)
		return rc;
	f = open_new(path, ".pem", CERT_MODE, err);
	if (!f)
		return err->code;
	return written(f, PEM_write_X509(f, p->cert) == 1, path, err);
}

static FILE *
open_old(const char *path, const char *suffix, struct slu_err *err)
{
	char name[PATH_MAX];
	FILE *f;

	(void)snprintf(name, sizeof name, "%s%s", path, suffix); /* cut: not found */
	f = fopen(name, "re");
	if (!f)
		slu_fail(err, SLU_EDOWN, "%s: %m", name);
	return f;
}

static int
load(struct pair *p, const char *path, struct slu_err *err)
{
	FILE *f = open_old(path, ".pem", err);

	if (!f)
		return err->code;
	p->cert = PEM_read_X509(f, NULL, NULL, NULL);
	(void)fclose(f); /* only read */
	f = open_old(path, ".key", err);
	if (!f)
		return err->code;
	p->key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	(void)fclose(f); /* only read */
	return p->cert && p->key ? 0 : failed(err, path);
}

/* --- contents ------------------------------------------------------------------- */

static bool
set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *n;
	bool fine;

	if (RAND_bytes(bytes, sizeof bytes) != 1)
		return false;
	bytes[0] &= 0x7f; /* positive */
	n = BN_bin2bn(bytes, sizeof bytes, NULL);
	fine = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return fine;
}

static bool
set_dates(X509 *cert, int days)
{
	const long from = days > 0 ? -DAY : (long)(days - 2) * DAY; /* clocks differ */

	return X509_gmtime_adj(X509_getm_notBefore(cert), from) &&
	       X509_gmtime_adj(X509_getm_notAfter(cert), days > 0 ? (long)days * DAY : (long)days * DAY - 1);
}

static bool
set_subject(X509 *cert, const char *name)
{
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
					  (const unsigned char *)name, -1, -1, 0) == 1;
}

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *e;
	bool fine;

	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	fine = e && X509_add_ext(cert, e, -1) == 1;
	X509_EXTENSION_free(e);
	return fine;
}

static bool
add_extensions(X509 *cert, X509 *issuer, const struct tls_recipe *r)
{
	const bool is_ca = !r->ca;

	return add_extension(cert, issuer, NID_basic_constraints,
			     is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
	       add_extension(cert, issuer, NID_key_usage,
			     is_ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
	       add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
	       (is_ca || add_extension(cert, issuer, NID_authority_key_identifier, "keyid")) &&
	       (is_ca || add_extension(cert, issuer, NID_ext_key_usage, "serverAuth,clientAuth")) &&
	       (!r->names || add_extension(cert, issuer, NID_subject_alt_name, r->names));
}

static bool
fill(struct pair *p, const struct pair *ca, const struct tls_recipe *r)
{
	X509 *const issuer = ca->cert ? ca->cert : p->cert;

	return X509_set_version(p->cert, X509_VERSION_3) == 1 && set_serial(p->cert) &&
	       set_dates(p->cert, r->days) && set_subject(p->cert, r->subject) &&
	       X509_set_issuer_name(p->cert, X509_get_subject_name(issuer)) == 1 &&
	       X509_set_pubkey(p->cert, p->key) == 1 && add_extensions(p->cert, issuer, r) &&
	       X509_sign(p->cert, ca->key ? ca->key : p->key, EVP_sha256()) > 0;
}

int
tls_make(const char *path, const struct tls_recipe *r, struct slu_err *err)
{
	struct pair ca = { 0 };
	struct pair p = { .cert = X509_new(), .key = EVP_EC_gen("P-256") };
	int rc = 0;

	if (!p.cert || !p.key)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for a certificate");
	if (!rc && r->ca)
		rc = load(&ca, r->ca, err);
	if (!rc && !fill(&p, &ca, r))
		rc = failed(err, r->names ? r->names : r->subject);
	if (!rc)
		rc = save(&p, path, err);
	pair_release(&p);
	pair_release(&ca);
	return rc;
}
