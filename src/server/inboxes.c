#include "server/inboxes.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "handover/handover.h"
#include "net/listen.h"

#include <sluice/client.h>

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAUSE (5 * SLU_SEC) /* INBOXES-2 */

enum {
	SECRET = 32,
	LABEL_MAX = 200
};

struct server_inbox {
	struct server_inbox *next;
	struct inboxes *all;
	char *url;
	struct handover_conf conf;
	int stop_fd;
	pthread_t thread;
	struct slu_client *client;
	struct slu_answer answer; /* of the last call */
	bool kept;                /* of a reload: still in the settings */

	struct handover_counts counts;
};

struct inboxes {
	struct slu_log *log;
	char address[LISTEN_NAME];
	char secret[2 * SECRET + 1];
	pthread_mutex_t mtx; /* of the list, for metrics */
	struct server_inbox *first;
	struct handover_conf values;
	bool started;
};

/* ---- Settings ---- */

/* Settings are shown to administrators, and flags to all users of the machine. */
static bool
has_password(const char *url)
{
	const char *const host = strstr(url, "://") + 3;
	const char *const at = memchr(host, '@', strcspn(host, "/?"));

	return (at && memchr(host, ':', (size_t)(at - host))) || strstr(url, "password=");
}

static int
check_urls(const struct conf_list *urls, struct slu_err *err)
{
	for (unsigned i = 0; i < urls->n; i++) {
		if (!handover_driver(urls->items[i]))
			return slu_fail(err, SLU_EINVAL, "inboxes: invalid URL: %.100s; expected postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER",
					urls->items[i]);
		if (has_password(urls->items[i]))
			return slu_fail(err, SLU_EINVAL, "inboxes: a URL has a password; expected it in PGPASSWORD or ~/.pgpass");
	}
	return 0;
}

int
inboxes_check(const struct conf *conf, struct slu_err *err)
{
	return check_urls(&conf->inboxes, err);
}

static struct handover_conf
values_of(const struct conf *conf, struct slu_log *log)
{
	return (struct handover_conf){
		.log = log,
		.settle = conf->inbox_settle,
		.poll_interval = conf->inbox_poll_interval,
		.poll_jitter = conf->inbox_poll_jitter,
		.poll_resilient = conf->inbox_poll_resilient,
		.watch = conf->inbox_watch,
	};
}

static bool
is_same(const struct handover_conf *a, const struct handover_conf *b)
{
	return a->settle == b->settle && a->poll_interval == b->poll_interval && a->poll_jitter == b->poll_jitter &&
	       a->poll_resilient == b->poll_resilient && a->watch == b->watch;
}

/* ---- The thread of an inbox ---- */

/* A batch may be sent twice: the server accepts it once. */
static int
call(void *arg, const char *path, struct slice body, struct slice *answer, struct slu_err *err)
{
	struct server_inbox *const in = arg;
	const struct slu_request r = {
		SLU_OPTIONS_INIT(struct slu_request),
		.method = "POST",
		.path = path,
		.body = body.p,
		.size = body.n,
		.repeatable = true,
	};
	const struct slu_call c = { SLU_OPTIONS_INIT(struct slu_call), .cancel_fd = in->stop_fd };
	int rc;

	slu_free(in->answer.body);
	in->answer = (struct slu_answer){ 0 };
	rc = slu_client_call(in->client, &r, &in->answer, &c, err);
	*answer = (struct slice){ in->answer.body, in->answer.size };
	return rc;
}

static int
run_once(struct server_inbox *in, struct slu_err *err)
{
	const struct handover_server server = { .arg = in, .call = call };
	struct handover *h = NULL;
	int rc = handover_open(&h, &in->conf, &server, err);

	if (!rc)
		rc = handover_run(h, in->stop_fd, false, err);
	handover_close(h);
	return rc;
}

/* Returns false if the inbox stops. */
static bool
pause_after(struct server_inbox *in, const struct slu_err *why)
{
	struct pollfd p = { .fd = in->stop_fd, .events = POLLIN };

	log_error(in->all->log, "inbox failed, tried again later", F_STR("from", in->url), F_STR("why", why->text));
	return poll(&p, 1, PAUSE / SLU_MS) == 0;
}

static void *
run(void *arg)
{
	struct server_inbox *const in = arg;
	struct slu_err err = { 0 };

	log_info(in->all->log, "inbox started", F_STR("from", in->url));
	while (run_once(in, &err) && pause_after(in, &err))
		err = (struct slu_err){ 0 };
	log_info(in->all->log, "inbox stopped", F_STR("from", in->url), F_U64("accepted", atomic_load(&in->counts.accepted)));
	return NULL;
}

