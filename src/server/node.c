#include "server/node.h"

#include "api/api.h"
#include "api/flat.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SYNC_TEXT = 64,
	FILES = 32, /* that a server has open, with a few connections */
	SHARD_FILES = 8
};

struct node {
	const struct conf *conf;
	struct slu_log *log;
	struct broker *broker;
	struct server *server;
	struct api api;
	char sync[SYNC_TEXT];
};

/* --- signals ------------------------------------------------------------------ */

static sigset_t
stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	return set;
}

void
node_signals(void)
{
	const sigset_t set = stop_signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL); /* fails for a bad first argument only */
	signal(SIGPIPE, SIG_IGN);
}

/* The signal, or 0 when none came within that time. */
static int
wait_signal(slu_time timeout)
{
	const struct timespec t = { timeout / SLU_SEC, timeout % SLU_SEC };
	const sigset_t set = stop_signals();
	int sig;

	do {
		sig = timeout == SLU_NEVER ? sigwaitinfo(&set, NULL)
					   : sigtimedwait(&set, NULL, &t);
	} while (sig < 0 && errno == EINTR);
	return sig > 0 ? sig : 0;
}

static void
exit_at_once(int sig)
{
	static const char text[] = "sluiced: second signal, exit at once\n";
	const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

	(void)n; /* nobody is left to tell */
	_exit(128 + sig);
}

/* From now on a signal ends the process, whatever it is doing. */
static void
arm_second_signal(void)
{
	const struct sigaction action = { .sa_handler = exit_at_once };
	const sigset_t set = stop_signals();

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* --- open --------------------------------------------------------------------- */

/* Can only this machine reach it? */
static bool
is_local(const char *address)
{
	const char *const colon = strrchr(address, ':');
	const size_t n = colon ? (size_t)(colon - address) : 0;
	char host[64] = "";
	struct in_addr v4;

	if (strncmp(address, "unix:", 5) == 0)
		return true;
	if (n >= sizeof host)
		return false;
	memcpy(host, address, n);
	if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

static int
check_addresses(const struct conf *conf, struct slu_err *err)
{
	for (unsigned i = 0; i < conf->listen.n && !conf->insecure; i++)
		if (!is_local(conf->listen.items[i]))
			return slu_fail(err, SLU_EINVAL,
					"--listen %s: other machines could reach it, and there is no "
					"login yet; listen on 127.0.0.1, or say --insecure",
					conf->listen.items[i]);
	return 0;
}

/* With fewer, what is opened last fails, and libuv aborts where it must have some. */
static int
check_files(const struct conf *conf, struct slu_err *err)
{
	const unsigned need = FILES + SHARD_FILES * conf->shards;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= need)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"only %lu files may be open, %u are needed at least: raise "
			"the limit (ulimit -n)",
			(unsigned long)limit.rlim_max, need);
}

static const struct engine_ops *
find_engine(const struct conf *conf, struct slu_err *err)
{
	const struct engine_ops *const found = engine_by_name(conf->engine);
	char names[128] = "";
	size_t n = 0;

	for (const struct engine_ops *const *e = engines; *e && n < sizeof names; e++)
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "",
				      (*e)->name);
	if (!found)
		slu_fail(err, SLU_EINVAL, "--engine %s: there is no such engine; there are: %s",
			 conf->engine, names);
	return found;
}

static int
open_broker(struct node *n, struct slu_err *err)
{
	static const enum engine_sync syncs[] = {
		[CONF_SYNC_ALWAYS] = ENGINE_SYNC,
		[CONF_SYNC_INTERVAL] = ENGINE_SYNC_INTERVAL,
		[CONF_SYNC_NONE] = ENGINE_SYNC_NONE,
	};
	const struct conf *const conf = n->conf;
	struct broker_conf b = {
		.engine = find_engine(conf, err),
		.shards = conf->shards,
		.node = conf->node_id,
		.storage = {
			.log = n->log,
			.sync = syncs[conf->sync.mode],
			.sync_interval = conf->sync.interval,
		},
	};

	if (!b.engine)
		return SLU_EINVAL;
	n->api.engine = b.engine->name;
	n->api.sync = b.engine->durable ? conf_sync_text(conf, n->sync) : "none";
	if (b.engine->durable) {
		b.storage.folder = conf->data;
		if (mkdir(conf->data, 0700) && errno != EEXIST)
			return slu_fail(err, SLU_EDOWN, "--data %s: %m", conf->data);
	}
	return broker_open(&n->broker, &b, err);
}

static int
open_server(struct node *n, struct slu_err *err)
{
	const struct server_conf conf = {
		.routes = flat_routes,
		.n_routes = flat_n_routes,
		.arg = &n->api,
		.describe = api_describe,
		.describe_type = api_json,
		.threads = n->conf->threads,
		.log = n->log,
	};
	int rc;

	rc = server_open(&n->server, &conf, err);
	for (unsigned i = 0; i < n->conf->listen.n && !rc; i++)
		rc = server_listen(n->server, n->conf->listen.items[i], 0, err);
	n->api.server = n->server;
	return rc ? rc : server_start(n->server, err);
}

int
node_open(struct node **out, const struct conf *conf, struct slu_log *log,
	  struct slu_err *err)
{
	struct node *const n = mem_zalloc(sizeof *n);
	int rc;

	*out = n;
	if (!n)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	n->conf = conf;
	n->log = log;
	n->api.log = log;
	n->api.clock = &clock_system;
	rc = check_addresses(conf, err);
	if (!rc)
		rc = check_files(conf, err);
	if (!rc)
		rc = api_init(&n->api);
	if (!rc)
		rc = open_broker(n, err);
	if (rc)
		return rc;
	n->api.broker = n->broker;
	return open_server(n, err);
}

/* --- run ---------------------------------------------------------------------- */

static void
announce(const struct node *n)
{
	const char *address;

	for (unsigned i = 0; (address = server_address(n->server, i)) != NULL; i++) {
		if (n->conf->log_format == SLU_LOG_JSON)
			log_info(n->log, "listening", F_STR("address", address),
				 F_STR("data", n->conf->data), F_STR("engine", n->api.engine),
				 F_STR("durability", n->api.sync));
		else
			fprintf(stderr, "sluiced " SLUICE_VERSION ": listening on %s, data %s, engine %s, durability %s\n",
				address, n->conf->data, n->api.engine, n->api.sync);
	}
}

/* 1 and 2 of the header. */
static void
drain(struct node *n)
{
	const slu_time until = time_add(clock_mono(&clock_system), n->conf->drain);

	atomic_store(&n->api.draining, true);
	broker_drain(n->broker);
	while (server_metric(n->server, SERVER_CONNECTIONS) > 0 &&
	       clock_mono(&clock_system) < until) {
		const int sig = wait_signal(10 * SLU_MS);

		if (sig)
			exit_at_once(sig);
	}
}

void
node_run(struct node *n)
{
	int sig;

	announce(n);
	sig = wait_signal(SLU_NEVER);
	log_info(n->log, "stopping", F_STR("signal", strsignal(sig)));
	drain(n);
	arm_second_signal();
	server_stop(n->server, NODE_GRACE);
	broker_stop(n->broker);
	log_info(n->log, "stopped");
}

void
node_close(struct node *n)
{
	if (!n)
		return;
	server_close(n->server);
	broker_close(n->broker);
	api_release(&n->api);
	mem_free(n);
}
