#include "client/delivery.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/need.h"
#include "client/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	PIECE = 64 * 1024,
	SPOOL_MEMORY = 1 << 20,
	DECODE_MAX = 16 << 20
};

/* --- out of its meta --------------------------------------------------------------- */

struct meta {
	struct slu_receipt receipt;
	uint64_t attempts, failures, max_attempts, size;
	int64_t visibility;
	slu_time until;
	struct slice content_type, correlation_id, attributes, kind;
};

static const struct json_field meta_fields[] = {
	RECEIPT_FIELDS(struct meta, receipt.),
	JSON_FIELD(u64, struct meta, attempts),
	JSON_ROW("failure_attempts", json_read_u64, struct meta, failures),
	JSON_FIELD(u64, struct meta, max_attempts),
	JSON_ROW("payload_bytes", json_read_u64, struct meta, size),
	JSON_ROW("visibility_timeout_seconds", json_read_i64, struct meta, visibility),
	JSON_ROW("lease_expires_at_unix", decode_seconds, struct meta, until),
	JSON_ROW("payload_content_type", json_read_text, struct meta, content_type),
	JSON_FIELD(text, struct meta, correlation_id),
	JSON_FIELD(text, struct meta, kind),
	JSON_FIELD(raw, struct meta, attributes),
};

/* Reads {"message":{...}}. room is as long as the text. */
static int
read_meta(struct slice text, char *room, struct meta *m, struct slu_err *err)
{
	struct json_str name;
	struct slu_err why;
	struct json r;

	*m = (struct meta){ 0 };
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n);
	json_object(&r);
	while (json_member(&r, &name))
		if (json_str_is(&name, SLICE("message")))
			json_fields(&r, meta_fields, sizeof meta_fields / sizeof meta_fields[0],
				    JSON_LENIENT, m);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EUNKNOWN, "malformed delivery: %s", why.text);
	if (!m->receipt.id[0] || !m->receipt.lease_id[0])
		return slu_fail(err, SLU_EUNKNOWN, "malformed delivery: missing id or lease");
	return 0;
}

static const char *
keep_text(char **at, struct slice s)
{
	char *const out = *at;

	if (s.n > 0)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	*at = out + s.n + 1;
	return out;
}

static int
take_meta(struct slu_delivery *d, const struct meta *m, const char *owner)
{
	const size_t n = m->content_type.n + m->correlation_id.n + m->attributes.n + m->kind.n + 4;
	char *at = d->texts = mem_alloc(n);

	if (!at)
		return SLU_ENOMEM;
	d->info = (struct slu_delivery_info){
		.receipt = m->receipt,
		.size = m->size,
		.attempts = (unsigned)m->attempts,
		.failures = (unsigned)m->failures,
		.max_attempts = (unsigned)m->max_attempts,
		.visibility = m->visibility * SLU_SEC,
		.until = m->until,
	};
	d->info.content_type = keep_text(&at, m->content_type);
	d->info.correlation_id = keep_text(&at, m->correlation_id);
	d->info.attributes = keep_text(&at, m->attributes);
	d->info.kind = keep_text(&at, m->kind);
	receipt_name_state(&d->info.receipt, owner);
	return 0;
}

int
delivery_new(struct slu_delivery **out, struct slu_client *c, struct slice text,
	     const char *owner, slu_time on_close, struct slu_err *err)
{
	struct slu_delivery *d = mem_zalloc(sizeof *d);
	char *room = mem_alloc(text.n + 1);
	struct meta m;
	int rc = SLU_ENOMEM;

	*out = NULL;
	if (d && room) {
		d->client = c;
		d->on_close = on_close;
		d->taken = clock_mono(&clock_system);
		pthread_mutex_init(&d->mtx, NULL);
		buf_init(&d->memory, SPOOL_MEMORY);
		rc = read_meta(text, room, &m, err);
		if (!rc)
			rc = take_meta(d, &m, owner);
	}
	mem_free(room);
	if (rc == SLU_ENOMEM)
		slu_fail(err, rc, "no memory for a delivery");
	if (rc) {
		delivery_free(d);
		return rc;
	}
	*out = d;
	return 0;
}

/* Returns its own link to the client. */
static void
let_go(struct slu_delivery *d)
{
	if (d->own.link) {
		parts_finish(&d->own);
		link_end(d->client, d->own.link);
		parts_release(&d->own);
	}
	if (d->holder)
		*d->holder = NULL;
	d->holder = NULL;
	d->parts = NULL;
}

void
delivery_free(struct slu_delivery *d)
{
	if (!d)
		return;
	if (d->client) {
		let_go(d);
		pthread_mutex_destroy(&d->mtx);
	}
	if (d->file)
		(void)fclose(d->file);
	buf_release(&d->memory);
	mem_free(d->texts);
	mem_free(d);
}

const struct slu_delivery_info *
slu_delivery_info(const struct slu_delivery *d)
{
	return d ? &d->info : NULL;
}

struct slu_lease *
slu_delivery_state(struct slu_delivery *d)
{
	return d && d->info.receipt.state.id[0] ? &d->info.receipt.state : NULL;
}

/* --- its payload ----------------------------------------------------------------------- */

static int
read_spooled(struct slu_delivery *d, void *p, size_t size, size_t *n, struct slu_err *err)
{
	const size_t left = d->memory.n - d->read;

	if (d->file) {
		*n = fread(p, 1, size, d->file);
		return ferror(d->file) ? slu_fail(err, SLU_EFAILED, "cannot read a spooled payload: %m") : 0;
	}
	*n = left < size ? left : size;
	if (*n > 0)
		memcpy(p, d->memory.p + d->read, *n);
	d->read += *n;
	return 0;
}