/* ---- The list ---- */

static void
free_inbox(struct server_inbox *in)
{
	if (in->stop_fd >= 0)
		close(in->stop_fd);
	slu_client_free(in->client);
	slu_free(in->answer.body);
	mem_free(in->url);
	mem_free(in);
}

static int
open_client(struct server_inbox *in, struct slu_err *err)
{
	const struct slu_client_config config = {
		SLU_OPTIONS_INIT(struct slu_client_config),
		.servers = in->all->address,
		.token = in->all->secret,
	};

	return slu_client_new(&in->client, &config, err);
}

static int
make_inbox(struct inboxes *all, const char *url, struct server_inbox **out, struct slu_err *err)
{
	struct server_inbox *const in = mem_zalloc(sizeof *in);
	int rc;

	if (!in)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	in->all = all;
	in->kept = true;
	in->stop_fd = eventfd(0, EFD_CLOEXEC);
	in->url = mem_strdup(url);
	in->conf = all->values;
	in->conf.url = in->url;
	in->conf.counts = &in->counts;
	rc = in->url && in->stop_fd >= 0 ? open_client(in, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc && pthread_create(&in->thread, NULL, run, in))
		rc = slu_fail(err, SLU_EDOWN, "cannot start a thread");
	if (rc)
		free_inbox(in);
	else
		*out = in;
	return rc;
}

static void
add(struct inboxes *all, const char *url)
{
	struct server_inbox *in = NULL;
	struct slu_err err = { 0 };

	if (make_inbox(all, url, &in, &err)) {
		log_error(all->log, "inbox not started", F_STR("from", url), F_STR("why", err.text));
		return;
	}
	pthread_mutex_lock(&all->mtx);
	in->next = all->first;
	all->first = in;
	pthread_mutex_unlock(&all->mtx);
}

/* Takes the inboxes that are not kept off the list. */
static struct server_inbox *
unlink_gone(struct inboxes *all)
{
	struct server_inbox *gone = NULL, **at = &all->first;

	pthread_mutex_lock(&all->mtx);
	while (*at) {
		struct server_inbox *const in = *at;

		if (in->kept) {
			at = &in->next;
			continue;
		}
		*at = in->next;
		in->next = gone;
		gone = in;
	}
	pthread_mutex_unlock(&all->mtx);
	return gone;
}

/* Asks all to stop before it waits for the first one. */
static void
end_gone(struct inboxes *all)
{
	struct server_inbox *const gone = unlink_gone(all);
	struct server_inbox *next;

	for (struct server_inbox *in = gone; in; in = in->next)
		(void)eventfd_write(in->stop_fd, 1); /* cannot fail: it is written once */
	for (struct server_inbox *in = gone; in; in = next) {
		next = in->next;
		pthread_join(in->thread, NULL);
		free_inbox(in);
	}
}

static struct server_inbox *
find(const struct inboxes *all, const char *url)
{
	for (struct server_inbox *in = all->first; in; in = in->next)
		if (strcmp(in->url, url) == 0)
			return in;
	return NULL;
}

/* INBOXES-3 */
static void
apply(struct inboxes *all, const struct conf_list *urls)
{
	for (struct server_inbox *in = all->first; in; in = in->next)
		in->kept = false;
	for (unsigned i = 0; i < urls->n; i++) {
		struct server_inbox *const in = find(all, urls->items[i]);

		if (in)
			in->kept = is_same(&in->conf, &all->values);
	}
	end_gone(all);
	for (unsigned i = 0; i < urls->n; i++)
		if (!find(all, urls->items[i]))
			add(all, urls->items[i]);
}

/* ---- Reload ---- */

static int
prepare(void *arg, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	const struct node *const n = arg;

	(void)old;
	if (next->inboxes.n && !n->inboxes)
		return slu_fail(err, SLU_EINVAL, "inboxes: the server started without one; the first inbox needs a restart");
	return check_urls(&next->inboxes, err);
}

static void
commit(void *arg, const struct conf *now)
{
	const struct node *const n = arg;

	if (!n->inboxes)
		return;
	n->inboxes->values = values_of(now, n->log);
	if (n->inboxes->started)
		apply(n->inboxes, &now->inboxes);
}

/* ---- Open and close ---- */

