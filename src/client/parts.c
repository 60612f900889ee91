#include "client/parts.h"

#include "base/clock.h"

#include <poll.h>

int
parts_begin(struct parts *p, struct link *link, struct slu_err *err)
{
	*p = (struct parts){ .link = link };
	buf_init(&p->meta, PARTS_META_MAX);
	if (!multipart_init(&p->multipart, answer_field(&link->http.answer, SLICE("content-type"))))
		return slu_fail(err, SLU_EUNKNOWN, "%s: malformed answer: expected a multipart body",
				link->http.address.text);
	return 0;
}

void
parts_release(struct parts *p)
{
	buf_release(&p->meta);
	*p = (struct parts){ 0 };
}

static int
misunderstood(const struct parts *p, const char *why, struct slu_err *err)
{
	http_hang_up(&p->link->http);
	return slu_fail(err, SLU_EUNKNOWN, "%s: malformed answer: %s",
			p->link->http.address.text, why);
}

/* Receives more bytes if there are none. Returns SLU_EUNKNOWN at the end of the body (PARTS-2). */
static int
fill(struct parts *p, const struct patience *until, struct slu_err *err)
{
	const int rc = p->in.n > 0 ? 0 : http_piece(&p->link->http, until, &p->in, err);

	if (!rc && p->in.n == 0)
		return misunderstood(p, "it ends before its last boundary", err);
	return rc;
}

/* Takes the received bytes of the payload, without parsing them (PARTS-1). */
static struct slice
take_payload(struct parts *p, size_t size)
{
	const uint64_t most = p->left < size ? p->left : size;
	const struct slice out = { p->in.p, p->in.n < most ? p->in.n : (size_t)most };

	p->in = (struct slice){ p->in.p + out.n, p->in.n - out.n };
	p->left -= out.n;
	return out;
}

int
parts_read(struct parts *p, const struct patience *until, void *room, size_t size, size_t *n,
	   struct slu_err *err)
{
	struct slice got;
	int rc;

	*n = 0;
	if (p->left == 0 || size == 0)
		return 0;
	rc = fill(p, until, err);
	if (rc)
		return rc;
	got = take_payload(p, size);
	memcpy(room, got.p, got.n);
	*n = got.n;
	return 0;
}

static int
drop_payload(struct parts *p, const struct patience *until, struct slu_err *err)
{
	int rc = 0;

	while (p->left > 0 && !rc) {
		rc = fill(p, until, err);
		if (!rc)
			(void)take_payload(p, SIZE_MAX);
	}
	return rc;
}

/* Parses until a part begins, or until the end. Collects the data of a part `meta`. */
static int
next_part(struct parts *p, const struct patience *until, struct slu_err *err)
{
	struct slice data;
	int rc;

	for (;;) {
		const enum multipart_event e = multipart_next(&p->multipart, &p->in, &data);

		if (e == MULTIPART_REFUSED)
			return misunderstood(p, p->multipart.why, err);
		if (e == MULTIPART_DATA && p->has_payload)
			return misunderstood(p, "a payload is longer than its length", err);
		if (e == MULTIPART_DATA)
			buf_put(&p->meta, data.p, data.n);
		if (p->meta.failed)
			return misunderstood(p, "a part `meta` is too large", err);
		p->ended = e == MULTIPART_END;
		if (p->ended || e == MULTIPART_PART)
			return 0;
		rc = e == MULTIPART_MORE ? fill(p, until, err) : 0;
		if (rc)
			return rc;
	}
}

/* Has no byte of the next delivery come? Then the wait can end without a loss. */
static int
wait_idle(struct parts *p, const struct patience *idle, struct slu_err *err)
{
	struct http *const h = &p->link->http;
	int rc = 0;

	if (p->in.n == 0 && !h->whole && h->wire.fd >= 0 && (h->lent || h->answer.body.n == 0))
		rc = patience_wait(idle, h->wire.fd, POLLIN);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped while waiting for a message", h->address.text);
	return rc;
}

int
parts_next(struct parts *p, const struct patience *idle, const struct patience *until,
	   struct slice *meta, struct slu_err *err)
{
	int rc = drop_payload(p, until, err);

	*meta = (struct slice){ NULL, 0 };
	if (!rc && !p->ended)
		rc = wait_idle(p, idle, err);
	buf_clear(&p->meta);
	if (!rc && !p->ended)
		rc = next_part(p, until, err);
	if (rc || p->ended)
		return rc;
	if (!slice_eq(p->multipart.name, SLICE("meta")))
		return misunderstood(p, "expected a part `meta`", err);
	p->has_payload = false;
	rc = next_part(p, until, err);
	if (rc)
		return rc;
	if (p->ended || !slice_eq(p->multipart.name, SLICE("payload")) ||
	    !p->multipart.has_length)
		return misunderstood(p, "expected a part `payload` with its length", err);
	p->has_payload = true;
	p->left = p->multipart.length;
	if (p->left > 0)
		multipart_taken(&p->multipart);
	*meta = buf_slice(&p->meta);
	return 0;
}

void
parts_finish(struct parts *p)
{
	const struct patience now = { .deadline = clock_mono(&clock_system) + SLU_SEC, .stop_fd = -1 };
	struct slice meta;

	if (!p->link || p->left > WIRE_READ)
		return;
	if (p->ended || (parts_next(p, &now, &now, &meta, NULL) == 0 && p->ended))
		(void)http_gather(&p->link->http, &now, NULL); /* otherwise the connection is not used again */
}
