#include "server/protocols.h"

#include "api/authorize_call.h"
#include "api/dialect.h"
#include "api/home.h"
#include "core/names.h"
#include "http/http.h"
#include "net/listen.h"
#include "net/protocol.h"
#include "server/login.h"
#include "server/node_private.h"

#include <assert.h>
#include <stdio.h>

static const void *
http_of(struct node *n)
{
	assert(authorize_routes(n->routes, n->n_routes));
	n->http = (struct http_conf){
		.routes = n->routes,
		.n_routes = n->n_routes,
		.authorize = authorize_call,
		.describe = dialect_describe,
		.page = home_page,
	};
	return &n->http;
}

static const void *
beanstalk_of(struct node *n)
{
	(void)name_fold(slice_of(n->conf->beanstalk_namespace), "namespace", n->bean_space, NULL); /* beanstalk_check */
	n->beanstalk = (struct beanstalk_conf){
		.space = n->bean_space,
		.max_job = (uint32_t)n->conf->beanstalk_max_job,
		.max_attempts = (uint16_t)n->conf->beanstalk_max_attempts,
	};
	return &n->beanstalk;
}

/* The protocol has no tokens: only a client certificate shows who calls. */
static int
beanstalk_check(const struct conf *conf, const char *address, bool tls, struct slu_err *err)
{
	const bool has_certificates = tls && conf->tls_client_auth == CONF_AUTH_REQUIRED;
	char space[NAME_TEXT];

	if (!has_certificates && !listen_is_local(address))
		return slu_fail(err, SLU_EINVAL,
				"--listen %s: other machines can reach this address, and the protocol has no tokens; listen on "
				"127.0.0.1, or use beanstalks:// with tls.client_auth: required",
				address);
	if (!has_certificates && login_is_on(conf))
		return slu_fail(err, SLU_EINVAL,
				"--listen %s: authentication is on, and the protocol has no tokens; use beanstalks:// with "
				"tls.client_auth: required",
				address);
	return name_fold(slice_of(conf->beanstalk_namespace), "beanstalk.namespace", space, err);
}

static const struct {
	const struct protocol *ops;
	const void *(*conf)(struct node *n);
	int (*check)(const struct conf *conf, const char *address, bool tls, struct slu_err *err); /* NULL: none */
} rows[] = {
	{ &http_protocol, http_of, NULL },
	{ &beanstalk_protocol, beanstalk_of, beanstalk_check },
};

enum {
	N_ROWS = sizeof rows / sizeof rows[0]
};

_Static_assert((int)N_ROWS < (int)SERVER_PROTOCOLS, "a server has room for every row and one of a test");

unsigned
protocols_of(struct node *n, struct server_protocol out[static SERVER_PROTOCOLS])
{
	unsigned used = 0;

	if (n->hand && n->hand->protocol)
		out[used++] = (struct server_protocol){ n->hand->protocol, NULL };
	for (unsigned i = 0; i < N_ROWS; i++)
		out[used++] = (struct server_protocol){ rows[i].ops, rows[i].conf(n) };
	return used;
}

bool
protocols_have(struct slice name)
{
	if (name.n == 0)
		return true;
	for (unsigned i = 0; i < N_ROWS; i++)
		if (slice_eq(name, slice_of(rows[i].ops->name)))
			return true;
	return false;
}

const char *
protocols_schemes(char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (unsigned i = 0; i < N_ROWS && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s:// or %ss://", i ? ", " : "", rows[i].ops->name,
				      rows[i].ops->name);
	return out;
}

int
protocols_check(const struct conf *conf, const char *address, bool tls, struct slu_err *err)
{
	const struct slice name = listen_scheme(address);

	for (unsigned i = 0; i < N_ROWS; i++)
		if (rows[i].check && slice_eq(name, slice_of(rows[i].ops->name)))
			return rows[i].check(conf, address, tls, err);
	return 0;
}
