#include "cli/message/upload.h"

#include "base/clock.h"
#include "base/id.h"
#include "cli/lib/progress.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct source {
	const struct large *from;
	size_t at; /* position in the head */
	uint64_t sent;
	int failed; /* errno of a failed read */
	struct progress progress;
};

static int64_t
read_more(void *arg, void *p, size_t size)
{
	struct source *const s = arg;
	const struct slice head = s->from->head;
	ssize_t n;

	if (s->at < head.n) {
		n = (ssize_t)(head.n - s->at < size ? head.n - s->at : size);
		memcpy(p, head.p + s->at, (size_t)n);
		s->at += (size_t)n;
	} else {
		do
			n = read(s->from->fd, p, size);
		while (n < 0 && errno == EINTR);
		s->failed = n < 0 ? errno : 0;
	}
	if (n > 0)
		progress_at(&s->progress, s->sent += (uint64_t)n);
	return n;
}

/* The size of the input; 0 for a pipe, whose size is not known. */
static uint64_t
size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static slu_time
delay_of(const struct slu_client_put *put)
{
	const slu_time left = put->deliver_at - clock_wall(&clock_system);

	if (!put->deliver_at)
		return put->delay;
	return left > 0 ? left : 0;
}

int
push_large(struct session *s, const char *queue, struct slu_client_put *put,
	   const struct large *from, struct slu_err *err)
{
	struct source source = { .from = from };
	const struct slu_send send = {
		SLU_OPTIONS_INIT(struct slu_send),
		.source = read_more,
		.source_arg = &source,
		.content_type = put->content_type,
		.attributes = put->attributes,
		.correlation_id = put->correlation_id,
		.delay = delay_of(put),
		.ttl = put->ttl,
		.max_attempts = put->max_attempts,
		.priority = put->priority,
		.key = put->key,
		.share = put->share,
		.kind = put->kind,
		.idempotency_key = put->idempotency_key,
		.traceparent = put->traceparent,
		.keep_result = put->keep_result,
		.lease = put->lease,
		.max_runtime = put->max_runtime,
		.deadline = put->deadline,
		.retry = put->retry,
		.unique_key = put->unique_key,
		.unique_until = put->unique_until,
		.unique_for = put->unique_for,
	};
	struct slu_sent sent = { 0 };
	int rc;

	progress_begin(&source.progress, "sending", size_of(from->fd), true);
	rc = slu_client_send(s->client, queue, &send, &sent, NULL, err);
	progress_end(&source.progress);
	if (source.failed) {
		errno = source.failed;
		return slu_fail(err, SLU_EFAILED, "%s: %m", from->name);
	}
	put->duplicate = sent.duplicate;
	return rc ? rc : id_from_uuid(slice_of(sent.id), &put->id, err);
}
