#include "engine/redis/nodes.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define DOWN_FIRST    (100 * SLU_MS)
#define DOWN_MOST     (5 * SLU_SEC)
#define REFUSED_MOST  SLU_SEC
#define PROBE_TIMEOUT SLU_SEC /* of a try to reach a server that is down: the lane waits for it */

void
rnodes_init(struct rnodes *s, const struct rwire_conf *conf)
{
	*s = (struct rnodes){ .conf = *conf };
}

void
rnodes_release(struct rnodes *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		rwire_release(&s->all[i]->wire);
		mem_free(s->all[i]);
	}
	mem_free(s->all);
	mem_free(s->owners);
	*s = (struct rnodes){ 0 };
}

/* ---- The list ---- */

/* A server that is in no table any more, whose place can be used when there are too many. */
static struct rnode *
unused(struct rnodes *s)
{
	for (uint32_t i = 0; i < s->n && s->n == RNODES_MAX; i++)
		if (!s->all[i]->listed && s->all[i]->wire.owed == 0)
			return s->all[i];
	return NULL;
}

static struct rnode *
add(struct rnodes *s)
{
	struct rnode *n = unused(s);

	if (n) {
		rwire_release(&n->wire);
		*n = (struct rnode){ 0 };
		return n;
	}
	if (s->n == RNODES_MAX || !mem_resize(&s->all, s->n + 1, sizeof(struct rnode *)))
		return NULL;
	n = mem_zalloc(sizeof *n);
	if (n)
		s->all[s->n++] = n;
	return n;
}

/* Finds or adds a server. Returns NULL if there is no memory or the address is invalid. */
static struct rnode *
node_named(struct rnodes *s, const char *address, size_t size)
{
	struct rwire_conf conf = s->conf;
	struct rnode *n;

	for (uint32_t i = 0; i < s->n; i++)
		if (strlen(s->all[i]->address) == size &&
		    memcmp(s->all[i]->address, address, size) == 0)
			return s->all[i];
	n = size < RNODE_ADDRESS ? add(s) : NULL;
	if (!n)
		return NULL;
	memcpy(n->address, address, size);
	n->address[size] = '\0';
	conf.address = n->address;
	rwire_init(&n->wire, &conf);
	return n;
}

/* A server may not know its own host name (host_n 0): then it is the host of n, which sent the
 * address. */
static struct rnode *
node_at(struct rnodes *s, const struct rnode *n, const char *host, size_t host_n, unsigned port)
{
	char address[RNODE_ADDRESS + 16];
	int size;

	if (host_n > 0 && (memchr(host, '/', host_n) || memchr(host, ',', host_n)))
		return NULL; /* a path or a list, not a host */
	if (host_n == 0) {
		host = n->address;
		host_n = (size_t)(strrchr(n->address, ':') - n->address);
	}
	size = snprintf(address, sizeof address, "%.*s:%u", (int)host_n, host, port);
	return node_named(s, address, (size_t)size);
}

/* ---- REDISNODES-2 ---- */

void
rnode_down(struct rnodes *s, struct rnode *n, const struct slu_err *err)
{
	const slu_time most = n->refuses ? REFUSED_MOST : DOWN_MOST;

	n->down_step = n->down_step ? 2 * n->down_step : DOWN_FIRST;
	n->down_step = n->down_step < most ? n->down_step : most;
	n->down_until = s->now + n->down_step;
	n->down_why = *err;
	n->down_why.code = SLU_EDOWN;
	n->refuses = false;
	s->stale = s->cluster;
	rwire_close(&n->wire);
}

void
rnode_up(struct rnode *n)
{
	n->down_until = n->down_step = 0;
}

slu_time
rnodes_up_at(const struct rnodes *s, unsigned slot)
{
	const struct rnode *n = s->cluster ? s->owners[slot] : s->n ? s->all[0]
								    : NULL;

	return n ? n->down_until : 0;
}

const struct rnode *
rnodes_who_is_down(const struct rnodes *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->all[i]->down_until && (s->all[i]->listed || !s->cluster))
			return s->all[i];
	return NULL;
}

/* ---- Talking ---- */

/* Whether the answer of INFO has the line `name:value`. */
static bool
says(const redisReply *info, const char *line)
{
	const char *at = info->str ? strstr(info->str, line) : NULL;

	return at && (at == info->str || at[-1] == '\n') && strchr("\r\n", at[strlen(line)]);
}

