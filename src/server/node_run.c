/*
 * node_run.c - signals, and what they make a node do.
 */
#include "server/node_in.h"

#include "base/log.h"
#include "server/manager.h"
#include "server/peers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#define TICK SLU_SEC /* how often episodes are looked at */

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

/* The signal, or 0 when none came within that time. */
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

/* What a signal handler says, in the format of the log; it cannot spell the time. */
static void
say_last(const char *text, const char *json)
{
	const char *const line = logs_json ? json : text;
	const ssize_t n = write(STDERR_FILENO, line, strlen(line));

	(void)n; /* nobody is left to tell */
}

static void
exit_at_once(int sig)
{
	say_last("sluiced: second signal, exit at once\n",
		 "{\"level\":\"error\",\"event\":\"second signal, exit at once\"}\n");
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

static void
give_up(int sig)
{
	(void)sig; /* of the alarm */
	say_last("sluiced: requests did not come back in time; exit without them, what was "
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
	manager_reloading();
	if (reload_now(n->reload, NULL)) /* it has logged why */
		manager_ready("serving; the last reload failed, see the log");
	else
		manager_ready("serving");
}

/* A network thread that hangs is a reason to be restarted, and then we keep quiet. */
static void
watch(struct node *n)
{
	if (server_alive(n->server))
		manager_notify("WATCHDOG=1");
	else
		log_error(n->log, "a network thread does not answer");
}

/* How the file stands now; zeros: there is none. */
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
	n->meet_at = 0;
}

/* Is it time? Then the next one is so much later; 0: it is never. */
static bool
is_due(slu_time *at, slu_time every)
{
	const slu_time now = clock_mono(&clock_system);

	if (every == 0 || now < *at)
		return false;
	*at = time_add(now, every);
	return true;
}

/* Until the first of what comes by itself. */
static slu_time
wait_time(const struct node *n)
{
	const slu_time now = clock_mono(&clock_system);
	slu_time first = n->meet_at < n->watch_at ? n->meet_at : n->watch_at;

	if (n->tick_at < first)
		first = n->tick_at;
	if (atomic_load(&n->interval) && n->look_at < first)
		first = n->look_at;
	return first > now ? first - now : 1;
}

/* Until it is told to stop: by which signal. */
static int
serve(struct node *n)
{
	const slu_time watchdog = manager_watchdog();

	n->watch_at = time_add(clock_mono(&clock_system), watchdog);
	for (;;) {
		const int sig = wait_signal(wait_time(n));

		if (sig == SIGHUP) {
			n->seen = look(n);
			reload(n);
			n->meet_at = 0; /* with other shards, perhaps */
		} else if (sig) {
			return sig;
		}
		if (is_due(&n->watch_at, watchdog))
			watch(n);
		if (is_due(&n->tick_at, TICK))
			episodes_tick(&n->api.episodes);
		if (is_due(&n->look_at, atomic_load(&n->interval)))
			look_at_file(n);
		if (is_due(&n->meet_at, PEERS_EVERY) && !peers_tick(n))
			n->meet_at = SLU_NEVER;
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

		if (sig && sig != SIGHUP)
			exit_at_once(sig);
	}
}

/* 4 of the header: 0, or what was not well. */
static int
finish(struct node *n, unsigned cut)
{
	struct slu_err why = { 0 };
	int rc = 0;

	broker_stop(n->broker);
	for (uint32_t i = 0; i < broker_shards(n->broker) && !rc; i++)
		rc = broker_failure(n->broker, i, &why);
	if (!rc && cut > 0)
		rc = slu_fail(&why, SLU_ETIMEOUT, "requests were running when their time was over");
	if (broker_close(n->broker) && !rc)
		rc = slu_fail(&why, SLU_EDOWN, "a shard could not be closed, see above");
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
	manager_ready("serving");
	sig = serve(n);
	manager_notify("STOPPING=1\nSTATUS=stopping");
	log_info(n->log, "stopping", F_STR("signal", strsignal(sig)));
	drain(n);
	arm_second_signal();
	grace = atomic_load(&n->grace);
	set_bound(2 * grace);
	cut = server_stop(n->server, grace);
	set_bound(0);
	episodes_end(&n->api.episodes);
	return finish(n, cut);
}
