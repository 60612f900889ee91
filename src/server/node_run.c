/*
 * node_run.c - signals, and what they make a node do.
 */
#include "server/inboxes.h"
#include "server/node_private.h"

#include "api/live/live.h"
#include "base/log.h"
#include "server/ownership.h"
#include "server/systemd.h"
#include "projection/projection.h"
#include "server/peers.h"
#include "server/webhooks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#define TICK SLU_SEC /* interval of checks of episodes */

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

static sigset_t
all_signals(void)
{
	sigset_t set = stop_signals();

	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	return set;
}

void
node_signals(void)
{
	const sigset_t set = all_signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL); /* fails for a bad first argument only */
	signal(SIGPIPE, SIG_IGN);
}

bool
node_stop_pending(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

/* The signal, or 0 if none came within that time. */
static int
wait_signal(slu_time timeout)
{
	const struct timespec t = { timeout / SLU_SEC, timeout % SLU_SEC };
	const sigset_t set = all_signals();
	int sig;

	do {
		sig = timeout == SLU_NEVER ? sigwaitinfo(&set, NULL)
					   : sigtimedwait(&set, NULL, &t);
	} while (sig < 0 && errno == EINTR);
	return sig > 0 ? sig : 0;
}

static volatile sig_atomic_t logs_json; /* set before a handler is */

/* Writes a line of the log without a time, because a signal handler cannot format one. */
static void
say_last(const char *text, const char *json)
{
	const char *const line = logs_json ? json : text;
	const ssize_t n = write(STDERR_FILENO, line, strlen(line));

	(void)n; /* the process ends */
}

static void
exit_at_once(int sig)
{
	say_last("sluiced: second signal, exit at once\n",
		 "{\"level\":\"error\",\"event\":\"second signal, exit at once\"}\n");
	_exit(128 + sig);
}

/* From now on a signal ends the process at once. */
static void
arm_second_signal(void)
{
	const struct sigaction action = { .sa_handler = exit_at_once };
	const sigset_t set = stop_signals();

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void
give_up(int sig)
{
	(void)sig; /* of the alarm */
	say_last("sluiced: requests hang; exit without their answers; what was "
		 "answered is on disk\n",
		 "{\"level\":\"error\",\"event\":\"requests did not come back in time; exit without "
		 "them, what was answered is on disk\"}\n");
	_exit(NODE_UNCLEAN);
}

/* 3 of the header; 0: no more. No other thread takes the signal. */
static void
set_bound(slu_time bound)
{
	const struct sigaction action = { .sa_handler = give_up };
	const struct itimerval timer = {
		.it_value = { bound / SLU_SEC, bound % SLU_SEC / SLU_US },
	};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL); /* fails for a bad argument only */
}

/* --- run ---------------------------------------------------------------------- */

static void
announce(const struct node *n)
{
	const char *address;

	for (unsigned i = 0; (address = server_address(n->server, i)) != NULL; i++) {
		if (n->inboxes && i == n->own_listener)
			continue;
		if (n->conf->log_format == SLU_LOG_JSON)
			log_info(n->log, "listening", F_STR("address", address),
				 F_STR("data", n->place), F_STR("engine", n->api.engine),
				 F_STR("durability", n->api.sync));
		else
			fprintf(stderr, "sluiced " SLUICE_VERSION ": listening on %s, data %s, engine %s, durability %s\n",
				address, n->place, n->api.engine, n->api.sync);
	}
}

static void
reload(struct node *n)
{
	systemd_reloading();
	if (reload_now(n->reload, NULL)) /* it has logged why */
		systemd_ready("serving; the last reload failed, see the log");
	else
		systemd_ready("serving");
}

/* If a network thread hangs, WATCHDOG=1 is not sent, and the service manager restarts us. */
static void
watch(struct node *n)
{
	if (server_alive(n->server))
		systemd_notify("WATCHDOG=1");
	else
		log_error(n->log, "network thread hangs");
}

/* The state of the file; zeros: it does not exist. */
static struct stat
look(const struct node *n)
{
	struct stat st = { 0 };

	if (n->conf->config && stat(n->conf->config, &st))
		st = (struct stat){ 0 };
	return st;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* sharding.reloadInterval: a file that has changed is read once, be it right or wrong. The
 * first look reads it in any case: it may be another one since the server began to start. */
static void
look_at_file(struct node *n)
{
	const struct stat st = look(n);

	if (is_same(&st, &n->seen))
		return;
	n->seen = st;
	reload(n);
	n->presence_at = 0;
}

/* True if it is time; then *at is `every` later. every 0: never. */
static bool
is_due(slu_time *at, slu_time every)
{
	const slu_time now = clock_mono(&clock_system);

	if (every == 0 || now < *at)
		return false;
	*at = time_add(now, every);
	return true;
}

/* The time until the next periodic action. */
static slu_time
wait_time(const struct node *n)
{
	const slu_time now = clock_mono(&clock_system);
	slu_time first = n->presence_at < n->watch_at ? n->presence_at : n->watch_at;

	if (n->tick_at < first)
		first = n->tick_at;
	if (atomic_load(&n->interval) && n->look_at < first)
		first = n->look_at;
	return first > now ? first - now : 1;
}

/* Serves until a signal to stop, and returns it. */
static int
serve(struct node *n)
{
	const slu_time watchdog = systemd_watchdog();

	n->watch_at = time_add(clock_mono(&clock_system), watchdog);
	for (;;) {
		const int sig = wait_signal(wait_time(n));

		if (sig == SIGHUP) {
			n->seen = look(n);
			reload(n);
			n->presence_at = 0; /* the shards may have changed */
		} else if (sig == SIGUSR1) {
			(void)broker_flush(n->broker);
		} else if (sig) {
			return sig;
		}
		if (is_due(&n->watch_at, watchdog))
			watch(n);
		if (is_due(&n->tick_at, TICK))
			episodes_tick(&n->api.episodes);
		if (is_due(&n->look_at, atomic_load(&n->interval)))
			look_at_file(n);
		if (is_due(&n->presence_at, PEERS_EVERY) && !peers_tick(n))
			n->presence_at = SLU_NEVER;
	}
}

/* 1 and 2 of the header. */
static void
drain(struct node *n)
{
	const slu_time until = time_add(clock_mono(&clock_system), atomic_load(&n->drain));

	if (n->hands_over) {
		server_hand_over(n->server);
		broker_end_waits(n->broker);
	} else {
		atomic_store(&n->api.draining, true);
		broker_drain(n->broker);
	}
	while (server_metric(n->server, SERVER_CONNECTIONS) > 0 &&
	       clock_mono(&clock_system) < until) {
		const int sig = wait_signal(10 * SLU_MS);

		if (sig && sig != SIGHUP && sig != SIGUSR1)
			exit_at_once(sig);
	}
}

/* A shard that was handed over has not failed. */
static int
failure(const struct broker *b, uint32_t lane, struct slu_err *why)
{
	const int rc = broker_failure(b, lane, why);

	return rc == SLU_EMOVED ? 0 : rc;
}

/* 4 of the header: 0, or why the stop was not clean. */
static int
finish(struct node *n, unsigned cut)
{
	struct slu_err why = { 0 };
	int rc = 0;

	projection_stop(n->projection);
	ownership_leave(n);
	broker_stop(n->broker);
	for (uint32_t i = 0; i < broker_lanes(n->broker) && !rc; i++)
		rc = failure(n->broker, i, &why);
	if (!rc && cut > 0)
		rc = slu_fail(&why, SLU_ETIMEOUT, "requests were still running after grace");
	if (broker_close(n->broker) && !rc)
		rc = slu_fail(&why, SLU_EDOWN, "a shard failed to close");
	n->broker = NULL;
	if (rc)
		log_error(n->log, "stopped, not cleanly", F_STR("why", why.text), F_U64("cut", cut));
	else
		log_info(n->log, "stopped");
	return rc;
}

int
node_run(struct node *n)
{
	slu_time grace;
	unsigned cut;
	int sig;

	logs_json = n->conf->log_format == SLU_LOG_JSON;
	announce(n);
	systemd_ready("serving");
	inboxes_start(n);
	sig = serve(n);
	systemd_notify("STOPPING=1\nSTATUS=stopping");
	log_info(n->log, "stopping", F_STR("signal", strsignal(sig)));
	inboxes_stop(n);
	node_stop_duties(n);
	webhooks_stop(n);
	live_stop(n->api.live);
	drain(n);
	arm_second_signal();
	grace = atomic_load(&n->grace);
	set_bound(2 * grace);
	cut = server_stop(n->server, grace);
	set_bound(0);
	episodes_end(&n->api.episodes);
	return finish(n, cut);
}
