#include "engine/redis/store.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	MICRO_MAX = 1000000000 /* seconds of processor time; a larger value is invalid */
};

/* ---- The answer ---- */

/* The text behind "name:", or NULL. */
static const char *
find(const char *info, const char *name)
{
	const size_t n = strlen(name);

	for (const char *line = info; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			return line + n + 1;
	}
	return NULL;
}

static int64_t
number(const char *info, const char *name)
{
	const char *const text = find(info, name);

	return text ? strtoll(text, NULL, 10) : -1;
}

/* Reads seconds with a fraction as microseconds. */
static int64_t
micro(const char *info, const char *name)
{
	const char *const text = find(info, name);

	const double seconds = text ? strtod(text, NULL) : -1;

	return seconds >= 0 && seconds < MICRO_MAX ? (int64_t)(seconds * 1e6) : -1;
}

static struct op_store
read_info(const char *info)
{
	const int64_t sys = micro(info, "used_cpu_sys"), user = micro(info, "used_cpu_user");

	return (struct op_store){
		.told = true,
		.memory = number(info, "used_memory"),
		.max_memory = number(info, "maxmemory"),
		.disk = number(info, "aof_current_size"),
		.cpu = sys < 0 || user < 0 ? -1 : sys + user,
		.clients = number(info, "connected_clients"),
		.max_clients = number(info, "maxclients"),
	};
}

/* ---- The thread ---- */

/* Connects to the first address that accepts. */
static int
open_any(const struct rstore *s, struct rwire *wire, char *address, size_t size,
	 struct slu_err *err)
{
	int rc = SLU_EDOWN;

	for (unsigned i = 0; rc && rwire_address(s->conf.address, i, address, size); i++) {
		wire->conf.address = address;
		rc = rwire_open(wire, err);
	}
	return rc;
}

static int
ask(struct rwire *wire, struct op_store *out, struct slu_err *err)
{
	redisReply *reply;
	const int rc = rwire_ask(wire, WORDS(SLICE("INFO")), &reply, err);

	if (!rc && reply_fits(reply, "t"))
		*out = read_info(reply->str);
	freeReplyObject(reply); /* a missing permission for INFO is not a failure */
	return rc;
}

static bool
sleep_until_stopped(const struct rstore *s, slu_time time)
{
	struct pollfd p = { .fd = s->stop, .events = POLLIN };

	return poll(&p, 1, (int)(time / SLU_MS)) > 0;
}

static void *
work(void *arg)
{
	struct rstore *const s = arg;
	char address[280];
	struct rwire wire;
	int rc;

	rwire_init(&wire, &s->conf);
	do {
		struct slu_err err = { 0 };
		struct op_store told = { 0 };

		rc = wire.fd < 0 ? open_any(s, &wire, address, sizeof address, &err) : 0;

		if (!rc)
			rc = ask(&wire, &told, &err);
		pthread_mutex_lock(&s->mtx);
		s->told = told;
		s->why = rc ? err : (struct slu_err){ 0 };
		pthread_mutex_unlock(&s->mtx);
	} while (!sleep_until_stopped(s, rc ? STORE_AGAIN : STORE_EVERY));
	rwire_release(&wire);
	return NULL;
}

/* ---- Any thread ---- */

int
rstore_start(struct rstore *s, const struct rwire_conf *conf, struct slu_err *err)
{
	*s = (struct rstore){ .conf = *conf };
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail with these attributes */
	s->stop = eventfd(0, EFD_CLOEXEC);
	if (s->stop >= 0 && pthread_create(&s->thread, NULL, work, s) == 0)
		s->started = true;
	if (!s->started)
		return slu_fail(err, SLU_EDOWN, "cannot start the thread that reads INFO from redis");
	(void)pthread_setname_np(s->thread, "redis store");
	return 0;
}

void
rstore_stop(struct rstore *s)
{
	if (!s->started)
		return;
	(void)eventfd_write(s->stop, 1); /* cannot fail: it is empty */
	pthread_join(s->thread, NULL);
	close(s->stop);
	pthread_mutex_destroy(&s->mtx);
	s->started = false;
}

struct op_store
rstore_take(struct rstore *s)
{
	struct op_store told = { 0 };

	if (!s->started)
		return told;
	pthread_mutex_lock(&s->mtx);
	told = s->told;
	pthread_mutex_unlock(&s->mtx);
	return told;
}

int
rstore_lost(struct rstore *s, struct slu_err *err)
{
	int rc = 0;

	if (!s->started)
		return 0;
	pthread_mutex_lock(&s->mtx);
	if (s->why.code)
		rc = slu_fail(err, SLU_EDOWN, "%s", s->why.text);
	pthread_mutex_unlock(&s->mtx);
	return rc;
}
