/*
 * store_file.c - a file store that the nodes share: a folder, and a gate for each node.
 */
#include "torture/store.h"

#include <stdio.h>
#include <stdlib.h>

#define SHARDS            6 /* one for the queue, and some for its lock keys */
#define SHARDS_TEXT(n)    SHARDS_LITERAL(n)
#define SHARDS_LITERAL(n) #n

/* Short times: owners change often. */
static const char *const settings[][2] = {
	{ "SLUICE_STORE_LEASE", "1s" },
	{ "SLUICE_STORE_SETTLE", "1s" },
	{ "SLUICE_STORE_UNSAFE", "true" }, /* a folder in memory is fine: no power is cut */
	{ "SLUICE_SHARDS", SHARDS_TEXT(SHARDS) },
	{ "NO_FAKE_STAT", "1" }, /* libfaketime changes the clock of the node, not of the store */
};

static int
open_file(struct stores *s, struct torture_store *one, struct slu_err *err)
{
	struct slu_err why;

	(void)err;
	for (unsigned i = 0; s->conf.cuts && !s->no_cut[0] && i < s->conf.nodes; i++)
		if (gate_open(&one->gates[i], one->folder, &why))
			(void)snprintf(s->no_cut, sizeof s->no_cut, "%.150s", why.text);
	return 0;
}

static void
close_file(struct torture_store *one)
{
	for (unsigned i = 0; i < PROXY_GATES; i++)
		gate_close(one->gates[i]);
}

static int
tell_file(const struct stores *s, unsigned node)
{
	char url[STORE_PATH + 16];
	int rc;

	(void)snprintf(url, sizeof url, "file://%s", s->all[0].folder);
	rc = setenv("SLUICE_STORE", url, 1);
	for (unsigned i = 0; !rc && i < sizeof settings / sizeof settings[0]; i++)
		rc = setenv(settings[i][0], settings[i][1], 1);
	return !rc && s->all[0].gates[node] ? gate_enter(s->all[0].gates[node]) : rc;
}

static void
cut_file(const struct torture_store *one, unsigned node, enum proxy_cut how)
{
	gate_cut(one->gates[node], how);
}

static void
cut_link(const struct torture_store *one, unsigned from, unsigned to, enum proxy_cut how)
{
	gate_cut_link(one->gates[from], to, how);
}

const struct stores_kind stores_file = {
	.name = "file",
	.by_url = true,
	.max = 1,
	.dir_max = 200,
	.takes_over = true,
	.has_gates = true,
	.shards = SHARDS,
	.open = open_file,
	.close = close_file,
	.tell = tell_file,
	.cut = cut_file,
	.cut_link = cut_link,
};
