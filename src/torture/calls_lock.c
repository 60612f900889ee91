/*
 * calls_lock.c - calls for locks and their state, recorded in the history.
 */
#include "torture/calls_private.h"

#include <inttypes.h>
#include <stdio.h>

static void
out_lock(struct caller *c, struct json_out *w, uint32_t lock)
{
	char key[96];

	(void)snprintf(key, sizeof key, "%s/%u", c->queue, lock);
	json_out_str(w, "namespace", SLICE(TORTURE_SPACE));
	json_out_str(w, "key", slice_of(key));
}

static void
lock_path(struct caller *c, const char *path, uint32_t lock)
{
	caller_path(c, path);
	buf_printf(&c->path, "?namespace=" TORTURE_SPACE "&key=%s%%2F%u", c->queue, lock);
}

/* held: the lease in the head of the call; NULL = none. */
static enum outcome
ask_with_lease(struct caller *c, const char *method, const struct lock_held *held,
	       struct event *e)
{
	enum outcome outcome;

	if (held)
		(void)snprintf(c->fields, sizeof c->fields,
			       "X-Lease-ID: %s\r\nX-Txn-ID: %s\r\nX-Fencing-Token: %" PRIu64 "\r\n",
			       held->lease_id, held->txn_id, held->token);
	outcome = caller_ask(c, method, e);
	c->fields[0] = '\0';
	return outcome;
}

/* --- acquire ----------------------------------------------------------------------- */

struct lock_grant {
	struct slice lease_id, txn_id;
	uint64_t fencing_token;
};

static const struct json_field grant_fields[] = {
	JSON_FIELD(text, struct lock_grant, lease_id, .required = true, .max = CALLS_LEASE_ID - 1),
	JSON_FIELD(text, struct lock_grant, txn_id, .required = true, .max = CALLS_LEASE_ID - 1),
	JSON_FIELD(u64, struct lock_grant, fencing_token, .required = true),
};

static bool
read_grant(struct caller *c, struct lock_held *held)
{
	struct lock_grant g = { 0 };

	if (caller_object(c, grant_fields, N_FIELDS(grant_fields), &g, NULL))
		return false;
	held->token = g.fencing_token;
	(void)snprintf(held->lease_id, sizeof held->lease_id, "%.*s", (int)g.lease_id.n, g.lease_id.p);
	(void)snprintf(held->txn_id, sizeof held->txn_id, "%.*s", (int)g.txn_id.n, g.txn_id.p);
	return true;
}

enum outcome
caller_acquire(struct caller *c, uint32_t lock, unsigned ttl_s, unsigned wait_s,
	       struct lock_held *held)
{
	struct event e = { .kind = EVENT_ACQUIRE, .key = lock };
	struct json_out w;

	*held = (struct lock_held){ .lock = lock };
	caller_path(c, "/v1/acquire");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	out_lock(c, &w, lock);
	json_out_str(&w, "owner", SLICE("torture"));
	json_out_u64(&w, "ttl_seconds", ttl_s);
	json_out_i64(&w, "block_seconds", wait_s ? (int64_t)wait_s : -1);
	json_out_finish(&w);
	if (caller_ask(c, "POST", &e) == OUTCOME_OK && !read_grant(c, held))
		e.outcome = OUTCOME_UNKNOWN;
	if (e.outcome == OUTCOME_OK) {
		held->until = e.start + (slu_time)ttl_s * SLU_SEC;
		e.token = held->token;
		e.until = held->until;
	}
	history_add(c->history, &e);
	return e.outcome;
}

/* --- state ------------------------------------------------------------------------- */

static const struct json_field state_fields[] = {
	{ .name = { "n", 1 }, .read = json_read_u64, .size = sizeof(uint64_t), .required = true },
};

enum outcome
caller_read_state(struct caller *c, uint32_t lock, const struct lock_held *held,
		  uint64_t *value)
{
	struct event e = { .kind = EVENT_READ, .key = lock, .token = held ? held->token : 0 };

	*value = 0;
	lock_path(c, "/v1/get", lock);
	if (!held)
		buf_puts(&c->path, "&public=1");
	if (ask_with_lease(c, "GET", held, &e) == OUTCOME_OK && c->http.answer.status == 200 &&
	    caller_object(c, state_fields, N_FIELDS(state_fields), value, NULL))
		e.outcome = OUTCOME_UNKNOWN;
	e.name = *value;
	history_add(c->history, &e);
	return e.outcome;
}

enum outcome
caller_update(struct caller *c, const struct lock_held *held, uint64_t value)
{
	struct event e = {
		.kind = EVENT_UPDATE,
		.key = held->lock,
		.token = held->token,
		.name = value,
	};

	lock_path(c, "/v1/update", held->lock);
	buf_clear(&c->body);
	buf_printf(&c->body, "{\"n\":%" PRIu64 "}", value);
	(void)ask_with_lease(c, "POST", held, &e); /* its outcome is in e */
	history_add(c->history, &e);
	return e.outcome;
}

enum outcome
caller_release_lock(struct caller *c, const struct lock_held *held, uint64_t value,
		    bool rollback)
{
	struct event e = {
		.kind = EVENT_RELEASE,
		.key = held->lock,
		.token = held->token,
		.until = held->until,
		.name = rollback ? 0 : value,
	};
	struct json_out w;

	caller_path(c, "/v1/release");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	out_lock(c, &w, held->lock);
	json_out_str(&w, "lease_id", slice_of(held->lease_id));
	json_out_str(&w, "txn_id", slice_of(held->txn_id));
	if (rollback)
		json_out_bool(&w, "rollback", true);
	json_out_finish(&w);
	(void)ask_with_lease(c, "POST", held, &e); /* its outcome is in e */
	history_add(c->history, &e);
	return e.outcome;
}
