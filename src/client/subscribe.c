/*
 * subscribe.c - a stream of deliveries, opened again when it breaks.
 */
#include "client/receive.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

#define KEEP_TIMEOUT (5 * SLU_SEC)

struct slu_subscription {
	struct slu_client *client;
	struct receiving receiving;
	char *queue;
	slu_time wait;
	struct link *link; /* NULL = not open, or broken */
	struct parts parts;
	struct slu_delivery *current; /* the delivery whose payload is read from `parts`; NULL = none */
};

/* Ends the previous delivery: the rest of its payload cannot be read any more. */
static void
detach(struct slu_subscription *s)
{
	if (!s->current)
		return;
	s->current->parts = NULL;
	s->current->holder = NULL;
	s->current = NULL;
}

static void
hang_up(struct slu_subscription *s)
{
	detach(s);
	if (s->link)
		http_hang_up(&s->link->http);
	link_end(s->client, s->link);
	s->link = NULL;
	parts_release(&s->parts);
}

/* When the stream ends, the server treats the newest delivery as unread unless it was extended. */
static void
keep_current(struct slu_subscription *s)
{
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = KEEP_TIMEOUT };

	if (s->current && s->link)
		(void)slu_delivery_extend(s->current, 0, &call, NULL); /* otherwise the message goes back */
}

void
slu_subscription_close(struct slu_subscription *s)
{
	if (!s)
		return;
	keep_current(s);
	hang_up(s);
	mem_free((void *)s->receiving.how.kinds);
	mem_free(s->queue);
	mem_free(s);
}

int
slu_client_subscribe(struct slu_client *c, const char *queue, const struct slu_receive *how,
		     struct slu_subscription **out, struct slu_err *err)
{
	NEED3(c, queue, out, err);

	struct slu_subscription *s = mem_zalloc(sizeof *s);
	int rc;

	*out = NULL;
	if (s)
		s->queue = mem_strdup(queue);
	if (!s || !s->queue) {
		mem_free(s);
		return slu_fail(err, SLU_ENOMEM, "no memory for a subscription");
	}
	s->client = c;
	rc = receiving_init(&s->receiving, c, s->queue, how, err);
	if (!rc && s->receiving.how.kinds) {
		s->receiving.how.kinds = mem_strdup(s->receiving.how.kinds);
		rc = s->receiving.how.kinds ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a subscription");
	}
	if (rc) {
		mem_free(s->queue);
		mem_free(s);
		return rc;
	}
	s->wait = s->receiving.how.wait;
	if (s->receiving.how.prefetch)
		s->receiving.page = s->receiving.how.prefetch;
	s->receiving.how.owner = NULL; /* receiving sets it */
	*out = s;
	return 0;
}

static int
begin(struct slu_subscription *s, slu_time wait, const struct slu_call *call,
      struct slu_err *err)
{
	int rc;

	s->receiving.how.wait = wait;
	rc = receiving_ask(&s->receiving, s->client, "/v1/queue/subscribe", s->client->patience,
			   call, &s->link, err);
	if (!rc && s->link)
		rc = parts_begin(&s->parts, s->link, err);
	if (rc)
		hang_up(s);
	return rc;
}

/* Reads from the open stream. Returns SLU_ETIMEOUT if no message came, SLU_EUNKNOWN if the stream is broken. */
static int
take(struct slu_subscription *s, const struct patience *idle, struct slu_delivery **out,
     struct slu_err *err)
{
	const struct receiving *const r = &s->receiving;
	const struct patience until = {
		.deadline = time_add(idle->deadline, s->client->timeout),
		.stop_fd = -1,
	};
	struct slice meta;
	int rc;

	detach(s);
	rc = parts_next(&s->parts, idle, &until, &meta, err);
	if (!rc && meta.n == 0)
		return SLU_EUNKNOWN; /* the server is stopping and ended the stream */
	if (!rc)
		rc = delivery_new(out, s->client, meta, r->owner, r->how.on_close, err);
	if (*out) {
		s->current = *out;
		(*out)->holder = &s->current;
		(*out)->parts = &s->parts;
		(*out)->info.size = s->parts.left;
	}
	return rc;
}

static slu_time
left_until(slu_time end)
{
	const slu_time now = clock_mono(&clock_system);

	return end == SLU_NEVER ? SLU_NEVER : end > now ? end - now
							: 0;
}

static int
next(struct slu_subscription *s, struct slu_call rest, struct slu_delivery **out,
     struct slu_err *err)
{
	const slu_time now = clock_mono(&clock_system);
	const slu_time end = time_add(now, s->wait);
	const slu_time timeout = rest.timeout ? time_add(now, rest.timeout) : SLU_NEVER;
	const struct patience idle = {
		.deadline = end < timeout ? end : timeout,
		.stop_fd = rest.cancel_fd > 0 ? rest.cancel_fd : -1,
		.client_fd = s->client->stop_fd,
	};
	int rc;

	for (;;) {
		if (rest.timeout && rest.timeout != SLU_NEVER)
			rest.timeout = left_until(timeout) > 0 ? left_until(timeout) : 1;
		rc = s->link ? 0 : begin(s, left_until(end), &rest, err);
		if (rc || !s->link)
			return rc;
		rc = take(s, &idle, out, err);
		if (rc == SLU_ETIMEOUT)
			return clock_mono(&clock_system) >= end ? 0 : slu_fail(err, rc, "no message in time");
		if (rc == SLU_ECANCELED && atomic_load(&s->client->stopped))
			return client_stopped(err);
		if (rc != SLU_EUNKNOWN)
			return rc;
		hang_up(s);
	}
}

int
slu_subscription_next(struct slu_subscription *s, struct slu_delivery **out,
		      const struct slu_call *call, struct slu_err *err)
{
	NEED2(s, out, err);

	struct slu_call room;
	const struct slu_call *known = SIZED(slu_call, call, &room, err);

	*out = NULL;
	if (!known || need_time(known->timeout, "timeout", err))
		return SLU_EINVAL;
	return next(s, *known, out, err);
}
