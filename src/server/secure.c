#include "server/secure.h"

#include "base/log.h"
#include "net/listen.h"
#include "net/tls_context.h"

_Static_assert((int)CONF_AUTH_REQUIRED == (int)TLS_AUTH_REQUIRED &&
		       (int)CONF_TLS_1_3 == (int)TLS_1_3,
	       "words of conf/options.c");

static int
check(const struct secure *s, const struct conf *conf, struct slu_err *err)
{
	if (!conf->tls_cert != !conf->tls_key)
		return slu_fail(err, SLU_EINVAL,
				"%s is set and %s is not: a certificate and its key go together",
				conf->tls_cert ? "tls.cert" : "tls.key",
				conf->tls_cert ? "tls.key" : "tls.cert");
	if (!conf->tls_cert && s->used)
		return slu_fail(err, SLU_EINVAL,
				"tls.cert is no longer set: TLS can only be left by a restart");
	if (conf->tls_client_auth != CONF_AUTH_OFF && !conf->tls_client_ca)
		return slu_fail(err, SLU_EINVAL,
				"tls.client_auth asks for certificates: name the CA to trust with "
				"tls.client_ca");
	return 0;
}

static int
prepare(void *arg, const struct conf *old, const struct conf *conf, struct slu_err *err)
{
	const struct tls_server_conf files = {
		.cert = conf->tls_cert,
		.key = conf->tls_key,
		.client_ca = conf->tls_client_ca,
		.client_auth = (enum tls_client_auth)conf->tls_client_auth,
		.min_version = (enum tls_version)conf->tls_min_version,
	};
	struct secure *const s = arg;
	const int rc = check(s, conf, err);

	(void)old;
	if (rc || !conf->tls_cert)
		return rc;
	return tls_context_server(&s->next, &files, err);
}

static void
abandon(void *arg)
{
	struct secure *const s = arg;

	tls_context_unref(s->next);
	s->next = NULL;
}

static void
commit(void *arg, const struct conf *now)
{
	struct secure *const s = arg;

	if (!s->next)
		return;
	if (tls_context_warning(s->next))
		log_warn(s->log, "TLS", F_STR("warning", tls_context_warning(s->next)));
	if (s->used)
		log_info(s->log, "certificate loaded", F_STR("file", now->tls_cert));
	server_set_tls(s->server, s->next);
	s->used = true;
	abandon(s); /* the server holds it */
}

int
secure_open(struct secure *s, const struct conf *conf, struct reload *reload,
	    struct slu_err *err)
{
	const int rc = prepare(s, conf, conf, err);

	if (rc)
		return rc;
	commit(s, conf);
	reload_add(reload, &(struct reload_part){ "tls", prepare, commit, abandon, s });
	return 0;
}

bool
secure_knows_clients(const struct conf *conf, const char *address)
{
	bool tls;

	(void)listen_target(address, &tls);
	return tls && conf->tls_client_auth == CONF_AUTH_REQUIRED;
}
