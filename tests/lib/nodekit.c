#include "nodekit.h"

#include "server/node_private.h"
#include "test.h"

#include "engine/log/logengine.h"
#include "engine/memory/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The one that there is: an engine's open has no argument for it. */
static struct nodekit *current;

/* In place of the kernel's: what is to be repeated can be. */
ssize_t
getrandom(void *out, size_t n, unsigned flags)
{
	static uint64_t before;
	char *p = out;

	(void)flags;
	for (size_t i = 0; i < n; i++)
		p[i] = (char)test_random(current ? &current->random : &before);
	return (ssize_t)n;
}

static int
open_log(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	 struct slu_err *err)
{
	const struct logengine_conf more = {
		.clock = &current->clock.clock,
		.segment_size = 256 << 10,
		.no_helper = true,
		.secret = { 1, 2 },
	};

	return logengine_open(out, conf, &more, found, err);
}

static void
log_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	const struct nodekit *k = arg;

	(void)level; /* the line has it */
	if (k->logged)
		k->logged(line, n);
}

/* --- open and close ------------------------------------------------------------- */

static void
load_conf(struct nodekit *k)
{
	char listen[128];
	const char *const argv[] = { "sluiced", "--listen", listen, "--data", "log" };
	struct conf_faults faults = { 0 };

	(void)snprintf(listen, sizeof listen, "unix:%s", k->path);
	if (conf_load(&k->conf, engine_rows, COUNT(argv), (char **)argv, &faults))
		test_fail(__FILE__, __LINE__, "%s", faults.items[0]);
	faults_release(&faults);
}

void
nodekit_init(struct nodekit *k, enum nodekit_engine kind)
{
	*k = (struct nodekit){ .kind = kind, .random = 1 };
	current = k;
	(void)signal(SIGPIPE, SIG_IGN); /* as on a server's threads */
	k->engine = kind == NODEKIT_LOG ? engine_log : engine_memory;
	if (kind == NODEKIT_LOG)
		k->engine.open = open_log;
	fakeclock_init(&k->clock, SLU_HOUR, 1800000000 * SLU_SEC);
	k->disk = malloc(sizeof *k->disk);
	CHECK(k->disk);
	simdisk_init(k->disk);
	(void)snprintf(k->folder, sizeof k->folder, "/tmp/sluice-kit-XXXXXX");
	CHECK(mkdtemp(k->folder));
	(void)snprintf(k->path, sizeof k->path, "%s/socket", k->folder);
	load_conf(k);
	k->log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_JSON, log_line, k);
	CHECK(k->log);
}

void
nodekit_release(struct nodekit *k)
{
	CHECK(!k->node);
	slu_log_free(k->log);
	conf_release(&k->conf);
	(void)rmdir(k->folder); /* the socket is gone with its server */
	simdisk_release(k->disk);
	free(k->disk);
	fakeclock_release(&k->clock);
	current = NULL;
}

static const struct node_hand *
hand_of(struct nodekit *k)
{
	static struct node_hand hand;

	hand = (struct node_hand){ &k->clock.clock, &k->engine, &k->disk->disk, k->dialects, k->protocol };
	return &hand;
}

int
nodekit_start(struct nodekit *k)
{
	static char name[] = "sluiced";
	static char *no_words[] = { name };
	int rc;

	k->err = (struct slu_err){ 0 };
	rc = reload_open(&k->reload, &k->conf, 1, no_words, NULL, k->log, &k->err);
	if (!rc)
		rc = node_open(&k->node, &k->conf, k->reload, k->log, hand_of(k), &k->err);
	if (!rc)
		return 0;
	node_close(k->node);
	k->node = NULL;
	reload_close(k->reload);
	k->reload = NULL;
	return rc;
}

static int
end_broker(struct nodekit *k)
{
	int rc = broker_health(k->node->broker, 0, &k->err);
	const int closed = broker_close(k->node->broker);

	k->node->broker = NULL;
	return rc ? rc : closed;
}

int
nodekit_stop(struct nodekit *k)
{
	int rc;

	nodekit_settle(k);
	rc = end_broker(k);
	node_close(k->node);
	k->node = NULL;
	reload_close(k->reload);
	k->reload = NULL;
	return rc;
}

