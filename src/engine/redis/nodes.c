#include "engine/redis/nodes.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define DOWN_FIRST    (100 * SLU_MS)
#define PROBE_TIMEOUT SLU_SEC /* for one that was down: whoever waits for the lane waits for it */
#define DOWN_MOST     (5 * SLU_SEC)

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

/* ---- Which there are ---- */

/* In the place of one that nobody lists any more, when there are too many. */
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
	struct rnode **more;
	struct rnode *n = unused(s);

	if (n) {
		rwire_release(&n->wire);
		*n = (struct rnode){ 0 };
		return n;
	}
	if (s->n == RNODES_MAX)
		return NULL;
	more = mem_realloc(s->all, (s->n + 1) * sizeof(struct rnode *));
	if (!more)
		return NULL;
	s->all = more;
	n = mem_zalloc(sizeof *n);
	if (n)
		s->all[s->n++] = n;
	return n;
}

/* NULL: no memory, or it is too long or not a host. */
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

/* A server may not know under which name it is reached: then it is that of n, who said so. */
static struct rnode *
node_at(struct rnodes *s, const struct rnode *n, const char *host, size_t host_n, unsigned port)
{
	char address[RNODE_ADDRESS + 16];
	int size;

	if (host_n > 0 && (memchr(host, '/', host_n) || memchr(host, ',', host_n)))
		return NULL; /* a path, or a list: no host */
	if (host_n == 0) {
		host = n->address;
		host_n = (size_t)(strrchr(n->address, ':') - n->address);
	}
	size = snprintf(address, sizeof address, "%.*s:%u", (int)host_n, host, port);
	return node_named(s, address, (size_t)size);
}

/* ---- C2 ---- */

void
rnode_down(struct rnodes *s, struct rnode *n, const struct slu_err *err)
{
	n->down_step = n->down_step ? 2 * n->down_step : DOWN_FIRST;
	n->down_step = n->down_step < DOWN_MOST ? n->down_step : DOWN_MOST;
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

int
rnode_ask(struct rnode *n, const struct slice *words, size_t n_words, redisReply **out,
	  struct slu_err *err)
{
	int rc;

	rwire_begin(&n->wire, n_words);
	for (size_t i = 0; i < n_words; i++)
		rwire_arg(&n->wire, words[i]);
	rc = rwire_send(&n->wire, err);
	return rc ? rc : rwire_answer(&n->wire, out, err);
}

/* Is `name:value` a line of what INFO said? */
static bool
says(const redisReply *info, const char *line)
{
	const char *at = info->str ? strstr(info->str, line) : NULL;

	return at && (at == info->str || at[-1] == '\n') && strchr("\r\n", at[strlen(line)]);
}

void
rnode_setting(struct rnode *n, const char *name, char *out, size_t size)
{
	const struct slice words[] = { SLICE("CONFIG"), SLICE("GET"), slice_of(name) };
	redisReply *reply = NULL;

	*out = '\0';
	if (n->wire.fd >= 0 && rnode_ask(n, words, 3, &reply, NULL) == 0 && reply_fits(reply, "[tt]"))
		(void)snprintf(out, size, "%s", reply->element[1]->str);
	if (reply)
		freeReplyObject(reply);
}

/* What an answer is worth is for the server's settings to say. */
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
 * C4: a server that was killed while it wrote what a script had done may have cut its file
 * inside of that; then the next start but one does half of the script. A rewrite, of which
 * there was none since it started, begins a new file. Who may not ask for it is told nothing.
 */
static void
mend_file(struct rnode *n, const redisReply *info)
{
	redisReply *reply = NULL;

	if (!says(info, "aof_enabled:1") || !says(info, "aof_last_rewrite_time_sec:-1") ||
	    !says(info, "aof_rewrite_in_progress:0"))
		return;
	n->mended = rnode_ask(n, (const struct slice[]){ SLICE("BGREWRITEAOF") }, 1, &reply, NULL) == 0 &&
		    reply->type != REDIS_REPLY_ERROR;
	if (reply)
		freeReplyObject(reply);
}

/* Connect, and learn what it is. Who may not ask takes it for a server of its own. */
static int
meet(struct rnode *n, bool *is_cluster, struct slu_err *err)
{
	redisReply *info = NULL;
	int rc = rwire_open(&n->wire, err);

	n->loaded = false;
	if (!rc)
		rc = rnode_ask(n, (const struct slice[]){ SLICE("INFO") }, 1, &info, err);
	if (!rc && info->type != REDIS_REPLY_ERROR && !reply_fits(info, "t")) {
		rc = slu_fail(err, SLU_EDOWN, "redis %s: malformed reply to INFO", n->address);
		rwire_close(&n->wire);
	}
	*is_cluster = !rc && says(info, "cluster_enabled:1");
	if (!rc && !*is_cluster && says(info, "role:slave")) {
		rc = slu_fail(err, SLU_EDOWN, "redis %s is a replica", n->address);
		rwire_close(&n->wire);
	}
	if (!rc) {
		mend_file(n, info);
		judge(n, info);
	}
	if (info)
		freeReplyObject(info);
	return rc;
}

/* The first address that serves; else what the first of all said. */
static int
meet_any(struct rnodes *s, struct rnode *n, bool *is_cluster, struct slu_err *err)
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

/* CRC-16 of XMODEM, as the specification of Redis Cluster has it. */
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

/* One line: first slot, last slot, { host, port, ... } of the master, replicas. */
static bool
take_range(struct rnodes *s, const struct rnode *from, const redisReply *line,
	   struct rnode **owners)
{
	const redisReply *const who = line->element[2];
	const int64_t last = reply_int(line->element[1]);
	struct rnode *n;

	if (last >= RNODE_SLOTS)
		return false;
	n = node_at(s, from, who->element[0]->str, (size_t)who->element[0]->len,
		    (unsigned)reply_int(who->element[1]));
	for (int64_t i = reply_int(line->element[0]); n && i <= last; i++)
		owners[i] = n;
	return n;
}

/* Whoever is in no table any more needs no connection. */
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
	const struct slice words[] = { SLICE("CLUSTER"), SLICE("SLOTS") };
	redisReply *table = NULL;
	int rc = rnode_ready(s, n, err);

	if (!rc)
		rc = rnode_ask(n, words, 2, &table, err);
	if (!rc)
		rc = take_table(s, n, table, err);
	if (table)
		freeReplyObject(table);
	return rc;
}

