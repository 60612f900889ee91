#include "server/tlsfiles.h"

#include "base/log.h"
#include "base/mem.h"
#include "conf/slurp.h"
#include "net/tls_context.h"
#include "server/links.h"
#include "server/login.h"

_Static_assert((int)CONF_AUTH_REQUIRED == (int)TLS_AUTH_REQUIRED &&
		       (int)CONF_TLS_1_3 == (int)TLS_1_3,
	       "words of conf/options.c");

static int
check_settings(const struct conf *conf, struct slu_err *err)
{
	if (!conf->tls_cert != !conf->tls_key)
		return slu_fail(err, SLU_EINVAL,
				"%s without %s; expected both, a certificate and its key",
				conf->tls_cert ? "tls.cert" : "tls.key",
				conf->tls_cert ? "tls.key" : "tls.cert");
	if (conf->tls_client_auth != CONF_AUTH_OFF && !conf->tls_client_ca)
		return slu_fail(err, SLU_EINVAL,
				"tls.client_auth needs the authorities of client certificates; "
				"set tls.client_ca");
	return 0;
}

/* Refuses to turn TLS or authentication off in a running server. */
static int
check_change(const struct tlsfiles *s, const struct conf *conf, struct slu_err *err)
{
	if (!conf->tls_cert && s->used)
		return slu_fail(err, SLU_EINVAL,
				"tls.cert is missing; turning TLS off needs a restart");
	if (atomic_load(&s->guard->certificates) && !login_is_on(conf))
		return slu_fail(err, SLU_EINVAL,
				"tls.client_auth is off and there are no keys; turning authentication "
				"off needs a restart");
	return 0;
}

/* --- reload --------------------------------------------------------------------- */

static void
free_map(struct cert_map *map)
{
	if (map)
		cert_map_release(map);
	mem_free(map);
}

static void
abandon(void *arg)
{
	struct tlsfiles *const s = arg;

	tls_context_unref(s->next);
	tls_context_unref(s->next_peers);
	free_map(s->next_map);
	s->next = s->next_peers = NULL;
	s->next_map = NULL;
}

static int
read_map(struct cert_map **out, const char *file, struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct buf text;
	int rc;

	*out = mem_zalloc(sizeof **out);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	buf_init(&text, CERT_FILE_MAX);
	rc = slurp(file, &text, err);
	if (!rc && cert_map_parse(*out, buf_slice(&text), &why))
		rc = slu_fail(err, why.code, "auth.certificates %s: %s", file, why.text);
	buf_release(&text);
	return rc;
}

static int
read_certificate(struct tls_context **out, const struct conf *conf, struct slu_err *err)
{
	const struct tls_server_conf files = {
		.cert = conf->tls_cert,
		.key = conf->tls_key,
		.client_ca = conf->tls_client_ca,
		.client_auth = (enum tls_client_auth)conf->tls_client_auth,
		.min_version = (enum tls_version)conf->tls_min_version,
	};

	return tls_context_server(out, &files, err);
}

static int
read_peers(struct tls_context **out, const struct conf *conf, struct slu_err *err)
{
	const struct tls_peers_conf files = { .cert = conf->tls_cert, .key = conf->tls_key, .ca = conf->tls_peer_ca };

	return tls_context_peers(out, &files, err);
}

static int
prepare(void *arg, const struct conf *old, const struct conf *conf, struct slu_err *err)
{
	struct tlsfiles *const s = arg;
	int rc = check_settings(conf, err);

	(void)old; /* the files may have changed although the settings have not */
	if (!rc)
		rc = check_change(s, conf, err);
	if (!rc && conf->tls_cert)
		rc = read_certificate(&s->next, conf, err);
	if (!rc && conf->tls_cert && links_use_tls(conf))
		rc = read_peers(&s->next_peers, conf, err);
	if (!rc && conf->auth_certificates)
		rc = read_map(&s->next_map, conf->auth_certificates, err);
	if (rc)
		abandon(s);
	return rc;
}

static void
set_certificate(struct tlsfiles *s, const char *file)
{
	if (tls_context_warning(s->next))
		log_warn(s->log, "TLS", F_STR("warning", tls_context_warning(s->next)));
	server_set_tls(s->server, s->next);
	if (s->used)
		log_info(s->log, "certificate loaded", F_STR("file", file));
	s->used = true;
}

static void
nothing(void *arg)
{
	(void)arg;
}

/* After every network thread ran `nothing`, no thread reads the old map. */
static void
set_map(struct tlsfiles *s, bool running)
{
	struct cert_map *const old = s->map;

	s->map = s->next_map;
	s->next_map = NULL;
	atomic_store(&s->guard->map, s->map);
	if (old && running)
		server_each(s->server, nothing, NULL);
	free_map(old);
}

static void
install(struct tlsfiles *s, const struct conf *now, bool running)
{
	set_map(s, running);
	atomic_store(&s->guard->certificates, now->tls_client_auth != CONF_AUTH_OFF);
	if (s->next)
		set_certificate(s, now->tls_cert);
	if (s->next_peers)
		tls_slot_set(&s->peers, s->next_peers);
	abandon(s); /* the server has its own reference */
}

static void
commit(void *arg, const struct conf *now)
{
	install(arg, now, true);
}

/* --- open ----------------------------------------------------------------------- */

int
tlsfiles_open(struct tlsfiles *s, const struct conf *conf, struct reload *reload,
	      struct slu_err *err)
{
	const int rc = prepare(s, conf, conf, err);

	tls_slot_init(&s->peers);
	if (rc)
		return rc;
	install(s, conf, false);
	reload_add(reload, &(struct reload_part){ "tls", prepare, commit, abandon, s });
	return 0;
}

int
tlsfiles_check(const struct conf *conf, struct slu_err *err)
{
	struct guard none = { 0 };
	struct tlsfiles s = { .guard = &none };
	const int rc = prepare(&s, conf, conf, err);

	abandon(&s);
	return rc;
}

void
tlsfiles_close(struct tlsfiles *s)
{
	free_map(s->map);
	s->map = NULL;
	tls_slot_release(&s->peers);
}