void
rnode_setting(struct rnode *n, const char *name, char *out, size_t size)
{
	const struct rwords words = WORDS(SLICE("CONFIG"), SLICE("GET"), slice_of(name));
	redisReply *reply = NULL;

	*out = '\0';
	if (n->wire.fd >= 0 && rwire_ask(&n->wire, words, &reply, NULL) == 0 && reply_fits(reply, "[tt]"))
		(void)snprintf(out, size, "%s", reply->element[1]->str);
	freeReplyObject(reply);
}

/* Sets n->weak: by the server's settings, whether an answered write is on disk. */
static void
judge(struct rnode *n, const redisReply *info)
{
	char file[16], sync[16];

	rnode_setting(n, "appendonly", file, sizeof file);
	rnode_setting(n, "appendfsync", sync, sizeof sync);
	*n->weak = '\0';
	if (strcmp(file, "yes") != 0 || strcmp(sync, "always") != 0)
		(void)snprintf(n->weak, sizeof n->weak,
			       "appendonly is %s and appendfsync %s; set yes and always",
			       *file ? file : "not told", *sync ? sync : "not told");
	else if (!says(info, "maxmemory:0") && !says(info, "maxmemory_policy:noeviction"))
		(void)snprintf(n->weak, sizeof n->weak, "maxmemory-policy is not noeviction");
	else if (!says(info, "connected_slaves:0"))
		(void)snprintf(n->weak, sizeof n->weak,
			       "it has replicas, which may take its place and lack the last writes");
	n->met = true;
}

/*
 * REDISNODES-4: a server that was killed while it wrote the effects of a script may have cut
 * its file in the middle of them. Then the start after the next one applies half of the
 * script. A rewrite begins a new file. A missing permission to rewrite is not an error.
 */
static void
mend_file(struct rnode *n, const redisReply *info)
{
	redisReply *reply;

	if (!says(info, "aof_enabled:1") || !says(info, "aof_last_rewrite_time_sec:-1") ||
	    !says(info, "aof_rewrite_in_progress:0"))
		return;
	n->mended = rwire_ask(&n->wire, WORDS(SLICE("BGREWRITEAOF")), &reply, NULL) == 0 &&
		    reply->type != REDIS_REPLY_ERROR;
	freeReplyObject(reply);
}

/* REDISNODES-4: a server that loads its files refuses to rewrite them, and a moment later it
 * serves: it must not get a call on this connection. */
static int
check_info(struct rnode *n, const redisReply *info, struct slu_err *err)
{
	if (info->type != REDIS_REPLY_ERROR && !reply_fits(info, "t"))
		return slu_fail(err, SLU_EDOWN, "redis %s: malformed reply to INFO", n->address);
	n->refuses = says(info, "loading:1");
	if (n->refuses)
		return slu_fail(err, SLU_EDOWN, "redis %s is loading its files", n->address);
	if (!says(info, "cluster_enabled:1") && says(info, "role:slave"))
		return slu_fail(err, SLU_EDOWN, "redis %s is a replica", n->address);
	return 0;
}

/* Connects and reads INFO. Without the permission for INFO the server counts as a single one. */
static int
meet(struct rnode *n, bool *is_cluster, struct slu_err *err)
{
	redisReply *info = NULL;
	int rc = rwire_open(&n->wire, err);

	n->loaded = false;
	if (!rc)
		rc = rwire_ask(&n->wire, WORDS(SLICE("INFO")), &info, err);
	if (!rc)
		rc = check_info(n, info, err);
	*is_cluster = !rc && says(info, "cluster_enabled:1");
	if (!rc) {
		mend_file(n, info);
		judge(n, info);
	} else {
		rwire_close(&n->wire);
	}
	freeReplyObject(info);
	return rc;
}

/* Connects to the first address that serves. Otherwise returns the error of the first one. */
static int
presence_any(struct rnodes *s, struct rnode *n, bool *is_cluster, struct slu_err *err)
{
	int rc = SLU_EDOWN, first = 0;
	struct slu_err why;

	for (unsigned i = 0; rc && rwire_address(s->conf.address, i, n->address, sizeof n->address); i++) {
		rc = meet(n, is_cluster, &why);
		if (rc && !first) {
			first = rc;
			*err = why;
		}
	}
	return rc ? first : 0;
}

/* ---- The table of a cluster ---- */

/* CRC-16/XMODEM, as in the specification of Redis Cluster. */
static unsigned
crc16(const char *p, size_t n)
{
	unsigned crc = 0;

	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned)(unsigned char)p[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
		crc &= 0xffff;
	}
	return crc;
}

unsigned
rnode_slot(struct slice key)
{
	const char *open = memchr(key.p, '{', key.n);
	const char *close = open ? memchr(open, '}', key.n - (size_t)(open - key.p)) : NULL;

	if (close && close > open + 1)
		return crc16(open + 1, (size_t)(close - open - 1)) % RNODE_SLOTS;
	return crc16(key.p, key.n) % RNODE_SLOTS;
}

