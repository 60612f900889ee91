/*
 * lock.c - leases on keys: acquire, extend, release, describe.
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/json/json_out.h"
#include "base/need.h"
#include "base/sized.h"

static const struct json_field lease_fields[] = {
	JSON_ROW("namespace", json_read_chars, struct slu_lease, space),
	JSON_FIELD(chars, struct slu_lease, key),
	JSON_FIELD(chars, struct slu_lease, owner),
	JSON_ROW("lease_id", json_read_chars, struct slu_lease, id),
	JSON_ROW("txn_id", json_read_chars, struct slu_lease, txn),
	JSON_ROW("fencing_token", json_read_u64, struct slu_lease, token),
	JSON_FIELD(i64, struct slu_lease, version),
	JSON_ROW("state_etag", json_read_chars, struct slu_lease, etag),
	JSON_ROW("expires_at_unix", decode_seconds, struct slu_lease, until),
};

/* Sends the request, reads the lease that it is answered with, and releases it. */
static int
run_lease(struct client_request *a, struct slu_lease *out, struct slu_err *err)
{
	int rc = client_request_run(a, err);

	if (!rc)
		rc = decode_object(client_request_body(a), lease_fields, sizeof lease_fields / sizeof lease_fields[0], out,
				   "answer: expected a lease", err);
	client_request_release(a);
	return rc;
}

/* Writes the members that every request about a lease begins with. */
static void
out_lease(struct json_out *w, struct client_request *a, const struct slu_lease *l)
{
	json_out_open(w, &a->body);
	json_out_str(w, "namespace", slice_of(l->space));
	json_out_str(w, "key", slice_of(l->key));
	json_out_str(w, "lease_id", slice_of(l->id));
	json_out_str(w, "txn_id", slice_of(l->txn));
}

/* --- acquire ------------------------------------------------------------------------ */

struct acquiring {
	const struct slu_acquire *what;
	char owner[CLIENT_OWNER_TEXT];
};

static void
write_acquire(struct client_request *a, slu_time left)
{
	const struct acquiring *const q = a->user;
	const struct slu_acquire *const what = q->what;
	struct json_out w;

	buf_clear(&a->body);
	json_out_open(&w, &a->body);
	json_out_str(&w, "namespace", slice_of(a->space));
	if (what->key)
		json_out_str(&w, "key", slice_of(what->key));
	json_out_str(&w, "owner", slice_of(q->owner));
	json_out_i64(&w, "ttl_seconds", seconds_up(what->ttl));
	json_out_i64(&w, "block_seconds", seconds_to_wait(left));
	if (what->if_absent)
		json_out_bool(&w, "if_not_exists", true);
	if (what->txn)
		json_out_str(&w, "txn_id", slice_of(what->txn));
	json_out_finish(&w);
}

int
slu_lock_acquire(struct slu_client *c, const struct slu_acquire *given, struct slu_lease *out,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED_AS(given, "a", err);
	NEED(out, err);

	struct slu_acquire room;
	const struct slu_acquire *what = SIZED(slu_acquire, given, &room, err);
	struct acquiring q = { .what = what };
	struct client_request a;

	*out = (struct slu_lease){ 0 };
	if (!what || need_lease(what->ttl, "ttl", err) || need_time(what->wait, "wait", err))
		return SLU_EINVAL;
	client_owner(c, what->owner, q.owner);
	client_request_init(&a, c, call, "POST", "/v1/acquire");
	a.begins = true;
	client_request_waits(&a, what->wait);
	a.repeatable = !what->if_absent;
	a.write = write_acquire;
	a.user = &q;
	return run_lease(&a, out, err);
}

/* --- keep, release, describe ---------------------------------------------------------- */

int
slu_lock_keep(struct slu_client *c, struct slu_lease *l, slu_time ttl,
	      const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, l, err);

	struct json_out w;
	struct client_request a;

	if (need_lease(ttl, "ttl", err))
		return SLU_EINVAL;
	client_request_init(&a, c, call, "POST", "/v1/keepalive");
	a.repeatable = true;
	out_lease(&w, &a, l);
	json_out_i64(&w, "ttl_seconds", seconds_up(ttl));
	json_out_finish(&w);
	client_request_lease(&a, l);
	return run_lease(&a, l, err);
}

int
slu_lock_release(struct slu_client *c, const struct slu_lease *l, enum slu_lock_end how,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, l, err);

	struct json_out w;
	struct client_request a;

	if ((unsigned)how > SLU_ROLLBACK)
		return slu_fail(err, SLU_EINVAL, "invalid end: %d; expected SLU_COMMIT or SLU_ROLLBACK",
				(int)how);
	client_request_init(&a, c, call, "POST", "/v1/release");
	a.repeatable = true;
	out_lease(&w, &a, l);
	if (how == SLU_ROLLBACK)
		json_out_bool(&w, "rollback", true);
	json_out_finish(&w);
	client_request_lease(&a, l);
	return client_request_finish(&a, err);
}

int
slu_lock_describe(struct slu_client *c, const char *key, struct slu_lease *out,
		  const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, key, out, err);

	struct client_request a;

	*out = (struct slu_lease){ 0 };
	client_request_init(&a, c, call, "GET", "/v1/describe");
	http_param(&a.path, "namespace", a.space);
	http_param(&a.path, "key", key);
	return run_lease(&a, out, err);
}
