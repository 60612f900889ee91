/*
 * lock.c - leases on keys: acquire, keep, release, describe.
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/json_out.h"
#include "base/need.h"
#include "base/sized.h"

static const struct json_field lease_fields[] = {
	DECODE(decode_chars, struct slu_lease, space, "namespace"),
	DECODE(decode_chars, struct slu_lease, key, "key"),
	DECODE(decode_chars, struct slu_lease, owner, "owner"),
	DECODE(decode_chars, struct slu_lease, id, "lease_id"),
	DECODE(decode_chars, struct slu_lease, txn, "txn_id"),
	DECODE(json_read_u64, struct slu_lease, token, "fencing_token"),
	DECODE(json_read_i64, struct slu_lease, version, "version"),
	DECODE(decode_chars, struct slu_lease, etag, "state_etag"),
	DECODE(decode_seconds, struct slu_lease, until, "expires_at_unix"),
};

static int
read_lease(const struct ask *a, struct slu_lease *out, struct slu_err *err)
{
	struct slu_err why;
	struct json r;

	json_init(&r, ask_body(a), JSON_DEPTH);
	json_fields(&r, lease_fields, sizeof lease_fields / sizeof lease_fields[0], JSON_LENIENT,
		    out);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer is no lease: %s", why.text);
	return 0;
}

/* What every call about a lease begins with. */
static void
out_lease(struct json_out *w, struct ask *a, const struct slu_lease *l)
{
	json_out_init(w, &a->body);
	json_out_object(w, NULL);
	json_out_str(w, "namespace", slice_of(l->space));
	json_out_str(w, "key", slice_of(l->key));
	json_out_str(w, "lease_id", slice_of(l->id));
	json_out_str(w, "txn_id", slice_of(l->txn));
}

static void
out_end(struct json_out *w)
{
	json_out_close(w);
	json_out_end(w);
}

/* --- acquire ------------------------------------------------------------------------ */

struct acquiring {
	const struct slu_acquire *what;
	char owner[CLIENT_OWNER_TEXT];
};

static void
write_acquire(struct ask *a, slu_time left)
{
	const struct acquiring *const q = a->user;
	const struct slu_acquire *const what = q->what;
	struct json_out w;

	buf_clear(&a->body);
	json_out_init(&w, &a->body);
	json_out_object(&w, NULL);
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
	out_end(&w);
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
	struct ask a;
	int rc;

	*out = (struct slu_lease){ 0 };
	if (!what || need_lease(what->ttl, "ttl", err) || need_time(what->wait, "wait", err))
		return SLU_EINVAL;
	client_owner(c, what->owner, q.owner);
	ask_init(&a, c, call, "POST", "/v1/acquire");
	a.begins = true;
	ask_waits(&a, what->wait);
	a.repeatable = !what->if_absent;
	a.write = write_acquire;
	a.user = &q;
	rc = ask_run(&a, err);
	if (!rc)
		rc = read_lease(&a, out, err);
	ask_release(&a);
	return rc;
}

/* --- keep, release, describe ---------------------------------------------------------- */

int
slu_lock_keep(struct slu_client *c, struct slu_lease *l, slu_time ttl,
	      const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(l, err);

	struct json_out w;
	struct ask a;
	int rc;

	if (need_lease(ttl, "ttl", err))
		return SLU_EINVAL;
	ask_init(&a, c, call, "POST", "/v1/keepalive");
	a.repeatable = true;
	out_lease(&w, &a, l);
	json_out_i64(&w, "ttl_seconds", seconds_up(ttl));
	out_end(&w);
	ask_lease(&a, l);
	rc = ask_run(&a, err);
	if (!rc)
		rc = read_lease(&a, l, err);
	ask_release(&a);
	return rc;
}

int
slu_lock_release(struct slu_client *c, const struct slu_lease *l, enum slu_lock_end how,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(l, err);

	struct json_out w;
	struct ask a;
	int rc;

	if ((unsigned)how > SLU_ROLLBACK)
		return slu_fail(err, SLU_EINVAL, "invalid end: %d; expected SLU_COMMIT or SLU_ROLLBACK",
				(int)how);
	ask_init(&a, c, call, "POST", "/v1/release");
	a.repeatable = true;
	out_lease(&w, &a, l);
	if (how == SLU_ROLLBACK)
		json_out_bool(&w, "rollback", true);
	out_end(&w);
	ask_lease(&a, l);
	rc = ask_run(&a, err);
	ask_release(&a);
	return rc;
}

int
slu_lock_describe(struct slu_client *c, const char *key, struct slu_lease *out,
		  const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(key, err);
	NEED(out, err);

	struct ask a;
	int rc;

	*out = (struct slu_lease){ 0 };
	ask_init(&a, c, call, "GET", "/v1/describe");
	ask_param(&a, "namespace", a.space);
	ask_param(&a, "key", key);
	rc = ask_run(&a, err);
	if (!rc)
		rc = read_lease(&a, out, err);
	ask_release(&a);
	return rc;
}
