/*
 * health.c - the health of the servers: which are down, which may lose an answered write, and
 * which came back without answered writes.
 *
 * Each change is logged once. Any thread may read the current state.
 */
#include "engine/redis/redis_private.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- REDIS-9: writes that were lost ---- */

static void
tell_lost(struct redis *r, const struct rqueue *q, uint64_t seen, uint64_t found)
{
	meter_add(&r->outer.meter, METER_LOST_WRITES, 1);
	if (r->outer.log)
		log_error(r->outer.log, "redis lost answered writes",
			  F_STR("address", r->conf.wire.address), F_STR("namespace", q->space),
			  F_STR("queue", q->name), F_U64("had", seen), F_U64("has", found));
	pthread_mutex_lock(&r->mtx);
	(void)snprintf(r->lost.text, sizeof r->lost.text,
		       "redis %.120s lost answered writes: its counter was %" PRIu64 " and is %" PRIu64,
		       r->conf.wire.address, seen, found);
	r->lost.name = "lost_writes";
	pthread_mutex_unlock(&r->mtx);
}

uint64_t *
redis_seen(struct redis *r, struct rqueue *q)
{
	return r->conf.tags ? &q->seen : &r->seen;
}

void
redis_note_number(struct redis *r, struct rqueue *q, uint64_t number, uint64_t found)
{
	uint64_t *const seen = redis_seen(r, q);

	if (found && found <= *seen) /* otherwise another call of the same run has reported it */
		tell_lost(r, q, *seen, found);
	*seen = number > *seen ? number : *seen;
}

/* ---- Servers ---- */

/* Logs when the weakness of a server begins, changes or ends. */
static void
log_weak(const struct redis *r, struct rnode *n)
{
	if (strcmp(n->told, n->weak) == 0)
		return;
	memcpy(n->told, n->weak, sizeof n->told);
	if (r->outer.lane != 0 || !r->outer.log)
		return;
	if (*n->weak)
		log_warn(r->outer.log, "redis may lose answered writes",
			 F_STR("address", n->address), F_STR("why", n->weak));
	else
		log_info(r->outer.log, "redis keeps answered writes again",
			 F_STR("address", n->address));
}

/* A server that was connected or checked again may have other settings. */
static void
note_weak(struct redis *r)
{
	unsigned n = 0;

	pthread_mutex_lock(&r->mtx);
	for (uint32_t i = 0; i < r->nodes.n; i++) {
		struct rnode *node = r->nodes.all[i];
		const bool counts = node->listed || !r->nodes.cluster;

		if (node->met && counts)
			log_weak(r, node);
		if (node->mended && r->outer.log)
			log_info(r->outer.log, "redis restarted; it rewrites its append-only file",
				 F_STR("address", node->address));
		node->met = node->mended = false;
		if (*node->weak && counts && n < REDIS_WEAK) {
			r->weak[n].name = "weak_persistence";
			(void)snprintf(r->weak[n++].text, sizeof r->weak[0].text,
				       "redis %.90s may lose answered writes: %.110s",
				       node->address, node->weak);
		}
	}
	r->n_weak = n;
	pthread_mutex_unlock(&r->mtx);
}

/* REDIS-5 */
static void
note_down(struct redis *r)
{
	const struct rnode *n = rnodes_who_is_down(&r->nodes);

	if (n && !r->down && r->outer.log)
		log_error(r->outer.log, "redis cannot be reached", F_STR("why", n->down_why.text));
	if (!n && r->down && r->outer.log)
		log_info(r->outer.log, "redis is back", F_STR("address", r->conf.wire.address));
	pthread_mutex_lock(&r->mtx);
	r->down = n;
	if (n)
		r->down_why = n->down_why;
	pthread_mutex_unlock(&r->mtx);
}

void
redis_report_health(struct redis *r)
{
	bool met = false;

	for (uint32_t i = 0; i < r->nodes.n && !met; i++)
		met = r->nodes.all[i]->met;
	if (met)
		note_weak(r);
	note_down(r);
}

/* ---- Any thread ---- */

static struct redis *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct redis, engine);
}

int
redis_health(struct engine *e, struct slu_err *err)
{
	struct redis *r = of_engine(e);
	int rc = 0;

	pthread_mutex_lock(&r->mtx);
	if (r->down)
		rc = slu_fail(err, SLU_EDOWN, "%s", r->down_why.text);
	pthread_mutex_unlock(&r->mtx);
	return rc ? rc : rstore_lost(&r->store, err);
}

unsigned
redis_warnings(struct engine *e, struct engine_warning *out, unsigned max)
{
	struct redis *r = of_engine(e);
	unsigned n = 0;

	pthread_mutex_lock(&r->mtx);
	if (r->lost.name && n < max)
		out[n++] = r->lost;
	for (unsigned i = 0; i < r->n_weak && n < max && r->outer.lane == 0; i++)
		out[n++] = r->weak[i]; /* all lanes have the same servers */
	pthread_mutex_unlock(&r->mtx);
	return n;
}
