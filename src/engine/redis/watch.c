#include "engine/redis/watch.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	NAMES_MAX = 1 << 20, /* bytes of notices; more of them set `all` */
	RETRY_MS = 500
};

/* Adds a notice; NULL sets `all`. */
static void
tell(struct watch *w, const char *name)
{
	pthread_mutex_lock(&w->mtx);
	if (name)
		buf_put(&w->names, name, strlen(name) + 1);
	w->all |= !name || w->names.failed;
	atomic_store(&w->news, true);
	pthread_mutex_unlock(&w->mtx);
	w->poke(w->arg);
}

bool
watch_take(struct watch *w, struct buf *out)
{
	bool all;

	buf_clear(out);
	pthread_mutex_lock(&w->mtx);
	buf_put(out, w->names.p, w->names.n);
	all = w->all;
	buf_clear(&w->names);
	w->all = false;
	atomic_store(&w->news, false);
	pthread_mutex_unlock(&w->mtx);
	return all || out->failed;
}

/* Waits until there is something to read. Returns false if the thread must end. */
static bool
sleep_on(const struct watch *w, int fd, int ms, bool *readable)
{
	struct pollfd p[] = { { .fd = w->stop, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	*readable = false;
	if (poll(p, fd < 0 ? 1 : 2, ms) < 0)
		return errno == EINTR;
	*readable = fd >= 0 && p[1].revents;
	return p[0].revents == 0;
}

/* Takes "message", channel, "<caller>:namespace/queue" or "<caller>:=<node>: leases", which is
 * for one node only. */
static void
hear(struct watch *w, const redisReply *reply)
{
	const char *text, *colon;

	if (!reply_fits(reply, "[ttt]"))
		return; /* the answer to SUBSCRIBE */
	text = reply->element[2]->str;
	colon = strchr(text, ':');
	if (!colon || strncmp(text, w->own, strlen(w->own)) == 0)
		return;
	if (colon[1] != '=' || strncmp(colon + 2, w->own, strlen(w->own)) == 0)
		tell(w, colon + 1);
}

/* Takes all received notices. Returns SLU_EDOWN if the connection is lost. */
static int
hear_all(struct watch *w, struct rwire *wire)
{
	void *reply = NULL;
	int rc;

	rc = rwire_fill(wire, NULL);
	if (rc)
		return rc;
	while (redisReaderGetReply(wire->reader, &reply) == REDIS_OK && reply) {
		hear(w, reply);
		freeReplyObject(reply);
		wire->received = 0;
	}
	return wire->reader->err ? SLU_EDOWN : 0;
}

/* Subscribes at the first server that can be reached: every server of a cluster has all
 * notices. */
static int
subscribe(struct watch *w, struct rwire *wire)
{
	int rc = SLU_EDOWN;

	for (unsigned i = 0; rc && rwire_address(w->conf.address, i, w->address, sizeof w->address); i++) {
		rc = rwire_open(wire, NULL);
		if (rc)
			continue;
		rwire_begin(wire, 2);
		rwire_arg(wire, SLICE("SUBSCRIBE"));
		rwire_arg(wire, slice_of(w->channel));
		rc = rwire_send(wire, NULL);
	}
	return rc;
}

static void *
listen_to(void *arg)
{
	struct watch *w = arg;
	slu_time told = clock_mono(&clock_system);
	bool readable, goes_on = true;
	struct rwire_conf conf = w->conf;
	struct rwire wire;

	conf.address = w->address;
	rwire_init(&wire, &conf);
	while (goes_on) {
		const bool reconnected = wire.fd < 0 && subscribe(w, &wire) == 0;

		if (reconnected || clock_mono(&clock_system) - told >= WATCH_SAFETY) { /* REDISWATCH-2 */
			told = clock_mono(&clock_system);
			tell(w, NULL);
		}
		goes_on = sleep_on(w, wire.fd, wire.fd < 0 ? RETRY_MS : (int)(WATCH_SAFETY / SLU_MS),
				   &readable);
		if (goes_on && readable && hear_all(w, &wire))
			rwire_close(&wire);
	}
	rwire_release(&wire);
	return NULL;
}

int
watch_start(struct watch *w, const struct rwire_conf *conf, const char *channel,
	    uint64_t own, void (*poke)(void *arg), void *arg, struct slu_err *err)
{
	*w = (struct watch){ .conf = *conf, .channel = channel, .poke = poke, .arg = arg };
	(void)snprintf(w->own, sizeof w->own, "%" PRIu64 ":", own);
	pthread_mutex_init(&w->mtx, NULL); /* cannot fail with these attributes */
	buf_init(&w->names, NAMES_MAX);
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop >= 0 && pthread_create(&w->thread, NULL, listen_to, w) == 0)
		w->started = true;
	if (!w->started)
		return slu_fail(err, SLU_EDOWN, "cannot start the thread that listens to redis");
	(void)pthread_setname_np(w->thread, "redis watch");
	return 0;
}

void
watch_stop(struct watch *w)
{
	if (!w->started)
		return;
	(void)eventfd_write(w->stop, 1); /* cannot fail: it is empty */
	pthread_join(w->thread, NULL);
	close(w->stop);
	buf_release(&w->names);
	pthread_mutex_destroy(&w->mtx);
	w->started = false;
}
