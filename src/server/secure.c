#include "server/secure.h"

#include "base/log.h"
#include "net/listen.h"
#include "net/tls_context.h"

_Static_assert((int)CONF_AUTH_REQUIRED == (int)TLS_AUTH_REQUIRED &&
		       (int)CONF_TLS_1_3 == (int)TLS_1_3,
	       "words of conf/options.c");

static int
check(const struct conf *conf, struct slu_err *err)
{
	if (!conf->tls_cert != !conf->tls_key)
		return slu_fail(err, SLU_EINVAL,
				"%s is set and %s is not: a certificate and its key go together",
				conf->tls_cert ? "tls.cert" : "tls.key",
				conf->tls_cert ? "tls.key" : "tls.cert");
	if (conf->tls_client_auth != CONF_AUTH_OFF && !conf->tls_client_ca)
		return slu_fail(err, SLU_EINVAL,
				"tls.client_auth asks for certificates: name the CA to trust with "
				"tls.client_ca");
	return 0;
}

int
secure_load(struct server *s, const struct conf *conf, struct slu_log *log,
	    struct slu_err *err)
{
	const struct tls_server_conf files = {
		.cert = conf->tls_cert,
		.key = conf->tls_key,
		.client_ca = conf->tls_client_ca,
		.client_auth = (enum tls_client_auth)conf->tls_client_auth,
		.min_version = (enum tls_version)conf->tls_min_version,
	};
	struct tls_context *x = NULL;
	int rc;

	rc = check(conf, err);
	if (rc || !conf->tls_cert)
		return rc;
	rc = tls_context_server(&x, &files, err);
	if (rc)
		return rc;
	if (tls_context_warning(x))
		log_warn(log, "TLS", F_STR("warning", tls_context_warning(x)));
	server_set_tls(s, x);
	tls_context_unref(x);
	return 0;
}

bool
secure_knows_clients(const struct conf *conf, const char *address)
{
	bool tls;

	(void)listen_target(address, &tls);
	return tls && conf->tls_client_auth == CONF_AUTH_REQUIRED;
}
