#include "peer/target.h"

#include "peer/wire.h"

bool
target_learn(struct peer_target *t, const struct peer_target *hint)
{
	if (hint->epoch <= t->epoch)
		return false;
	*t = *hint;
	return true;
}

void
target_set(struct peer_target *t, const struct peer_target *seen)
{
	const uint64_t epoch = t->epoch;

	if (seen->port && seen->epoch < epoch)
		return;
	*t = *seen;
	t->epoch = epoch > seen->epoch ? epoch : seen->epoch;
}

void
target_put(const struct peer_target *t, struct buf *out)
{
	if (!t->epoch)
		return;
	wire_put(out, t->epoch);
	if (!t->port)
		return;
	wire_put_text(out, (struct slice){ (const char *)t->life, HELLO_LIFE });
	wire_put(out, t->port);
	wire_put_text(out, slice_of(t->host));
}

bool
target_get(struct slice bytes, struct peer_target *out)
{
	struct wire_reader w = { .rest = bytes };
	struct slice life, host;

	*out = (struct peer_target){ .epoch = wire_get(&w, UINT64_MAX) };
	if (w.failed || !out->epoch || w.rest.n == 0)
		return !w.failed && out->epoch;
	life = wire_get_text(&w, HELLO_LIFE);
	out->port = (unsigned)wire_get(&w, UINT16_MAX);
	host = wire_get_text(&w, TARGET_HOST - 1);
	if (w.failed || w.rest.n > 0 || life.n != HELLO_LIFE || !out->port || host.n == 0 || memchr(host.p, 0, host.n))
		return false;
	memcpy(out->life, life.p, life.n);
	memcpy(out->host, host.p, host.n);
	return true;
}
