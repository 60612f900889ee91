#include "server/webhooks.h"

#include "api/codeq/webhook.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEND_TIME  (15 * SLU_SEC)
#define LEASE_TIME (20 * SLU_SEC)
#define FIRST_WAIT (2 * SLU_SEC)
#define LONG_WAIT  (60 * SLU_SEC)
#define CALL_TIME  (60 * SLU_SEC) /* a call of a subscriber is of no use after that */
#define IDLE_LOOK  (30 * SLU_SEC) /* of the first thread: webhooks of another server that is gone */
#define BUSY_LOOK  (200 * SLU_MS) /* while webhooks may come back */
#define BUSY_TIME  (70 * SLU_SEC) /* since the last one: longer than the longest wait */

/* An address, or a network of addresses, of IPv4 (as ::ffff:a.b.c.d) or IPv6. */
struct network {
	uint8_t bytes[16];
	unsigned bits;
};

struct sender {
	struct webhooks *webhooks;
	pthread_t thread;
	bool first; /* looks by itself now and then */
};

struct webhooks {
	struct node *node;
	struct network *allowed;
	unsigned n_allowed;
	struct sender senders[WEBHOOKS_THREADS];
	unsigned n_senders;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;
	_Atomic bool stopping; /* a request on its way reads it without mtx */
	uint64_t kicks;
	slu_time busy_until; /* on the monotonic clock */
};

/* --- networks: WEBHOOKS-2 ------------------------------------------------------ */

/* a.b.c.d, a.b.c.d/n, or the same of IPv6. */
static bool
parse_network(const char *text, struct network *out)
{
	const char *const slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN];
	const size_t n = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long most = 128;
	char *end;

	if (n >= sizeof address)
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	memset(out, 0, sizeof *out);
	if (inet_pton(AF_INET, address, out->bytes + 12) == 1) {
		memset(out->bytes + 10, 0xff, 2);
		most = 32;
	} else if (inet_pton(AF_INET6, address, out->bytes) != 1) {
		return false;
	}
	out->bits = 128;
	if (!slash)
		return true;
	out->bits = (unsigned)(128 - most + strtoul(slash + 1, &end, 10));
	return slash[1] >= '0' && slash[1] <= '9' && !*end && out->bits <= 128;
}

static bool
is_in(const uint8_t address[16], const struct network *w)
{
	const unsigned whole = w->bits / 8, rest = w->bits % 8;

	if (memcmp(address, w->bytes, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ w->bytes[whole]) >> (8 - rest) == 0;
}

static bool
is_inside(const uint8_t address[16])
{
	static const char *const networks[] = {
		"0.0.0.0/8",
		"10.0.0.0/8",
		"100.64.0.0/10",
		"127.0.0.0/8",
		"169.254.0.0/16",
		"172.16.0.0/12",
		"192.0.0.0/24",
		"192.168.0.0/16",
		"198.18.0.0/15",
		"224.0.0.0/3",
		"::/127",
		"64:ff9b::/96",
		"fc00::/7",
		"fe80::/10",
		"ff00::/8",
	};
	struct network w;

	for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
		if (parse_network(networks[i], &w) && is_in(address, &w))
			return true;
	return false;
}

static bool
may_connect(const struct webhooks *w, const struct sockaddr *to)
{
	uint8_t address[16] = { [10] = 0xff, [11] = 0xff };

	if (to->sa_family == AF_INET)
		memcpy(address + 12, &((const struct sockaddr_in *)(const void *)to)->sin_addr, 4);
	else if (to->sa_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr, 16);
	else
		return false;
	for (unsigned i = 0; i < w->n_allowed; i++)
		if (is_in(address, &w->allowed[i]))
			return true;
	return !is_inside(address);
}

int
webhooks_check(const struct conf *conf, struct slu_err *err)
{
	struct network w;

	for (unsigned i = 0; i < conf->codeq_webhook_allow.n; i++)
		if (!parse_network(conf->codeq_webhook_allow.items[i], &w))
			return slu_fail(err, SLU_EINVAL, "codeq.webhook_allow: invalid network: %.60s; expected ADDRESS or ADDRESS/BITS",
					conf->codeq_webhook_allow.items[i]);
	return 0;
}

/* --- a request ---------------------------------------------------------------- */

static curl_socket_t
open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	(void)purpose;
	if (!may_connect(arg, &to->addr))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static size_t
drop_body(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	(void)arg;
	return size * n;
}

/* A server that stops waits for no receiver. */
static int
goes_on(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	struct webhooks *const w = arg;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up_now;
	return atomic_load(&w->stopping);
}

/* WEBHOOKS-3 */
static struct curl_slist *
sign(struct curl_slist *fields, const struct webhooks *w, struct slice body)
{
	const char *const secret = w->node->conf->codeq_webhook_secret;
	const int64_t now = clock_wall(&clock_system) / SLU_SEC;
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	char head[32], field[160];
	const int n_head = snprintf(head, sizeof head, "%" PRId64 ".", now);
	char *const text = mem_alloc((size_t)n_head + body.n);
	int at;

	if (!secret || !text) {
		mem_free(text);
		return fields;
	}
	memcpy(text, head, (size_t)n_head);
	memcpy(text + n_head, body.p, body.n);
	(void)HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)text, (size_t)n_head + body.n, sum, &n); /* n 0: failed */
	mem_free(text);
	(void)snprintf(field, sizeof field, "X-CodeQ-Timestamp: %" PRId64, now); /* fits */
	fields = curl_slist_append(fields, field);
	at = snprintf(field, sizeof field, "X-CodeQ-Signature: ");
	for (unsigned i = 0; i < n; i++)
		at += snprintf(field + at, sizeof field - (size_t)at, "%02x", sum[i]);
	return curl_slist_append(fields, field);
}

