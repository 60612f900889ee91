#include "server/links.h"

#include "base/hash.h"
#include "base/log.h"
#include "engine/log/logengine.h"
#include "members/settings.h"
#include "net/listen.h"
#include "server/addresses.h"
#include "server/ownership.h"

#include <assert.h>
#include <stdio.h>

#define SCHEME "peer"

_Static_assert((int)HELLO_LIFE == (int)LINE_LIFE && (int)HELLO_SECRET == (int)SETTINGS_SECRET,
	       "a life and a secret of the store prove a node");

bool
links_is_address(const char *address)
{
	return slice_eq(listen_scheme(address), SLICE(SCHEME));
}

static const char *
address_of(const struct conf *conf)
{
	struct addresses list;
	const char *found = NULL;

	for (unsigned i = 0; i < addresses(conf, &list); i++)
		if (links_is_address(list.items[i]))
			found = list.items[i]; /* of the settings: an inherited socket has no scheme */
	return found;
}

bool
links_use_tls(const struct conf *conf)
{
	const char *const address = address_of(conf);
	bool tls = false;

	if (address)
		(void)listen_target(address, &tls);
	return tls;
}

static bool
has_store(const struct conf *conf)
{
	const struct engine_ops *const engine = engine_find(conf->engines, conf->engine);
	const struct logengine_options *const own = engine == &engine_log ? conf_engine_values(conf, engine) : NULL;

	return own && own->store && !sharding_is_used(conf);
}

int
links_check(const struct conf *conf, struct slu_err *err)
{
	const char *const address = address_of(conf);

	if (!address || has_store(conf))
		return 0;
	return slu_fail(err, SLU_EINVAL, "--listen %s: links between nodes need --store, and no map of shards", address);
}

int
links_open(struct node *n, struct slu_err *err)
{
	struct peernet_conf conf = {
		.log = n->log,
		.address = address_of(n->conf),
		.tls = links_use_tls(n->conf) ? &n->tlsfiles.peers : NULL,
	};
	int rc;

	if (!conf.address || n->hand)
		return 0;
	assert(n->ownership); /* links_check */
	conf.secret = ownership_settings(n->ownership)->secret;
	conf.lanes = ownership_settings(n->ownership)->shards;
	memcpy(conf.life, n->nodename.life, HELLO_LIFE);
	rc = peernet_open(&n->links, &conf, err);
	if (!rc)
		log_info(n->log, "links to other nodes", F_U64("port", peernet_port(n->links)), F_BOOL("tls", conf.tls != NULL));
	return rc;
}

int
links_number_streams(struct node *n, struct slu_err *err)
{
	uint64_t first = 0;
	const int rc = hash_random(&first, sizeof first, err);

	atomic_store(&n->api.credits, first >> 1); /* they rise, and never come to 0 */
	return rc;
}

/* The host in "http://127.0.0.1:7171"; "" for the address of a unix socket. */
static void
host_of(const char *address, char *out, size_t size)
{
	bool tls;
	const char *const target = listen_target(address, &tls);
	const char *const colon = strrchr(target, ':');
	const bool bracketed = *target == '[';
	const size_t n = colon ? (size_t)(colon - target) : 0;

	*out = '\0';
	if (strncmp(target, "unix:", 5) == 0 || n < 2u * bracketed)
		return;
	(void)snprintf(out, size, "%.*s", (int)(n - 2 * bracketed), target + bracketed);
}

void
links_set_owner(struct peernet *links, uint32_t shard, uint64_t epoch, const struct members_node *owner)
{
	char host[BEAT_ADDRESS_MAX + 1] = "";
	struct peernet_owner to = { .epoch = epoch };

	if (!links)
		return;
	if (owner) {
		host_of(owner->address, host, sizeof host);
		memcpy(to.life, owner->life, HELLO_LIFE);
		to.port = owner->port;
		to.host = *host ? host : NULL;
	}
	peernet_set_owner(links, shard, &to);
}