/* From any server that is there: whoever was named last, then those to whom there is a
 * connection. */
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
	s->stale = false; /* one that failed just now will be tried again, in its time */
}

/* ---- Opening ---- */

int
rnode_ready(struct rnodes *s, struct rnode *n, struct slu_err *err)
{
	const slu_time timeout = n->wire.conf.timeout;
	bool is_cluster;
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
	rc = s->cluster ? meet(n, &is_cluster, &why) : meet_any(s, n, &is_cluster, &why);
	n->wire.conf.timeout = timeout;
	if (!rc && is_cluster != s->cluster)
		rc = slu_fail(&why, SLU_EDOWN, "redis %s is %s cluster any more: start anew",
			      n->address, s->cluster ? "no" : "not without a");
	if (!rc)
		return 0;
	rnode_down(s, n, &why);
	if (err)
		*err = n->down_why;
	return SLU_EDOWN; /* whatever it was: nobody who calls us can do something about it */
}

/* A server that is lost meanwhile keeps what was known of it. */
static void
judge_again(struct rnode *n)
{
	redisReply *info = NULL;
	char before[RNODE_WEAK];

	memcpy(before, n->weak, sizeof before);
	if (rnode_ask(n, (const struct slice[]){ SLICE("INFO") }, 1, &info, NULL) == 0 &&
	    reply_fits(info, "t"))
		judge(n, info);
	if (info)
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
			(void)rnode_ready(s, n, NULL); /* redis_tell_health has the failure */
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
		return slu_fail(err, SLU_EDOWN, "redis %s: slot %u of the cluster is nobody's",
				s->conf.address, slot);
	rc = rnode_ready(s, *out, err);
	if (!rc || !s->stale)
		return rc;
	refresh(s); /* another may have taken its place */
	if (!s->owners[slot] || s->owners[slot] == *out)
		return rc;
	*out = s->owners[slot];
	return rnode_ready(s, *out, err);
}

/* Every address is one to ask for the table. */
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
	rc = meet_any(s, n, &s->cluster, err);
	if (rc)
		rnode_down(s, n, err); /* for who tries again */
	else
		rnode_up(n);
	if (rc || !s->cluster)
		return rc;
	rc = add_seeds(s, err);
	return rc ? rc : ask_table(s, n, err);
}

/* ---- Errors ---- */

/* "MOVED 3999 127.0.0.1:6381": that server, or NULL. */
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
rnodes_heed(struct rnodes *s, const struct rnode *n, const char *text, struct rnode **ask)
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