static int
draw_secret(char out[static 2 * SECRET + 1], struct slu_err *err)
{
	uint8_t bytes[SECRET];
	const int rc = hash_random(bytes, sizeof bytes, err);

	for (unsigned i = 0; !rc && i < SECRET; i++)
		(void)snprintf(out + 2 * (size_t)i, 3, "%02x", bytes[i]);
	return rc;
}

static int
listen_for(struct node *n, unsigned listener, struct slu_err *err)
{
	int rc = draw_secret(n->inboxes->secret, err);

	if (!rc)
		rc = server_listen(n->server, "127.0.0.1:0", 0, err);
	if (rc)
		return rc;
	n->own_listener = listener;
	login_place(&n->login, listener, (struct guard_place){ .local = true, .secret = n->inboxes->secret });
	(void)snprintf(n->inboxes->address, sizeof n->inboxes->address, "%s", server_address(n->server, listener));
	return 0;
}

int
inboxes_open(struct node *n, unsigned listener, struct slu_err *err)
{
	reload_add(n->reload, &(struct reload_part){ "inboxes", prepare, commit, NULL, n });
	if (n->conf->inboxes.n == 0)
		return 0;
	n->inboxes = mem_zalloc(sizeof *n->inboxes);
	if (!n->inboxes)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	pthread_mutex_init(&n->inboxes->mtx, NULL); /* cannot fail with these attributes */
	n->inboxes->log = n->log;
	n->inboxes->values = values_of(n->conf, n->log);
	return listen_for(n, listener, err);
}

void
inboxes_start(struct node *n)
{
	if (!n->inboxes)
		return;
	n->inboxes->started = true;
	apply(n->inboxes, &n->conf->inboxes);
}

void
inboxes_stop(struct node *n)
{
	static const struct conf_list none = { 0 };

	if (n->inboxes)
		apply(n->inboxes, &none);
}

void
inboxes_close(struct node *n)
{
	if (!n->inboxes)
		return;
	inboxes_stop(n);
	pthread_mutex_destroy(&n->inboxes->mtx);
	mem_free(n->inboxes);
	n->inboxes = NULL;
}

/* ---- Metrics ---- */

static const struct {
	const char *name;
	const char *type;
	const char *help;
	size_t offset;
} metrics[] = {
	{ "messages_total", "counter", "messages of an inbox that the server has accepted", offsetof(struct server_inbox, counts.accepted) },
	{ "batches_total", "counter", "batches in which they came", offsetof(struct server_inbox, counts.batches) },
	{ "refused_total", "counter", "messages of an inbox that the server has refused for good", offsetof(struct server_inbox, counts.refused) },
};

/* The URL without its parameters. */
static void
put_label(const struct server_inbox *in, struct buf *out)
{
	buf_puts(out, "{inbox=\"");
	for (const char *p = in->url; *p && *p != '?' && p < in->url + LABEL_MAX; p++) {
		if (*p == '"' || *p == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *p);
	}
	buf_puts(out, "\"}");
}

static void
put_works(const struct server_inbox *in, struct buf *out)
{
	buf_puts(out, "sluice_inbox_up");
	put_label(in, out);
	buf_printf(out, " %d\n", atomic_load(&in->counts.works));
}

void
inboxes_metrics(const struct node *n, struct buf *out)
{
	struct inboxes *const all = n->inboxes;

	if (all)
		pthread_mutex_lock(&all->mtx);
	for (unsigned i = 0; i < COUNT(metrics); i++) {
		buf_printf(out, "# HELP sluice_inbox_%s %s\n# TYPE sluice_inbox_%s %s\n", metrics[i].name, metrics[i].help, metrics[i].name,
			   metrics[i].type);
		for (const struct server_inbox *in = all ? all->first : NULL; in; in = in->next) {
			buf_printf(out, "sluice_inbox_%s", metrics[i].name);
			put_label(in, out);
			buf_printf(out, " %" PRIu64 "\n", atomic_load((const _Atomic uint64_t *)((const char *)in + metrics[i].offset)));
		}
	}
	buf_puts(out, "# HELP sluice_inbox_up 1: the inbox looks for messages; 0: its place is away, or another inbox is at work there\n"
		      "# TYPE sluice_inbox_up gauge\n");
	for (const struct server_inbox *in = all ? all->first : NULL; in; in = in->next)
		put_works(in, out);
	if (all)
		pthread_mutex_unlock(&all->mtx);
}
