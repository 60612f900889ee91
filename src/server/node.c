#include "server/node_in.h"

#include "api/admin.h"
#include "api/admit.h"
#include "api/flat.h"
#include "api/lockd.h"
#include "api/lockd_state.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "server/limits.h"
#include "server/manager.h"
#include "server/peers.h"
#include "server/shards.h"

#include <assert.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
	FILES = 32, /* that a server has open, with a few connections */
	SHARD_FILES = 8,
	ADDRESSES_MAX = 16
};

_Static_assert((int)CONF_LIST_MAX <= (int)ADDRESSES_MAX &&
		       (int)MANAGER_FDS_MAX <= (int)ADDRESSES_MAX,
	       "ADDRESSES_MAX");

/* Where to listen. */
struct addresses {
	const char *items[ADDRESSES_MAX];
	unsigned n;
	char passed[ADDRESSES_MAX][16];
};

/* --- open --------------------------------------------------------------------- */

/* Those of the settings, unless the service manager has passed sockets and nobody said
 * otherwise. Returns how many. */
static unsigned
addresses(const struct conf *conf, struct addresses *out)
{
	const unsigned passed = manager_sockets();

	*out = (struct addresses){ 0 };
	if (passed && !conf_origin(conf, "listen")) {
		for (; out->n < passed; out->n++) {
			(void)snprintf(out->passed[out->n], sizeof out->passed[0], "fd:%u",
				       MANAGER_FIRST_FD + out->n);
			out->items[out->n] = out->passed[out->n];
		}
		return out->n;
	}
	for (; out->n < conf->listen.n; out->n++)
		out->items[out->n] = conf->listen.items[out->n];
	return out->n;
}

static void
tell_unused(const struct node *n, const struct addresses *list)
{
	bool used = false;

	for (unsigned i = 0; i < list->n; i++)
		used |= strstr(list->items[i], "fd:") != NULL;
	if (manager_sockets() && !used)
		log_warn(n->log, "passed sockets are not served: listen is set, and without fd:3",
			 F_U64("sockets", manager_sockets()));
}

static int
check_addresses(const struct conf *conf, struct slu_err *err)
{
	const bool fine = conf->insecure || login_is_on(conf);
	struct addresses list;

	for (unsigned i = 0; i < addresses(conf, &list) && !fine; i++)
		if (!listen_is_local(list.items[i]))
			return slu_fail(err, SLU_EINVAL,
					"--listen %s: other machines could reach it, and nobody has to "
					"say who he is; set auth.keys, ask for certificates "
					"(tls.client_auth), listen on 127.0.0.1, or say "
					"--insecure",
					list.items[i]);
	return 0;
}

/* With fewer, what is opened last fails, and libuv aborts where it must have some. */
static int
check_files(const struct conf *conf, struct slu_err *err)
{
	const unsigned need = FILES + SHARD_FILES * shards_lanes(conf);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= need)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"only %lu files may be open, %u are needed at least: raise "
			"the limit (ulimit -n)",
			(unsigned long)limit.rlim_max, need);
}

int
node_check(const struct conf *conf, struct slu_err *err)
{
	const int rc = check_addresses(conf, err);

	if (rc)
		return rc;
	return shards_check(conf, err);
}

static int
join_routes(struct node *n, struct slu_err *err)
{
	const struct {
		const struct route *rows;
		unsigned n;
	} apis[] = {
		{ flat_routes, flat_n_routes },
		{ lockd_routes, lockd_n_routes },
		{ lockd_state_routes, lockd_state_n_routes },
		{ admin_routes, admin_n_routes },
	};

	n->routes = mem_array(flat_n_routes + lockd_n_routes + lockd_state_n_routes + admin_n_routes,
			      sizeof *n->routes);
	if (!n->routes)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++) {
		memcpy(n->routes + n->n_routes, apis[i].rows, apis[i].n * sizeof *n->routes);
		n->n_routes += apis[i].n;
	}
	return 0;
}

