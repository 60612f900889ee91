#include "server/login.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>

static struct auth_conf
auth_of(const struct conf *conf)
{
	return (struct auth_conf){
		.keys = conf->auth_keys.items,
		.n_keys = conf->auth_keys.n,
		.jwks = conf->auth_jwks,
		.secret = conf->auth_secret,
		.aws_keys = conf->auth_aws_keys,
		.audience = conf->auth_audience,
		.issuer = conf->auth_issuer,
		.leeway = conf->auth_leeway,
		.max_age = conf->auth_max_age,
		.codeq = conf->codeq_tokens,
	};
}

bool
login_is_on(const struct conf *conf)
{
	const struct auth_conf auth = auth_of(conf);

	return auth_conf_has_keys(&auth) || conf->tls_client_auth != CONF_AUTH_OFF;
}

/* A file that cannot be read is reported as an invalid setting. */
static int
as_setting(int rc, struct slu_err *err)
{
	if (rc != SLU_EDOWN)
		return rc;
	err->code = SLU_EINVAL;
	return SLU_EINVAL;
}

int
login_check(const struct conf *conf, struct slu_err *err)
{
	const struct auth_conf auth = auth_of(conf);

	return as_setting(auth_conf_check(&auth, err), err);
}

/* --- reload ----------------------------------------------------------------------- */

static int
prepare(void *arg, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	struct login *const l = arg;
	const struct auth_conf auth = auth_of(next);

	(void)old; /* the files may have changed although the settings have not */
	return auth_prepare(l->guard.auth, &auth, err);
}

static void
commit(void *arg, const struct conf *now)
{
	struct login *const l = arg;

	(void)now; /* prepare used it */
	auth_commit(l->guard.auth);
}

static void
abandon(void *arg)
{
	struct login *const l = arg;

	auth_abandon(l->guard.auth);
}

/* --- open ------------------------------------------------------------------------- */

int
login_open(struct login *l, const struct conf *conf, struct reload *reload,
	   struct slu_log *log, struct slu_err *err)
{
	const struct auth_conf auth = auth_of(conf);
	int rc;

	l->guard = (struct guard){
		.hosts = conf->auth_hosts.items,
		.n_hosts = conf->auth_hosts.n,
		.metrics = conf->auth_metrics,
		.places = l->places,
	};
	rc = auth_open(&l->guard.auth, &auth, conf->threads, &clock_system, err);
	if (rc)
		return as_setting(rc, err);
	reload_add(reload, &(struct reload_part){ "auth", prepare, commit, abandon, l });
	if (!guard_is_on(&l->guard) && (auth.audience || auth.issuer))
		log_warn(log, "auth.audience and auth.issuer are not used: no key is set");
	return 0;
}

void
login_close(struct login *l)
{
	auth_close(l->guard.auth);
	l->guard.auth = NULL;
}

void
login_place(struct login *l, unsigned listener, struct guard_place place)
{
	assert(listener < LOGIN_PLACES);
	l->places[listener] = place;
}