static struct curl_slist *
add_trace(struct curl_slist *fields, struct slice trace)
{
	const size_t n = MESSAGE_TRACE_PARENT;
	char field[MESSAGE_TRACE_MAX + 16];

	if (trace.n < n)
		return fields;
	(void)snprintf(field, sizeof field, "traceparent: %.*s", (int)n, trace.p); /* fits */
	fields = curl_slist_append(fields, field);
	if (trace.n == n)
		return fields;
	(void)snprintf(field, sizeof field, "tracestate: %.*s", (int)(trace.n - n), trace.p + n); /* fits */
	return curl_slist_append(fields, field);
}

/* Returns 0 if the receiver has it; otherwise why is a text. *final: another try would fail, too. */
static int
post(struct webhooks *w, const char *url, const struct message *m, bool *final, char why[static CURL_ERROR_SIZE])
{
	CURL *const c = curl_easy_init();
	struct curl_slist *fields = curl_slist_append(NULL, "Content-Type: application/json");
	long status = 0;
	CURLcode rc;

	fields = add_trace(sign(fields, w, m->payload), m->trace);
	why[0] = '\0';
	if (!c) {
		curl_slist_free_all(fields);
		return SLU_ENOMEM;
	}
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(SEND_TIME / SLU_MS));
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, fields);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, m->payload.p);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->payload.n);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop_body);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, w);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, goes_on);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, w);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sluice");
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
	rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	curl_slist_free_all(fields);
	*final = rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL;
	if (!rc && status >= 200 && status < 300)
		return 0;
	if (!rc)
		(void)snprintf(why, CURL_ERROR_SIZE, "status %ld", status); /* fits */
	else if (!*why)
		(void)snprintf(why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(rc)); /* fits */
	return SLU_EDOWN;
}

/* --- a webhook ---------------------------------------------------------------- */

struct webhook_call {
	struct webhooks *webhooks;
	struct op op;
	struct op_row row;
	struct op_item item;
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	bool done; /* under mtx */
};

static void
on_done(struct op *op)
{
	struct webhook_call *const one = op->owner;

	pthread_mutex_lock(&one->mtx);
	one->done = true;
	pthread_cond_signal(&one->ended);
	pthread_mutex_unlock(&one->mtx);
}

