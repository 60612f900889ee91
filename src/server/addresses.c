#include "server/addresses.h"

#include "base/log.h"
#include "net/listen.h"
#include "server/login.h"
#include "server/manager.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)CONF_LIST_MAX <= (int)ADDRESSES_MAX &&
		       (int)MANAGER_FDS_MAX <= (int)ADDRESSES_MAX,
	       "ADDRESSES_MAX");

static bool
is_passed(const char *address)
{
	bool tls;

	return strncmp(listen_target(address, &tls), "fd:", 3) == 0;
}

unsigned
addresses(const struct conf *conf, struct addresses *out)
{
	const unsigned passed = conf_origin(conf, "listen") ? 0 : manager_sockets();

	*out = (struct addresses){ 0 };
	for (; out->n < passed; out->n++) {
		(void)snprintf(out->passed[out->n], sizeof out->passed[0], "fd:%u",
			       MANAGER_FIRST_FD + out->n);
		out->items[out->n] = out->passed[out->n];
	}
	for (; !passed && out->n < conf->listen.n; out->n++)
		out->items[out->n] = conf->listen.items[out->n];
	return out->n;
}

bool
addresses_are_passed(const struct addresses *list)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < list->n; i++)
		passed += is_passed(list->items[i]);
	return list->n > 0 && passed == list->n;
}

void
addresses_tell_unused(const struct addresses *list, struct slu_log *log)
{
	bool used = false;

	for (unsigned i = 0; i < list->n; i++)
		used |= is_passed(list->items[i]);
	if (manager_sockets() && !used)
		log_warn(log, "passed sockets are not served: listen is set, and without fd:3",
			 F_U64("sockets", manager_sockets()));
}

static int
check_one(const struct conf *conf, const char *address, struct slu_err *err)
{
	bool tls;
	int rc = listen_spelled(address, err);

	if (rc)
		return rc;
	(void)listen_target(address, &tls);
	if (!conf->insecure && !login_is_on(conf) && !listen_is_local(address))
		return slu_fail(err, SLU_EINVAL,
				"--listen %s: other machines could reach it, and nobody has to "
				"say who he is; set auth.keys, ask for certificates "
				"(tls.client_auth), listen on 127.0.0.1, or say "
				"--insecure",
				address);
	if (tls && !conf->tls_cert)
		return slu_fail(err, SLU_EINVAL,
				"%s: TLS needs a certificate and its key: set tls.cert and tls.key",
				address);
	rc = listen_check(address, err);
	return rc == SLU_EDOWN ? 0 : rc; /* a name that cannot be looked up now is no fault */
}

int
addresses_check(const struct conf *conf, struct slu_err *err)
{
	struct addresses list;
	int rc = 0;

	for (unsigned i = 0; !rc && i < addresses(conf, &list); i++)
		rc = check_one(conf, list.items[i], err);
	return rc;
}