static int
open_server(struct node *n, struct slu_err *err)
{
	const struct server_conf conf = {
		.routes = n->routes,
		.n_routes = n->n_routes,
		.arg = &n->api,
		.admit = admit,
		.dismiss = admit_dismiss,
		.describe = api_describe,
		.describe_type = api_json,
		.threads = n->conf->threads,
		.max_connections = n->conf->limits.connections,
		.max_bodies = (size_t)n->conf->limits.memory,
		.log = n->log,
	};
	const struct engine_ops *const engine = shards_standard(n, err);
	struct addresses list;
	int rc;

	assert(admit_routes(conf.routes, conf.n_routes));
	if (!engine)
		return SLU_EINVAL;
	n->api.engine = shards_engine(n->conf, engine);
	n->api.sync = engine->shared    ? "as the server has it"
		      : engine->durable ? conf_sync_text(n->conf, n->sync)
					: "none";
	n->place = engine->shared ? n->conf->redis_address : n->conf->data;
	rc = server_open(&n->server, &conf, err);
	n->secure = (struct secure){
		.server = n->server,
		.guard = &n->login.guard,
		.log = n->log,
	};
	if (!rc)
		rc = secure_open(&n->secure, n->conf, n->reload, err);
	for (unsigned i = 0; i < addresses(n->conf, &list) && !rc; i++) {
		rc = server_listen(n->server, list.items[i], 0, err);
		login_place(&n->login, i, listen_is_local(list.items[i]),
			    server_port(n->server, i) == 0);
	}
	n->api.server = n->server;
	if (!rc)
		tell_unused(n, &list);
	return rc || n->hand ? rc : server_start(n->server, err);
}

/* What a node itself takes from a reload. */
static void
commit(void *arg, const struct conf *now)
{
	struct node *const n = arg;

	slu_log_set_level(n->log, now->log_level);
	atomic_store(&n->drain, now->drain);
	atomic_store(&n->grace, now->grace);
	atomic_store(&n->interval, now->sharding_interval);
	if (n->api.audit)
		lines_reopen(n->api.audit); /* a new one, if it was renamed */
}

static int
open_audit(struct node *n, struct slu_err *err)
{
	struct slu_err why;
	int rc;

	if (!n->conf->audit_file)
		return 0;
	rc = lines_open(&n->api.audit, n->conf->audit_file, n->log, &why);
	return rc ? slu_fail(err, rc, "--audit-file %s", why.text) : 0;
}

int
node_open(struct node **out, const struct conf *conf, struct reload *reload,
	  struct slu_log *log, const struct node_hand *hand, struct slu_err *err)
{
	struct node *const n = mem_zalloc(sizeof *n);
	int rc;

	*out = n;
	if (!n)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	n->conf = conf;
	n->reload = reload;
	n->log = log;
	n->hand = hand;
	atomic_init(&n->drain, conf->drain);
	atomic_init(&n->grace, conf->grace);
	atomic_init(&n->interval, conf->sharding_interval);
	n->progress.stop = node_stop_pending;
	reload_add(reload, &(struct reload_part){ "node", NULL, commit, NULL, n });
	n->api.log = log;
	reload_add(reload, &(struct reload_part){ "limits", NULL, limits_commit, NULL, n });
	n->api.clock = hand ? hand->clock : &clock_system;
	n->api.threads = conf->threads;
	n->api.guard = &n->login.guard;
	n->api.progress = &n->progress;
	n->api.reload = reload;
	rc = node_check(conf, err);
	if (!rc)
		rc = check_files(conf, err);
	if (!rc)
		rc = login_open(&n->login, conf, reload, log, err);
	if (!rc)
		rc = api_init(&n->api);
	if (!rc)
		rc = open_audit(n, err);
	if (!rc)
		rc = join_routes(n, err);
	if (!rc)
		rc = open_server(n, err); /* first: whoever asks is told that it starts */
	if (!rc)
		rc = shards_open(n, err);
	if (rc)
		return rc;
	n->api.broker = n->broker;
	limits_commit(n, conf);
	atomic_store_explicit(&n->api.open, true, memory_order_release);
	return 0;
}

bool
node_round(struct node *n)
{
	const bool more = server_round(n->server);

	return broker_round(n->broker) <= clock_boot(n->hand->clock) || more;
}

void
node_close(struct node *n)
{
	if (!n)
		return;
	server_close(n->server);
	(void)broker_close(n->broker); /* it was not run: nothing is new */
	shards_close(n);
	peers_close(n);
	api_release(&n->api);
	lines_close(n->api.audit);
	login_close(&n->login);
	secure_close(&n->secure);
	mem_free(n->routes);
	mem_free(n);
}
