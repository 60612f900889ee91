/*
 * fuzz_codeq.c - what the codeQ dialect reads is within its bounds. The first byte chooses the reader: t a task, r a
 * result, b a batch, p a topic, s a stored topic, otherwise the attributes of a message.
 */
#include "fuzz.h"

#include "api/codeq/create.h"
#include "api/codeq/result.h"
#include "api/codeq/topic.h"

static void
read_task(struct arena *a, struct slice text)
{
	struct codeq_new n;
	struct slu_err err;

	if (codeq_new_parse(&n, a, text, &err))
		return;
	FUZZ_CHECK(n.command.n > 0 && n.command.n <= NAME_LONGEST && n.payload.n > 0 && n.webhook.n <= CODEQ_WEBHOOK);
	FUZZ_CHECK(n.delay >= 0 && strlen(n.queue) == n.command.n);
	fuzz_touch(n.payload);
	fuzz_touch(n.webhook);
	fuzz_touch(n.idem);
}

static void
read_result(struct arena *a, struct slice text)
{
	static struct codeq_outcome o;
	struct slu_err err;

	if (codeq_outcome_parse(&o, a, text, &err))
		return;
	FUZZ_CHECK(o.n_artifacts <= CODEQ_ARTIFACTS);
	fuzz_touch(o.task);
	fuzz_touch(o.result);
	fuzz_touch(o.error);
	for (unsigned i = 0; i < o.n_artifacts; i++) {
		fuzz_touch(o.artifacts[i].url);
		fuzz_touch(o.artifacts[i].content);
		fuzz_touch(o.artifacts[i].type);
	}
}

static void
count_item(void *arg, struct slice item)
{
	fuzz_touch(item);
	++*(unsigned *)arg;
}

static void
read_batch(struct slice text)
{
	struct slu_err err;
	unsigned n = 0;
	bool bare;

	if (codeq_batch_parse(text, "tasks", &bare, count_item, &n, &err) == 0)
		FUZZ_CHECK(n >= 1);
	FUZZ_CHECK(n <= CODEQ_BATCH);
}

/* A topic that was read is written and read the same. */
static void
read_topic(struct slice text, bool stored)
{
	struct codeq_topic t, again;
	struct slu_err err;
	struct json_out w;
	struct buf b;

	if (codeq_topic_parse(&t, text, stored, &err))
		return;
	buf_init(&b, OWNSTATE_MAX);
	json_out_open(&w, &b);
	codeq_topic_write(&w, &t);
	json_out_close(&w);
	FUZZ_CHECK(codeq_topic_parse(&again, buf_slice(&b), true, &err) == 0);
	FUZZ_CHECK(codeq_topic_is_same(&t, &again) && t.version == again.version);
	buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice rest = { (const char *)data + 1, size ? size - 1 : 0 };
	struct codeq_extras x;
	struct arena a = { 0 };

	switch (size ? data[0] : 0) {
	case 't':
		read_task(&a, rest);
		break;
	case 'r':
		read_result(&a, rest);
		break;
	case 'b':
		read_batch(rest);
		break;
	case 'p':
	case 's':
		read_topic(rest, data[0] == 's');
		break;
	default:
		codeq_extras_read(&a, rest, &x);
		fuzz_touch(x.command);
		fuzz_touch(x.webhook);
	}
	arena_release(&a);
	return 0;
}