int
nodekit_empty(struct nodekit *k)
{
	const struct broker_shard_conf shard = {
		.engine = &k->engine,
		.storage = { .log = k->log },
	};
	const struct broker_conf conf = {
		.shards = &shard,
		.n_shards = 1,
		.clock = &k->clock.clock,
		.by_hand = true,
	};
	const int rc = end_broker(k);

	k->random = 1;
	CHECK_EQ(0, broker_open(&k->node->broker, &conf, &k->err), k->err.text);
	k->node->api.broker = k->node->broker;
	return rc;
}

struct engine *
nodekit_engine(struct nodekit *k)
{
	const struct slice none = { 0 };

	return broker_engine_of(k->node->broker, NULL, none, none);
}

struct ledger *
nodekit_ledger(struct nodekit *k)
{
	struct engine *const e = nodekit_engine(k);

	return k->kind == NODEKIT_LOG ? logengine_ledger(e) : memory_ledger(e);
}

struct locks *
nodekit_locks(struct nodekit *k)
{
	struct engine *const e = nodekit_engine(k);

	return k->kind == NODEKIT_LOG ? logengine_locks(e) : memory_locks(e);
}

/* --- time passes ---------------------------------------------------------------- */

/* Not from mem_alloc, which may be set to fail: only the server uses it. */
static void
keep(struct buf *b, const char *p, size_t n)
{
	if (b->size <= b->n + n) {
		b->size = 2 * (b->n + n) + 1;
		b->p = realloc(b->p, b->size);
		CHECK(b->p);
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

/* True: something came. */
static bool
caller_read(struct kit_caller *w)
{
	char bytes[16384];
	bool any = false;

	while (!w->ended) {
		const ssize_t n = recv(w->fd, bytes, sizeof bytes, MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			break;
		any = true;
		if (n <= 0)
			w->ended = true;
		else
			keep(&w->got, bytes, (size_t)n);
	}
	return any;
}

static bool
round_once(struct nodekit *k)
{
	bool more = node_round(k->node);

	EACH(i, k->callers)
		if (k->callers[i])
			more |= caller_read(k->callers[i]);
	return more;
}

void
nodekit_settle(struct nodekit *k)
{
	for (int quiet = 0; quiet < LOOP_QUIET;)
		quiet = round_once(k) ? 0 : quiet + 1;
}

void
nodekit_pass(struct nodekit *k, slu_time by)
{
	fakeclock_advance(&k->clock, by);
	nodekit_settle(k);
}

/* --- clients -------------------------------------------------------------------- */

void
caller_open(struct kit_caller *w, struct nodekit *k)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	*w = (struct kit_caller){ .kit = k, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	buf_init(&w->got, NODEKIT_GOT);
	memcpy(to.sun_path, k->path, strlen(k->path));
	CHECK(w->fd >= 0);
	CHECK_EQ(0, connect(w->fd, (struct sockaddr *)&to, sizeof to));
	EACH(i, k->callers)
		if (!k->callers[i]) {
			k->callers[i] = w;
			return;
		}
	test_fail(__FILE__, __LINE__, "more than %d connections", NODEKIT_CALLERS);
}

void
caller_send(struct kit_caller *w, struct slice bytes)
{
	while (bytes.n > 0 && !w->ended) {
		const ssize_t n = send(w->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return; /* it has closed; what it said is read later */
		if (n < 0)
			(void)round_once(w->kit);
		else
			bytes = (struct slice){ bytes.p + n, bytes.n - (size_t)n };
	}
}

void
caller_end(struct kit_caller *w)
{
	(void)shutdown(w->fd, SHUT_WR); /* or the server has closed it */
}

void
caller_close(struct kit_caller *w)
{
	if (w->fd < 0)
		return;
	EACH(i, w->kit->callers)
		if (w->kit->callers[i] == w)
			w->kit->callers[i] = NULL;
	close(w->fd);
	w->fd = -1;
}

void
caller_release(struct kit_caller *w)
{
	caller_close(w);
	buf_release(&w->got);
}
