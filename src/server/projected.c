#include "server/projected.h"

#include "core/names.h"
#include "server/shards.h"

static bool
is_observed(const struct engine_ops *engine)
{
	return engine->observed;
}

/* NAMESPACE or NAMESPACE/QUEUE. */
static int
check_queue(const char *text, struct slu_err *err)
{
	struct slice rest = slice_of(text), space;
	const bool named = slice_cut(&rest, '/', &space);
	char name[NAME_TEXT];
	const int rc = name_fold(space, "namespace", name, err);

	return rc || !named ? rc : name_fold(rest, "queue", name, err);
}

/* The value may have a password: errors do not show it. */
static int
check_url(const char *url, struct slu_err *err)
{
	if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid projection.url; expected postgres://HOST/DATABASE");
}

int
projected_check(const struct conf *conf, struct slu_err *err)
{
	const struct engine_ops *const blind = conf->projection_url ? shards_without(conf, is_observed) : NULL;
	struct slu_err why = { 0 };
	int rc = conf->projection_url ? check_url(conf->projection_url, err) : 0;

	if (blind)
		return slu_fail(err, SLU_EINVAL, "projection.url: not available with engine %s; expected log or memory", blind->name);
	for (unsigned i = 0; i < conf->projection_queues.n && !rc; i++) {
		rc = check_queue(conf->projection_queues.items[i], &why);
		if (rc)
			return slu_fail(err, SLU_EINVAL, "projection.queues: %s", why.text);
	}
	if (!rc && conf->projection_queues.n && !conf->projection_url)
		return slu_fail(err, SLU_EINVAL, "projection.queues: expected projection.url");
	return rc;
}

int
projected_open(struct node *n, struct slu_err *err)
{
	const struct conf *const conf = n->conf;
	const struct projection_conf own = {
		.url = conf->projection_url,
		.queues = (const char *const *)conf->projection_queues.items,
		.n_queues = conf->projection_queues.n,
		.after = conf->projection_after,
		.batch = conf->flush_batch,
		.changes = conf->projection_changes,
		.log = n->log,
	};

	if (!conf->projection_url || n->hand)
		return 0;
	return projection_new(&n->projection, &own, err);
}
