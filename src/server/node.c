#include "server/node_in.h"

#include "api/admin.h"
#include "api/admit.h"
#include "api/flat.h"
#include "api/home.h"
#include "api/lockd.h"
#include "api/lockd_state.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "server/addresses.h"
#include "server/limits.h"
#include "server/peers.h"
#include "server/shards.h"

#include <assert.h>

/* --- open --------------------------------------------------------------------- */

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
		.page = home_page,
		.threads = n->conf->threads,
		.max_connections = n->conf->limits.connections,
		.max_bodies = (size_t)n->conf->limits.memory,
		.start_wait = n->conf->start_wait,
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
		login_place(&n->login, i, (struct guard_place){
						  .local = listen_is_local(list.items[i]),
						  .is_unix = server_port(n->server, i) == 0,
						  .is_private = listen_is_private(list.items[i]),
					  });
	}
	n->api.server = n->server;
	if (!rc)
		addresses_tell_unused(&list, n->log);
	n->hands_over = addresses_are_passed(&list);
	if (rc || n->hand)
		return rc;
	if (n->conf->start_wait > 0)
		server_hold(n->server); /* whoever asks meanwhile waits for shards_open */
	return server_start(n->server, err);
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
	reload_add(reload, &(struct reload_part){ "limits", limits_prepare, limits_commit, limits_abandon, n });
	n->api.clock = hand ? hand->clock : &clock_system;
	n->api.threads = conf->threads;
	n->api.guard = &n->login.guard;
	n->api.progress = &n->progress;
	n->api.reload = reload;
	rc = hand ? 0 : node_check(conf, err);
	if (!rc)
		rc = login_open(&n->login, conf, reload, log, err);
	if (!rc)
		rc = api_init(&n->api);
	if (!rc)
		rc = open_audit(n, err);
	if (!rc)
		rc = join_routes(n, err);
	if (!rc)
		rc = open_server(n, err); /* first: who asks how it is learns that it starts */
	if (!rc)
		rc = shards_open(n, err);
	if (!rc)
		rc = limits_prepare(n, conf, conf, err);
	if (rc)
		return rc;
	n->api.broker = n->broker;
	limits_commit(n, conf);
	atomic_store_explicit(&n->api.open, true, memory_order_release);
	server_release(n->server);
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
