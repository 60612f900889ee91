#include "server/masking.h"

static int
prepare(void *node, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	struct node *const n = node;

	(void)old;
	return mask_new(next->mask.items, next->mask.n, &n->next_mask, err);
}

static void
commit(void *node, const struct conf *now)
{
	struct node *const n = node;

	(void)now;
	masks_set(&n->api.masks, n->next_mask);
	n->next_mask = NULL;
}

static void
abandon(void *node)
{
	struct node *const n = node;

	mask_unref(n->next_mask);
	n->next_mask = NULL;
}

int
masking_open(struct node *n, struct slu_err *err)
{
	const int rc = prepare(n, n->conf, n->conf, err);

	if (!rc)
		commit(n, n->conf);
	reload_add(n->reload, &(struct reload_part){ "mask", prepare, commit, abandon, n });
	return rc;
}

int
masking_check(const struct conf *conf, struct slu_err *err)
{
	struct mask *m;
	const int rc = mask_new(conf->mask.items, conf->mask.n, &m, err);

	if (!rc)
		mask_unref(m);
	return rc;
}