int
slu_delivery_read(struct slu_delivery *d, void *p, size_t size, size_t *n, struct slu_err *err)
{
	NEED3(d, p, n, err);

	const struct patience until = {
		.deadline = time_add(clock_mono(&clock_system), d->client->timeout),
		.stop_fd = -1,
	};

	return d->parts ? parts_read(d->parts, &until, p, size, n, err)
			: read_spooled(d, p, size, n, err);
}

/* Spools bytes. A payload that is too large for memory continues in a file. */
static int
spool(struct slu_delivery *d, const char *p, size_t n, struct slu_err *err)
{
	if (!d->file && d->memory.n + n <= SPOOL_MEMORY) {
		buf_put(&d->memory, p, n);
		return d->memory.failed ? slu_fail(err, SLU_ENOMEM, "no memory for a payload") : 0;
	}
	if (!d->file) {
		d->file = tmpfile();
		if (!d->file || fwrite(d->memory.p, 1, d->memory.n, d->file) != d->memory.n)
			return slu_fail(err, SLU_EFAILED, "cannot write a large payload to a file: %m");
		buf_release(&d->memory);
	}
	if (fwrite(p, 1, n, d->file) != n)
		return slu_fail(err, SLU_EFAILED, "cannot write a large payload to a file: %m");
	return 0;
}

int
delivery_spool(struct slu_delivery *d, struct slu_err *err)
{
	char room[PIECE];
	size_t n = 1;
	int rc = 0;

	while (!rc && n > 0) {
		rc = slu_delivery_read(d, room, sizeof room, &n, err);
		if (!rc && n > 0)
			rc = spool(d, room, n, err);
	}
	if (!rc && d->file)
		rewind(d->file);
	if (!rc)
		d->parts = NULL;
	return rc;
}

static int
write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		const ssize_t k = write(fd, p, n);

		if (k < 0 && errno != EINTR)
			return -1;
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

int
slu_delivery_write(struct slu_delivery *d, int fd, struct slu_err *err)
{
	NEED(d, err);

	char room[PIECE];
	size_t n = 1;

	while (n > 0) {
		const int rc = slu_delivery_read(d, room, sizeof room, &n, err);

		if (rc)
			return rc;
		if (write_all(fd, room, n) != 0)
			return slu_fail(err, SLU_EFAILED, "cannot write the payload: %m");
	}
	return 0;
}

int
slu_delivery_save(struct slu_delivery *d, const char *path, struct slu_err *err)
{
	NEED2(d, path, err);

	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", path);
	rc = slu_delivery_write(d, fd, err);
	if (!rc && fsync(fd) != 0)
		rc = slu_fail(err, SLU_EFAILED, "%s: %m", path);
	if (close(fd) != 0 && !rc)
		rc = slu_fail(err, SLU_EFAILED, "%s: %m", path);
	if (rc)
		(void)unlink(path); /* remove an incomplete payload */
	return rc;
}

int
slu_delivery_decode(struct slu_delivery *d, const struct slu_json_field *fields, size_t n,
		    void *out, struct slu_err *err)
{
	NEED3(d, fields, out, err);

	char room[PIECE];
	struct buf text;
	size_t got = 1;
	int rc = 0;

	buf_init(&text, DECODE_MAX);
	while (!rc && got > 0) {
		rc = slu_delivery_read(d, room, sizeof room, &got, err);
		buf_put(&text, room, rc ? 0 : got);
	}
	if (!rc && text.failed)
		rc = slu_fail(err, SLU_ETOOBIG, "payload too large to decode; expected at most %d bytes", DECODE_MAX);
	if (!rc)
		rc = slu_json_decode(buf_str(&text), text.n, fields, n, out, err);
	buf_release(&text);
	return rc;
}

/* --- its end ----------------------------------------------------------------------------- */

static int
twice(struct slu_err *err)
{
	return slu_fail(err, SLU_ECONFLICT, "the delivery is already settled");
}

int
slu_delivery_ack(struct slu_delivery *d, const struct slu_call *call, struct slu_err *err)
{
	NEED(d, err);

	int rc;

	pthread_mutex_lock(&d->mtx);
	rc = d->settled ? twice(err) : slu_client_ack(d->client, &d->info.receipt, call, err);
	d->settled |= !rc;
	pthread_mutex_unlock(&d->mtx);
	return rc;
}

int
slu_delivery_nack(struct slu_delivery *d, const struct slu_nack *nack,
		  const struct slu_call *call, struct slu_err *err)
{
	NEED(d, err);

	int rc;

	pthread_mutex_lock(&d->mtx);
	rc = d->settled ? twice(err) : slu_client_nack(d->client, &d->info.receipt, nack, call, err);
	d->settled |= !rc;
	pthread_mutex_unlock(&d->mtx);
	return rc;
}

int
slu_delivery_extend(struct slu_delivery *d, slu_time by, const struct slu_call *call,
		    struct slu_err *err)
{
	NEED(d, err);

	int rc;

	pthread_mutex_lock(&d->mtx);
	rc = d->settled ? twice(err)
			: receipt_extend(d->client, &d->info.receipt, by, &d->info.until, call, err);
	pthread_mutex_unlock(&d->mtx);
	return rc;
}

void
slu_delivery_close(struct slu_delivery *d)
{
	if (!d)
		return;
	if (!d->settled) /* before the link is closed: the server takes back a message that was not read whole */
		(void)slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .delay = d->on_close }, NULL, NULL);
	delivery_free(d);
}

void
slu_delivery_leave(struct slu_delivery *d)
{
	if (d)
		delivery_free(d);
}
