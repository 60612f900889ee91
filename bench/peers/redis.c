#include "peers/redis.h"

int
redis_reply(struct peer_conn *c, struct slice *in, struct slice *out, struct slu_err *err)
{
	const size_t n = resp_whole(*in);

	*out = (struct slice){ in->p, n };
	if (n == 0)
		return 0;
	if (in->p[0] == '-')
		return peer_refused("redis", *out, err);
	slice_skip(in, n);
	c->awaited--;
	return 0;
}
