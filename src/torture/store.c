#include "torture/store.h"

#include "bench/served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stores_kind *const kinds[] = { &stores_redis, &stores_file, &stores_s3, &stores_azure, &stores_postgres };

enum {
	KINDS = sizeof kinds / sizeof kinds[0]
};

const struct stores_kind *
stores_kind_of_engine(const char *engine)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (!kinds[i]->by_url && strcmp(kinds[i]->name, engine) == 0)
			return kinds[i];
	return NULL;
}

const struct stores_kind *
stores_kind_of_url(const char *url)
{
	const char *const end = strstr(url, "://");

	for (unsigned i = 0; end && i < KINDS; i++)
		if (kinds[i]->by_url && strlen(kinds[i]->name) == (size_t)(end - url) &&
		    strncmp(kinds[i]->name, url, (size_t)(end - url)) == 0)
			return kinds[i];
	return NULL;
}

/* Makes the folder, by the name that the kernel gives it: gates compare names. */
static int
make_folder(const char *dir, char out[static STORE_PATH], struct slu_err *err)
{
	char *const path = realpath(dir, NULL);
	int rc = 0;

	(void)snprintf(out, STORE_PATH, "%.200s/sluice-store-XXXXXX", path ? path : dir);
	if (!mkdtemp(out)) {
		out[0] = '\0';
		rc = slu_fail(err, SLU_EDOWN, "%s: %m; name another folder", dir);
	}
	free(path);
	return rc;
}

static int
open_one(struct stores *s, struct torture_store *one, struct slu_err *err)
{
	int rc;

	if (s->conf.kind->remote)
		return s->conf.kind->open(s, one, err);
	if (strlen(s->conf.dir) > s->conf.kind->dir_max)
		return slu_fail(err, SLU_EDOWN, "%s: path too long for a store; name another folder", s->conf.dir);
	rc = make_folder(s->conf.dir, one->folder, err);
	return rc ? rc : s->conf.kind->open(s, one, err);
}

int
stores_open(struct stores *s, const struct stores_conf *conf, struct slu_err *err)
{
	int rc = 0;

	*s = (struct stores){ .conf = *conf, .version = 1 };
	while (!rc && conf->kind && s->n < conf->n)
		rc = open_one(s, &s->all[s->n++], err);
	return rc;
}

void
stores_close(struct stores *s)
{
	for (struct torture_store *one = s->all; one < s->all + s->n; one++) {
		s->conf.kind->close(one);
		if (one->folder[0])
			served_remove(one->folder);
	}
	*s = (struct stores){ 0 };
}

int
stores_tell(const struct stores *s, unsigned node)
{
	return s->conf.kind ? s->conf.kind->tell(s, node) : 0;
}