static int
run(struct webhook_call *one)
{
	int rc;

	one->done = false;
	rc = broker_post(one->webhooks->node->broker, &one->op);
	if (rc)
		return rc;
	pthread_mutex_lock(&one->mtx);
	while (!one->done)
		pthread_cond_wait(&one->ended, &one->mtx);
	pthread_mutex_unlock(&one->mtx);
	return one->op.rc;
}

static void
begin(struct webhook_call *one, enum op_verb verb)
{
	op_init(&one->op, verb, SLICE(WEBHOOK_SPACE), SLICE(WEBHOOK_QUEUE), on_done, one);
}

/* A nack without a delay defers: the server stops. */
static void
settle(struct webhook_call *one, enum op_verb verb, slu_time delay)
{
	begin(one, verb);
	one->item = (struct op_item){
		.id = one->row.id,
		.token = one->row.token,
		.time = delay,
		.defer = verb == OP_NACK && delay == 0,
	};
	one->op.items = &one->item;
	one->op.n_items = 1;
	(void)run(one); /* if it fails, the lease ends, and the webhook is sent again: WEBHOOKS-4 */
}

/* 2 s, 4 s, ... at most 60 s. */
static slu_time
delay_after(unsigned failures)
{
	const slu_time delay = FIRST_WAIT << (failures < 8 ? failures : 8);

	return delay < LONG_WAIT ? delay : LONG_WAIT;
}

/* WEBHOOKS-5 */
static bool
is_stale(const struct op_row *row, const struct message *m)
{
	const slu_time ready = m->due > m->accepted ? m->due : m->accepted;

	return m->prio == WEBHOOK_CALL_PRIO && row->claimed - ready > CALL_TIME;
}

static void
send_one(struct webhook_call *one, const struct message *m)
{
	struct webhooks *const w = one->webhooks;
	char why[CURL_ERROR_SIZE], url[CODEQ_WEBHOOK + 1];
	struct codeq_extras x;
	struct arena memory = { 0 };
	bool final = false;
	int rc;

	if (is_stale(&one->row, m)) {
		settle(one, OP_ACK, 0);
		return;
	}
	codeq_extras_read(&memory, m->attributes, &x);
	(void)snprintf(url, sizeof url, "%.*s", (int)x.webhook.n, x.webhook.n ? x.webhook.p : ""); /* create checks it */
	arena_release(&memory);
	rc = post(w, url, m, &final, why);
	if (rc == 0) {
		settle(one, OP_ACK, 0);
		return;
	}
	if (atomic_load(&w->stopping)) {
		settle(one, OP_NACK, 0);
		return;
	}
	final |= one->row.failures + 1u >= one->row.max_attempts;
	if (final)
		log_warn(w->node->log, "webhook given up", F_STR("url", url), F_STR("why", why));
	else
		log_info(w->node->log, "webhook failed", F_STR("url", url), F_STR("why", why));
	settle(one, final ? OP_ACK : OP_NACK, delay_after(one->row.failures));
}

/* Returns false if there was nothing to send. */
static bool
look(struct webhook_call *one)
{
	struct slu_err err = { 0 };
	struct message m;
	char *bytes;
	int rc;

	begin(one, OP_CLAIM);
	one->op.rows = &one->row;
	one->op.max_rows = 1;
	one->op.claim.lease = LEASE_TIME;
	one->op.claim.holder = SLICE("webhooks");
	if (run(one) || one->op.n_rows == 0)
		return false;
	bytes = mem_alloc(one->row.record.size);
	rc = bytes ? engine_read(one->op.engine, &one->row.record, 0, one->row.record.size, bytes, true, &err) : SLU_ENOMEM;
	if (!rc)
		rc = message_decode((struct slice){ bytes, one->row.record.size }, &m, &err);
	op_unpin(&one->op);
	if (rc == 0)
		send_one(one, &m);
	else
		settle(one, OP_NACK, LONG_WAIT);
	mem_free(bytes);
	return true;
}

/* --- the threads -------------------------------------------------------------- */