/* A range of slots: first slot, last slot, { host, port, ... } of the master, replicas. */
static bool
take_range(struct rnodes *s, const struct rnode *from, const redisReply *range,
	   struct rnode **owners)
{
	const redisReply *const who = range->element[2];
	const int64_t last = reply_int(range->element[1]);
	struct rnode *n;

	if (last >= RNODE_SLOTS)
		return false;
	n = node_at(s, from, who->element[0]->str, (size_t)who->element[0]->len,
		    (unsigned)reply_int(who->element[1]));
	for (int64_t i = reply_int(range->element[0]); n && i <= last; i++)
		owners[i] = n;
	return n;
}

/* Closes the connections of servers that are in no table any more. */
static void
retire(struct rnodes *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->all[i]->listed = false;
	for (unsigned i = 0; i < RNODE_SLOTS; i++)
		if (s->owners[i])
			s->owners[i]->listed = true;
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->all[i]->listed) {
			rwire_close(&s->all[i]->wire);
			rnode_up(s->all[i]);
		}
}

static int
take_table(struct rnodes *s, const struct rnode *from, const redisReply *table,
	   struct slu_err *err)
{
	struct rnode **owners = mem_zalloc(RNODE_SLOTS * sizeof(struct rnode *));
	bool fine = owners && reply_fits(table, "[([uu[Tu(.)](.)])]");

	for (size_t i = 0; fine && i < table->elements; i++)
		fine = take_range(s, from, table->element[i], owners);
	if (!fine) {
		mem_free(owners);
		return slu_fail(err, SLU_EDOWN, "redis %s: CLUSTER SLOTS: %s", from->address,
				table->str ? table->str : "no table of slots");
	}
	mem_free(s->owners);
	s->owners = owners;
	retire(s);
	return 0;
}

static int
ask_table(struct rnodes *s, struct rnode *n, struct slu_err *err)
{
	redisReply *table = NULL;
	int rc = rnode_ready(s, n, err);

	if (!rc)
		rc = rwire_ask(&n->wire, WORDS(SLICE("CLUSTER"), SLICE("SLOTS")), &table, err);
	if (!rc)
		rc = take_table(s, n, table, err);
	freeReplyObject(table);
	return rc;
}

/* Reads the table from any server: first from the one named last, then from connected ones. */
static void
refresh(struct rnodes *s)
{
	int rc = s->knows ? ask_table(s, s->knows, NULL) : SLU_EDOWN;

	s->knows = NULL;
	for (uint32_t i = 0; rc && i < s->n; i++)
		if (s->all[i]->wire.fd >= 0)
			rc = ask_table(s, s->all[i], NULL);
	for (uint32_t i = 0; rc && i < s->n; i++)
		if (s->all[i]->wire.fd < 0)
			rc = ask_table(s, s->all[i], NULL);
	s->stale = false; /* servers that failed are tried again later */
}

/* ---- Opening ---- */

int
rnode_ready(struct rnodes *s, struct rnode *n, struct slu_err *err)
{
	const slu_time timeout = n->wire.conf.timeout;
	bool is_cluster = false;
	struct slu_err why;
	int rc;

	if (n->wire.fd >= 0)
		return 0;
	if (n->down_until > s->now) {
		if (err)
			*err = n->down_why;
		return SLU_EDOWN;
	}
	if (n->down_step && timeout > PROBE_TIMEOUT)
		n->wire.conf.timeout = PROBE_TIMEOUT;
	rc = s->cluster ? meet(n, &is_cluster, &why) : presence_any(s, n, &is_cluster, &why);
	n->wire.conf.timeout = timeout;
	if (!rc && is_cluster != s->cluster)
		rc = slu_fail(&why, SLU_EDOWN, "redis %s is %s a cluster; restart sluiced", n->address,
			      s->cluster ? "no longer" : "now");
	if (!rc)
		return 0;
	rnode_down(s, n, &why);
	if (err)
		*err = n->down_why;
	return SLU_EDOWN; /* a caller treats every failure alike */
}

/* Reads INFO again. If the server is lost meanwhile, n->weak stays. */
static void
judge_again(struct rnode *n)
{
	redisReply *info;
	char before[RNODE_WEAK];

	memcpy(before, n->weak, sizeof before);
	if (rwire_ask(&n->wire, WORDS(SLICE("INFO")), &info, NULL) == 0 && reply_fits(info, "t"))
		judge(n, info);
	freeReplyObject(info);
	if (n->wire.fd < 0)
		memcpy(n->weak, before, sizeof n->weak);
}

