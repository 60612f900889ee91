#include "client/receive.h"

#include "base/clock.h"
#include "base/json/json_out.h"
#include "base/need.h"
#include "base/sized.h"

int
receiving_init(struct receiving *r, struct slu_client *c, const char *queue,
	       const struct slu_receive *given, struct slu_err *err)
{
	struct slu_receive room;
	const struct slu_receive *how = SIZED(slu_receive, given, &room, err);

	if (!how || need_lease(how->visibility, "visibility", err) ||
	    need_time(how->wait, "wait", err) || need_time(how->on_close, "on_close", err))
		return SLU_EINVAL;
	*r = (struct receiving){ .queue = queue, .how = *how, .page = 1 };
	client_owner(c, r->how.owner, r->owner);
	return 0;
}

static void
write_request(struct client_request *a, slu_time left)
{
	const struct receiving *const r = a->user;
	struct json_out w;

	buf_clear(&a->body);
	json_out_open(&w, &a->body);
	json_out_str(&w, "namespace", slice_of(a->space));
	json_out_str(&w, "queue", slice_of(r->queue));
	json_out_str(&w, "owner", slice_of(r->owner));
	json_out_i64(&w, "visibility_timeout_seconds", seconds_up(r->how.visibility));
	json_out_i64(&w, "wait_seconds", seconds_to_wait(left));
	json_out_u64(&w, "page_size", r->page);
	if (r->how.kinds)
		json_out_str(&w, "kinds", slice_of(r->how.kinds));
	json_out_finish(&w);
}

int
receiving_ask(struct receiving *r, struct slu_client *c, const char *path, slu_time patience,
	      const struct slu_call *call, struct link **link, struct slu_err *err)
{
	struct client_request a;
	int rc;

	*link = NULL;
	client_request_init(&a, c, call, "POST", path);
	a.begins = true;
	if (r->how.stateful)
		buf_puts(&a.path, "WithState");
	client_request_waits(&a, r->how.wait);
	a.patience = patience;
	a.repeatable = true; /* a message that does not arrive goes back */
	a.in_pieces = true;
	a.write = write_request;
	a.user = r;
	rc = client_request_run(&a, err);
	if (rc && a.too_early)
		rc = 0; /* no message came */
	else if (!rc)
		*link = client_request_take(&a);
	client_request_release(&a);
	return rc;
}

/* Reads the next delivery of an answer; *out NULL = no more. */
static int
next_of(struct parts *p, struct receiving *r, struct slu_client *c, struct slu_delivery **out,
	struct slu_err *err)
{
	const struct patience until = {
		.deadline = time_add(clock_mono(&clock_system), c->timeout),
		.stop_fd = -1,
	};
	struct slice meta;
	int rc = parts_next(p, &until, &until, &meta, err);

	*out = NULL;
	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, SLU_EUNKNOWN, "the rest of a delivery did not come in time");
	if (!rc && meta.n > 0)
		rc = delivery_new(out, c, meta, r->owner, r->how.on_close, err);
	if (*out) {
		(*out)->parts = p;
		(*out)->info.size = p->left;
	}
	return rc;
}

int
receive_one(struct receiving *r, struct slu_client *c, slu_time patience,
	    const struct slu_call *call, struct slu_delivery **out, struct slu_err *err)
{
	struct slu_delivery *d = NULL;
	struct parts p = { 0 };
	struct link *link;
	int rc = receiving_ask(r, c, "/v1/queue/dequeue", patience, call, &link, err);

	*out = NULL;
	if (rc || !link)
		return rc;
	rc = parts_begin(&p, link, err);
	if (!rc)
		rc = next_of(&p, r, c, &d, err);
	if (d) { /* d->own owns the link now; slices of p point into the link, not into p */
		d->own = p;
		d->parts = &d->own;
		*out = d;
		return 0;
	}
	link_end(c, link);
	parts_release(&p);
	return rc;
}

int
receive_page(struct receiving *r, struct slu_client *c, slu_time patience,
	     const struct slu_call *call, struct slu_delivery **out, unsigned *n,
	     struct slu_err *err)
{
	struct slu_delivery *d = NULL;
	struct parts p = { 0 };
	struct link *link;
	int rc = receiving_ask(r, c, "/v1/queue/dequeue", patience, call, &link, err);

	*n = 0;
	if (rc || !link)
		return rc;
	rc = parts_begin(&p, link, err);
	while (!rc && *n < r->page && (*n == 0 || d)) {
		rc = next_of(&p, r, c, &d, err);
		if (!rc && d) {
			out[(*n)++] = d;
			rc = delivery_spool(d, err);
		}
	}
	if (!rc)
		parts_finish(&p);
	link_end(c, link);
	parts_release(&p);
	while (rc && *n > 0) { /* the server took the messages back */
		out[*n - 1]->parts = NULL;
		delivery_free(out[--*n]);
	}
	return rc;
}

int
slu_client_receive(struct slu_client *c, const char *queue, const struct slu_receive *how,
		   struct slu_delivery **out, const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, queue, out, err);

	struct receiving r;
	const int rc = receiving_init(&r, c, queue, how, err);

	return rc ? rc : receive_one(&r, c, c->patience, call, out, err);
}
