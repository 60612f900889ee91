#include "server/addresses.h"

#include "base/log.h"
#include "net/listen.h"
#include "server/links.h"
#include "server/login.h"
#include "server/systemd.h"
#include "server/protocols.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)CONF_LIST_MAX <= (int)ADDRESSES_MAX &&
		       (int)SYSTEMD_FDS_MAX <= (int)ADDRESSES_MAX,
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
	const unsigned passed = conf_origin(conf, "listen") ? 0 : systemd_sockets();

	*out = (struct addresses){ 0 };
	for (; out->n < passed; out->n++) {
		(void)snprintf(out->passed[out->n], sizeof out->passed[0], "fd:%u",
			       SYSTEMD_FIRST_FD + out->n);
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
	if (systemd_sockets() && !used)
		log_warn(log, "passed sockets are not served: listen is set, and without fd:3",
			 F_U64("sockets", systemd_sockets()));
}

static int
check_certificate(const struct conf *conf, const char *address, bool tls, struct slu_err *err)
{
	if (tls && !conf->tls_cert)
		return slu_fail(err, SLU_EINVAL,
				"--listen %s: missing certificate; set tls.cert and tls.key",
				address);
	return 0;
}

static int
check_one(const struct conf *conf, const char *address, struct slu_err *err)
{
	struct slu_err why;
	char schemes[96];
	bool tls;
	const int rc = listen_check(address, &why);

	(void)listen_target(address, &tls);
	if (links_is_address(address)) /* the secret of the store proves other nodes */
		return rc && rc != SLU_EDOWN ? slu_fail(err, rc, "%s", why.text) : check_certificate(conf, address, tls, err);
	/* Before a name that cannot be looked up: that may depend on the network. */
	if (!conf->insecure && !login_is_on(conf) && !listen_is_local(address) &&
	    !(rc && is_passed(address)) && strchr(address, ':'))
		return slu_fail(err, SLU_EINVAL,
				"--listen %s: other machines can reach this address without "
				"authentication; set auth.keys or tls.client_auth, "
				"listen on 127.0.0.1, or use --insecure",
				address);
	if (rc && rc != SLU_EDOWN) /* a lookup may succeed later */
		return slu_fail(err, rc, "%s", why.text);
	if (!protocols_have(listen_scheme(address)))
		return slu_fail(err, SLU_EINVAL, "--listen %s: invalid scheme; expected %s", address,
				protocols_schemes(schemes, sizeof schemes));
	if (protocols_check(conf, address, tls, err))
		return (int)err->code;
	return check_certificate(conf, address, tls, err);
}

/* Port 0 is another free one each time. */
static bool
is_any_port(const char *target)
{
	const size_t n = strlen(target);

	return strncmp(target, "unix:", 5) != 0 && n > 2 && strcmp(target + n - 2, ":0") == 0;
}

/* Whatever their protocols, one place has one listener. */
static int
check_twice(const struct addresses *list, unsigned i, struct slu_err *err)
{
	bool tls;
	const char *const target = listen_target(list->items[i], &tls);

	for (unsigned k = 0; k < i; k++)
		if (strcmp(listen_target(list->items[k], &tls), target) == 0 && !is_any_port(target))
			return slu_fail(err, SLU_EINVAL, "--listen %s: the address is given twice", list->items[i]);
	return 0;
}

int
addresses_check(const struct conf *conf, struct slu_err *err)
{
	struct addresses list;
	int rc = 0;

	(void)addresses(conf, &list);
	for (unsigned i = 0; !rc && i < list.n; i++) {
		rc = check_one(conf, list.items[i], err);
		if (!rc)
			rc = check_twice(&list, i, err);
	}
	return rc;
}
