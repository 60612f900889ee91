#include "server/node_private.h"

#include "api/authorize.h"
#include "api/dialect.h"
#include "api/live/live.h"
#include "duty/scheduler.h"
#include "api/task/tasker.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "server/inboxes.h"
#include "server/addresses.h"
#include "server/limits.h"
#include "server/links.h"
#include "server/masking.h"
#include "server/ownership.h"
#include "server/storenodes.h"
#include "server/peers.h"
#include "server/projected.h"
#include "server/protocols.h"
#include "server/shards.h"
#include "server/webhooks.h"

/* --- open --------------------------------------------------------------------- */

static int
join_routes(struct node *n, struct slu_err *err)
{
	n->api.dialects = n->hand && n->hand->dialects ? n->hand->dialects : dialects;
	if (dialects_join(n->api.dialects, n->conf->codeq_path, &n->routes, &n->n_routes))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	return 0;
}

static int
open_server(struct node *n, struct slu_err *err)
{
	const struct server_conf conf = {
		.protocols = n->protocols,
		.n_protocols = protocols_of(n, n->protocols),
		.arg = &n->api,
		.dismiss = authorize_dismiss,
		.threads = n->conf->threads,
		.max_connections = n->conf->limits.connections,
		.max_bodies = (size_t)n->conf->limits.memory,
		.start_wait = n->conf->start_wait,
		.log = n->log,
	};
	const struct engine_ops *const engine = shards_standard(n);
	struct addresses list;
	unsigned used = 0;
	int rc;

	n->api.engine = shards_engine(n->conf, engine);
	atomic_store(&n->api.console, n->conf->console != 0); /* also while the server starts */
	n->api.environment = n->conf->environment;
	n->api.trace_url = n->conf->trace_url;
	n->api.sync = engine->shared    ? "as the server has it"
		      : engine->durable ? conf_sync_text(n->conf, n->sync)
					: "none";
	n->place = conf_engine_place(n->conf, engine);
	rc = server_open(&n->server, &conf, err);
	n->tlsfiles = (struct tlsfiles){
		.server = n->server,
		.guard = &n->login.guard,
		.log = n->log,
	};
	if (!rc)
		rc = tlsfiles_open(&n->tlsfiles, n->conf, n->reload, err);
	for (unsigned i = 0; i < addresses(n->conf, &list) && !rc; i++) {
		if (links_is_address(list.items[i]))
			continue; /* ownership_open */
		rc = server_listen(n->server, list.items[i], 0, err);
		login_place(&n->login, used, (struct guard_place){
						     .local = listen_is_local(list.items[i]),
						     .is_unix = server_port(n->server, used) == 0,
						     .is_private = listen_is_private(list.items[i]),
					     });
		used++;
	}
	n->api.server = n->server;
	if (!rc && !n->hand)
		rc = inboxes_open(n, used, err);
	if (!rc)
		addresses_tell_unused(&list, n->log);
	n->hands_over = addresses_are_passed(&list);
	if (rc || n->hand)
		return rc;
	if (n->conf->start_wait > 0)
		server_hold(n->server); /* requests wait for shards_open */
	return server_start(n->server, err);
}

/* Settings of the node itself. */
static void
commit(void *arg, const struct conf *now)
{
	struct node *const n = arg;

	slu_log_set_level(n->log, now->log_level);
	atomic_store(&n->drain, now->drain);
	atomic_store(&n->grace, now->grace);
	atomic_store(&n->interval, now->sharding_interval);
	if (n->api.audit)
		lines_reopen(n->api.audit); /* it may have been renamed */
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

static int
open_api(struct node *n, struct slu_err *err)
{
	int rc = api_init(&n->api);

	if (!rc)
		rc = masking_open(n, err);
	return rc ? rc : open_audit(n, err);
}

static void
more_metrics(void *arg, struct buf *out)
{
	const struct node *const n = arg;

	inboxes_metrics(n, out);
	projection_metrics(n->projection, out);
	for (unsigned i = 0; i < NODE_DUTIES; i++)
		duty_metrics(n->duties[i], out);
}

/* What sends by itself, when the broker is open. */
static int
open_senders(struct node *n, struct slu_err *err)
{
	int rc = n->hand ? 0 : webhooks_start(n, err);

	if (!rc && !n->hand)
		rc = live_start(&n->api, err);
	return !rc && n->links ? links_number_streams(n, err) : rc;
}

/* Any lane. */
static void
on_documents(void *arg, struct slice queue)
{
	const struct node *const n = arg;

	for (unsigned i = 0; i < NODE_DUTIES; i++)
		duty_notify(n->duties[i], queue);
}

/* Before the broker is open. */
static int
open_duties(struct node *n, struct slu_err *err)
{
	const int rc = scheduler_new(&n->duties[0], &n->api.zones, n->log, err);

	n->notice = (struct broker_notice){ n, on_documents };
	return rc ? rc : tasker_new(&n->duties[1], n->log, err);
}

static int
start_duties(struct node *n, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < NODE_DUTIES && !rc; i++)
		rc = duty_start(n->duties[i], n->broker, err);
	return rc;
}

void
node_stop_duties(struct node *n)
{
	for (unsigned i = 0; i < NODE_DUTIES; i++)
		duty_stop(n->duties[i]);
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
	n->api.more_metrics = more_metrics;
	n->api.more_arg = n;
	n->api.reload = reload;
	rc = hand ? 0 : node_check(conf, err);
	if (!rc)
		rc = login_open(&n->login, conf, reload, log, err);
	if (!rc)
		rc = open_api(n, err);
	if (!rc)
		rc = join_routes(n, err);
	if (!rc)
		rc = open_server(n, err); /* first: /readyz answers during the start */
	if (!rc)
		rc = projected_open(n, err);
	if (!rc && !hand)
		rc = open_duties(n, err);
	if (!rc)
		rc = shards_open(n, err);
	if (!rc && n->projection)
		rc = projection_start(n->projection, n->broker, err);
	if (!rc && !hand)
		rc = start_duties(n, err);
	if (!rc)
		rc = limits_prepare(n, conf, conf, err);
	if (rc)
		return rc;
	n->api.broker = n->broker;
	rc = open_senders(n, err);
	if (rc)
		return rc;
	n->nodes = storenodes_ops(n);
	n->api.nodes = &n->nodes;
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
	inboxes_stop(n);
	live_stop(n->api.live);
	server_close(n->server);
	inboxes_close(n);
	projection_stop(n->projection);
	node_stop_duties(n);
	webhooks_free(n);
	live_free(n->api.live);
	if (n->broker)
		ownership_leave(n);
	(void)broker_close(n->broker); /* node_run has closed it, or it never ran */
	projection_free(n->projection);
	for (unsigned i = 0; i < NODE_DUTIES; i++)
		duty_free(n->duties[i]);
	ownership_close(n);
	peernet_close(n->links);
	shards_close(n);
	peers_close(n);
	api_release(&n->api);
	lines_close(n->api.audit);
	login_close(&n->login);
	tlsfiles_close(&n->tlsfiles);
	mem_free(n->routes);
	mem_free(n);
}
