/*
 * update.c - slu_lock_update: acquires a key, has a function change its document, and commits.
 *
 *      acquire ──> get ──> fn ──> extend once more ──> release, in time: committed
 *                           │                  └──> not in time, or lost: SLU_ELEASE
 *                           └──> failed, panicked: roll back
 *
 * The answer to a release is the same whether the lease still held or not. It counts only if the lease
 * certainly held, so the lease is extended before.
 */
#include "client/client.h"
#include "client/keeper.h"

#include "base/clock.h"
#include "base/need.h"
#include "base/sized.h"

#include <sluice/panic.h>

#define TTL_DEFAULT (30 * SLU_SEC)

struct update_call {
	struct kept kept;
	struct slu_client *client;
	struct slu_lease lease;  /* the lease for the function */
	struct slu_lease shadow; /* the lease for the keeper */
	struct slu_state state;
	slu_time ttl;
	slu_update_fn *fn;
	void *arg;
	struct slu_err *err;
};

static int
keep_until(struct slu_client *c, struct slu_lease *l, slu_time ttl, slu_time until,
	   struct slu_err *err)
{
	const slu_time left = until - clock_mono(&clock_system);
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = left > 0 ? left : 1, .space = l->space };

	return slu_lock_keep(c, l, ttl, &call, err);
}

static int
keep_shadow(struct kept *k, slu_time until)
{
	struct update_call *const u = CONTAINER(k, struct update_call, kept);

	return keep_until(u->client, &u->shadow, u->ttl, until, NULL);
}

static int
run_fn(void *arg)
{
	struct update_call *const u = arg;

	return u->fn(u->client, &u->lease, &u->state, u->arg, u->err);
}

static int
roll_back(struct update_call *u, int rc)
{
	(void)slu_lock_release(u->client, &u->lease, SLU_ROLLBACK, NULL, NULL); /* otherwise the lease ends by itself */
	return rc;
}

static int
lost(const struct update_call *u, struct slu_err *err)
{
	return slu_fail(err, SLU_ELEASE, "%s: the lease ended while the function ran; nothing was "
					 "changed",
			u->lease.key);
}

static int
commit(struct update_call *u, slu_time until, struct slu_err *err)
{
	const slu_time began = clock_mono(&clock_system);
	int rc = keep_until(u->client, &u->lease, u->ttl, until, err);

	if (rc == SLU_ELEASE)
		return lost(u, err);
	if (rc)
		return roll_back(u, rc);
	rc = slu_lock_release(u->client, &u->lease, SLU_COMMIT, NULL, err);
	if (!rc && clock_mono(&clock_system) - began >= u->ttl - SLU_SEC)
		return slu_fail(err, SLU_EUNKNOWN, "%s: the commit was answered too late to know "
						   "whether the lease still held",
				u->lease.key);
	return rc;
}

static int
work(struct update_call *u, slu_time began, struct slu_err *err)
{
	struct keeper keeper;
	int rc = keeper_start(&keeper, err);

	if (rc)
		return roll_back(u, rc);
	u->kept.keep = keep_shadow;
	u->shadow = u->lease;
	keeper_add(&keeper, &u->kept, u->ttl, began);
	rc = slu_state_get(u->client, &u->lease, &u->state, NULL, err);
	if (!rc) {
		u->err = err;
		rc = slu_guard(run_fn, u, err);
	}
	keeper_remove(&keeper, &u->kept);
	keeper_stop(&keeper);
	slu_free(u->state.text);
	if (u->kept.lost)
		return lost(u, err);
	return rc ? roll_back(u, rc) : commit(u, u->kept.until, err);
}

int
slu_lock_update(struct slu_client *c, const struct slu_acquire *given, slu_update_fn *fn, void *arg,
		const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED_AS(given, "a", err);
	NEED(fn, err);

	struct slu_acquire room;
	const struct slu_acquire *a = SIZED(slu_acquire, given, &room, err);
	struct update_call u = { .client = c, .fn = fn, .arg = arg };
	slu_time began;
	int rc;

	if (!a || need_lease(a->ttl, "ttl", err))
		return SLU_EINVAL;
	u.ttl = a->ttl > 0 ? seconds_up(a->ttl) * SLU_SEC : TTL_DEFAULT;
	rc = slu_lock_acquire(c, a, &u.lease, call, err);
	began = clock_mono(&clock_system);
	return rc ? rc : work(&u, began, err);
}
