#include "api/lockd/parts.h"

#include "base/hash.h"
#include "base/id.h"
#include "base/json/json_out.h"

#include <inttypes.h>
#include <stdio.h>

static const char default_type[] = "application/octet-stream";

int
lockd_parts_init(struct lockd_parts *p, const struct lockd_xid *txn, struct slu_err *err)
{
	uint64_t dice[2];
	const int rc = hash_random(dice, sizeof dice, err);

	if (rc)
		return rc;
	p->txn = *txn;
	(void)snprintf(p->boundary, sizeof p->boundary, "%016" PRIx64 "%016" PRIx64, dice[0],
		       dice[1]);
	(void)snprintf(p->type, sizeof p->type, "multipart/related; boundary=%s", p->boundary);
	return 0;
}

struct slice
lockd_parts_correlation(const struct op_row *row, const struct message *m,
			char uuid[static LOCKD_UUID_TEXT])
{
	return m->correlation.n ? m->correlation : slice_of(id_to_uuid(row->id, uuid));
}

/* The length of the lease, at least 1: a client may divide by it. */
static int64_t
seconds_of(const struct op_row *row)
{
	const int64_t seconds = (row->until - row->claimed + SLU_SEC / 2) / SLU_SEC;

	return seconds > 0 ? seconds : 1;
}

/* The lease of a message is the lease of its state, too. */
static void
write_state(struct json_out *w, const struct op_row *row, struct slice lease, struct slice txn)
{
	char etag[LOCKD_ETAG_TEXT];

	json_out_str(w, "state_etag", slice_of(lockd_etag_text(row->state_etag, etag)));
	json_out_str(w, "state_lease_id", lease);
	json_out_i64(w, "state_lease_expires_at_unix", row->until / SLU_SEC);
	json_out_u64(w, "state_fencing_token", row->token);
	json_out_str(w, "state_txn_id", txn);
}

static void
write_lease(const struct lockd_parts *p, struct json_out *w, const struct op_row *row,
	    unsigned flags)
{
	const struct lockd_xid txn = lockd_xid_is_zero(&p->txn) ? lockd_txn_of(row->token) : p->txn;
	const struct lockd_meta meta = {
		.token = row->token,
		.until = row->until,
		.seconds = seconds_of(row),
	};
	char lease_text[LOCKD_XID_TEXT], txn_text[LOCKD_XID_TEXT], etag[LOCKD_ETAG_TEXT];
	const struct slice lease = slice_of(lockd_lease_text(row->token, &p->txn, flags, lease_text));

	json_out_str(w, "lease_id", lease);
	json_out_i64(w, "lease_expires_at_unix", row->until / SLU_SEC);
	json_out_u64(w, "fencing_token", row->token);
	json_out_str(w, "txn_id", slice_of(lockd_xid_text(&txn, txn_text)));
	json_out_str(w, "meta_etag", slice_of(lockd_meta_text(&meta, etag)));
	if (p->stateful)
		write_state(w, row, lease, slice_of(txn_text));
}

static void
write_given(struct json_out *w, const struct op_row *row, const struct message *m)
{
	json_out_str(w, "namespace", m->space);
	json_out_str(w, "queue", m->queue);
	json_out_u64(w, "attempts", row->attempts);
	json_out_u64(w, "max_attempts", row->max_attempts);
	if (row->failures)
		json_out_u64(w, "failure_attempts", row->failures);
	json_out_i64(w, "not_visible_until_unix", row->until / SLU_SEC);
	json_out_i64(w, "visibility_timeout_seconds", seconds_of(row));
	if (m->attributes.n)
		json_out_stored(w, "attributes", m->attributes);
	if (kind_is(m->share))
		json_out_str(w, "kind", kind_of_line(m->share));
	json_out_str(w, "payload_content_type", m->type.n ? m->type : SLICE(default_type));
	json_out_u64(w, "payload_bytes", m->payload_size);
}

static void
write_meta(const struct lockd_parts *p, struct buf *out, const struct op_row *row,
	   const struct message *m)
{
	char uuid[ID_UUID_TEXT], other[ID_UUID_TEXT];
	const struct slice id = slice_of(id_to_uuid(row->id, uuid));
	const struct slice correlation = lockd_parts_correlation(row, m, other);
	struct json_out w;

	json_out_open(&w, out);
	json_out_object(&w, "message");
	json_out_str(&w, "message_id", id);
	write_given(&w, row, m);
	json_out_str(&w, "correlation_id", correlation);
	write_lease(p, &w, row, slice_eq(id, correlation) ? 0 : LOCKD_CORRELATED);
	json_out_close(&w);
	json_out_close(&w);
	buf_putc(out, '\n');
}

/* Leave out a value that is invalid in a header: stored messages may be older than this rule. */
static struct slice
type_of(const struct message *m)
{
	for (size_t i = 0; i < m->type.n; i++)
		if (m->type.p[i] < ' ' || m->type.p[i] > '~')
			return SLICE(default_type);
	return m->type.n ? m->type : SLICE(default_type);
}

static void
write_name(struct buf *out, const char *name, int64_t number, const char *suffix)
{
	buf_puts(out, "Content-Disposition: form-data; name=\"");
	buf_puts(out, name);
	buf_putc(out, '"');
	if (number >= 0)
		buf_printf(out, "; filename=\"%s-%" PRId64 "%s\"", name, number, suffix);
	buf_puts(out, "\r\n\r\n");
}

void
lockd_parts_write(const struct lockd_parts *p, struct buf *out, bool first, int64_t number,
		  const struct op_row *row, const struct message *m)
{
	const struct slice type = type_of(m);

	buf_puts(out, first ? "--" : "\r\n--");
	buf_puts(out, p->boundary);
	buf_puts(out, "\r\nContent-Type: application/json\r\n");
	write_name(out, "meta", number, ".json");
	write_meta(p, out, row, m);
	buf_puts(out, "\r\n--");
	buf_puts(out, p->boundary);
	buf_puts(out, "\r\nContent-Type: ");
	buf_put(out, type.p, type.n);
	buf_printf(out, "\r\nContent-Length: %" PRIu64 "\r\n", m->payload_size);
	write_name(out, "payload", number, "");
	buf_put(out, m->payload.p, m->payload.n);
}

void
lockd_parts_end(const struct lockd_parts *p, struct buf *out)
{
	buf_puts(out, "\r\n--");
	buf_puts(out, p->boundary);
	buf_puts(out, "--\r\n");
}