void
rnodes_judge(struct rnodes *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct rnode *const n = s->all[i];

		if (s->cluster && !n->listed)
			continue;
		if (n->wire.fd >= 0)
			judge_again(n);
		else
			(void)rnode_ready(s, n, NULL); /* redis_report_health reports a failure */
	}
}

int
rnodes_at(struct rnodes *s, unsigned slot, struct rnode **out, struct slu_err *err)
{
	int rc;

	if (s->stale)
		refresh(s);
	*out = s->cluster ? s->owners[slot] : s->all[0];
	if (!*out)
		return slu_fail(err, SLU_EDOWN, "redis %s: slot %u of the cluster has no server",
				s->conf.address, slot);
	rc = rnode_ready(s, *out, err);
	if (!rc || !s->stale)
		return rc;
	refresh(s); /* another server may have taken over */
	if (!s->owners[slot] || s->owners[slot] == *out)
		return rc;
	*out = s->owners[slot];
	return rnode_ready(s, *out, err);
}

/* Adds every address of the list, to read the table from. */
static int
add_seeds(struct rnodes *s, struct slu_err *err)
{
	char address[RNODE_ADDRESS];

	for (unsigned i = 0; rwire_address(s->conf.address, i, address, sizeof address); i++)
		if (!node_named(s, address, strlen(address)))
			return slu_fail(err, SLU_ENOMEM, "no memory for a connection");
	return 0;
}

int
rnodes_open(struct rnodes *s, struct slu_err *err)
{
	struct rnode *n = s->n ? s->all[0] : node_named(s, "", 0);
	int rc;

	if (!n)
		return slu_fail(err, SLU_ENOMEM, "no memory for a connection");
	rc = presence_any(s, n, &s->cluster, err);
	if (rc)
		rnode_down(s, n, err); /* REDIS-12: a later call may try again */
	else
		rnode_up(n);
	if (rc || !s->cluster)
		return rc;
	rc = add_seeds(s, err);
	return rc ? rc : ask_table(s, n, err);
}

/* ---- Errors ---- */

/* The server in "MOVED 3999 127.0.0.1:6381", or NULL. */
static struct rnode *
named_in(struct rnodes *s, const struct rnode *n, const char *text, unsigned *slot)
{
	const char *space = strchr(text, ' '), *host = space ? strchr(space + 1, ' ') : NULL;
	const char *colon = host ? strrchr(host, ':') : NULL;

	if (!colon || !s->cluster)
		return NULL;
	*slot = (unsigned)strtoul(space + 1, NULL, 10);
	if (*slot >= RNODE_SLOTS)
		return NULL;
	return node_at(s, n, host + 1, (size_t)(colon - host - 1),
		       (unsigned)strtoul(colon + 1, NULL, 10));
}

/* clang-format off */
static const struct {
	const char *word;
	enum rnode_turn turn;
} turns[] = {
	{ "NOSCRIPT ",    RNODE_LOAD },
	{ "MOVED ",       RNODE_AGAIN },
	{ "ASK ",         RNODE_ASK },
	{ "TRYAGAIN ",    RNODE_WAIT },
	{ "OOM ",         RNODE_FULL },
	{ "CLUSTERDOWN ", RNODE_DOWN },
	{ "LOADING ",     RNODE_DOWN },
	{ "MASTERDOWN ",  RNODE_DOWN },
	{ "READONLY ",    RNODE_DOWN },
	{ "MISCONF ",     RNODE_DOWN },
	{ "NOREPLICAS ",  RNODE_DOWN },
	{ "NOAUTH ",      RNODE_DOWN },
	{ "NOPERM ",      RNODE_DOWN },
	{ "BUSY ",        RNODE_DOWN },
};
/* clang-format on */

static enum rnode_turn
turn_of(const char *text)
{
	for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
		if (strncmp(text, turns[i].word, strlen(turns[i].word)) == 0)
			return turns[i].turn;
	return RNODE_FAIL;
}

enum rnode_turn
rnodes_error(struct rnodes *s, const struct rnode *n, const char *text, struct rnode **ask)
{
	const enum rnode_turn turn = turn_of(text);
	struct rnode *to;
	unsigned slot = 0;

	if (turn != RNODE_AGAIN && turn != RNODE_ASK)
		return turn;
	to = named_in(s, n, text, &slot);
	if (!to)
		return RNODE_FAIL;
	if (turn == RNODE_ASK) {
		*ask = to;
		return turn;
	}
	s->owners[slot] = to;
	to->listed = true;
	s->stale = true;
	s->knows = to;
	return turn;
}