/* Waits until a webhook may be there. Returns false at the end. */
static bool
rest(struct webhooks *w, bool first, uint64_t *kicks)
{
	const slu_time now = clock_mono(&clock_system);
	struct timespec until;
	bool go_on;

	pthread_mutex_lock(&w->mtx);
	if (!atomic_load(&w->stopping) && *kicks == w->kicks) {
		const slu_time wait = now < w->busy_until ? BUSY_LOOK : first ? IDLE_LOOK
									      : SLU_HOUR;
		const slu_time end = clock_wall(&clock_system) + wait;

		until = (struct timespec){ end / SLU_SEC, end % SLU_SEC };
		(void)pthread_cond_timedwait(&w->wake, &w->mtx, &until); /* either way it looks */
	}
	*kicks = w->kicks;
	go_on = !atomic_load(&w->stopping);
	pthread_mutex_unlock(&w->mtx);
	return go_on;
}

static void
kick(void *arg)
{
	struct webhooks *const w = arg;

	pthread_mutex_lock(&w->mtx);
	w->kicks++;
	w->busy_until = clock_mono(&clock_system) + BUSY_TIME;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->mtx);
}

/* Webhooks of the time before the start. */
static void
look_at_start(struct webhook_call *one)
{
	struct op_queue seen = { 0 };
	uint64_t n = 0;

	begin(one, OP_STATS);
	one->op.queues = &seen;
	one->op.max_queues = 1;
	if (run(one))
		return;
	for (unsigned i = 0; i < MSG_STATES; i++)
		n += seen.count[i];
	if (n > 0)
		kick(one->webhooks);
}

static void *
thread(void *arg)
{
	const struct sender *const s = arg;
	struct webhooks *const w = s->webhooks;
	struct webhook_call *const one = mem_zalloc(sizeof *one);
	uint64_t kicks = 0;
	bool work = false;

	if (!one)
		return NULL;
	one->webhooks = w;
	pthread_mutex_init(&one->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&one->ended, NULL);
	if (s->first)
		look_at_start(one);
	while (work || rest(w, s->first, &kicks)) {
		work = !atomic_load(&w->stopping) && look(one);
		if (work)
			kick(w); /* others may be there, and this one may come back */
	}
	pthread_cond_destroy(&one->ended);
	pthread_mutex_destroy(&one->mtx);
	mem_free(one);
	return NULL;
}

int
webhooks_start(struct node *n, struct slu_err *err)
{
	const struct conf_list *const list = &n->conf->codeq_webhook_allow;
	struct webhooks *const w = mem_zalloc(sizeof *w);

	if (!w)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	n->webhooks = w;
	w->node = n;
	pthread_mutex_init(&w->mtx, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->allowed = mem_array(list->n + 1, sizeof *w->allowed);
	for (; w->allowed && w->n_allowed < list->n; w->n_allowed++)
		(void)parse_network(list->items[w->n_allowed], &w->allowed[w->n_allowed]); /* webhooks_check */
	if (!w->allowed)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	n->api.webhooks.kick = kick;
	n->api.webhooks.arg = w;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	for (; w->n_senders < WEBHOOKS_THREADS; w->n_senders++) {
		struct sender *const s = &w->senders[w->n_senders];

		s->webhooks = w;
		s->first = w->n_senders == 0;
		if (pthread_create(&s->thread, NULL, thread, s))
			return slu_fail(err, SLU_EDOWN, "cannot start a thread for webhooks");
	}
	return 0;
}

void
webhooks_stop(struct node *n)
{
	struct webhooks *const w = n->webhooks;

	if (!w)
		return;
	pthread_mutex_lock(&w->mtx);
	atomic_store(&w->stopping, true);
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->mtx);
	for (unsigned i = 0; i < w->n_senders; i++)
		pthread_join(w->senders[i].thread, NULL);
	w->n_senders = 0;
}

void
webhooks_free(struct node *n)
{
	struct webhooks *const w = n->webhooks;

	if (!w)
		return;
	webhooks_stop(n);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mtx);
	mem_free(w->allowed);
	mem_free(w);
	n->webhooks = NULL;
}
