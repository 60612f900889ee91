#include "client/client.h"

#include "base/clock.h"
#include "base/forked.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "net/tls_context.h"

#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- making one ------------------------------------------------------------------- */

static int
add_server(struct slu_client *c, struct slice text, struct slu_err *err)
{
	char name[ADDRESS_TEXT];
	struct address *a = &c->servers[c->n_servers];
	int rc;

	if (c->n_servers == CLIENT_SERVERS_MAX || text.n >= sizeof name)
		return slu_fail(err, SLU_EINVAL, "invalid servers; expected at most %d addresses of at most %d bytes",
				CLIENT_SERVERS_MAX, ADDRESS_TEXT - 1);
	memcpy(name, text.p, text.n);
	name[text.n] = '\0';
	rc = address_parse(a, name, err);
	if (!rc) {
		a->token = c->token;
		c->n_servers++;
	}
	return rc;
}

/* "a, b,c" */
static int
add_servers(struct slu_client *c, const char *list, struct slu_err *err)
{
	int rc = 0;

	while (*list && !rc) {
		const size_t blank = strspn(list, ", ");
		const size_t n = strcspn(list + blank, ", ");

		if (n > 0)
			rc = add_server(c, (struct slice){ list + blank, n }, err);
		list += blank + n;
	}
	if (!rc && c->n_servers == 0)
		return slu_fail(err, SLU_EINVAL, "invalid servers; expected an address");
	return rc;
}

static int
copy_texts(struct slu_client *c, const struct slu_client_config *config, struct slu_err *err)
{
	const bool has_token = config->token && config->token[0];

	c->space = mem_strdup(config->space ? config->space : "default");
	c->token = has_token ? mem_strdup(config->token) : NULL;
	if (!c->space || (has_token && !c->token))
		return slu_fail(err, SLU_ENOMEM, "no memory for a client");
	if (has_token && strpbrk(config->token, "\r\n"))
		return slu_fail(err, SLU_EINVAL, "invalid token: more than one line");
	return 0;
}

static int
open_tls(struct slu_client *c, const struct slu_client_config *config, struct slu_err *err)
{
	const struct tls_client_conf conf = { config->ca_file, config->cert, config->cert_key };
	bool wanted = false;
	int rc = 0;

	for (unsigned i = 0; i < c->n_servers; i++)
		wanted |= c->servers[i].tls;
	if (wanted)
		rc = tls_context_client(&c->tls, &conf, err);
	for (unsigned i = 0; i < c->n_servers; i++)
		c->servers[i].context = c->tls;
	return rc;
}

int
slu_client_new(struct slu_client **out, const struct slu_client_config *given,
	       struct slu_err *err)
{
	NEED(out, err);

	struct slu_client_config room;
	const struct slu_client_config *config = SIZED(slu_client_config, given, &room, err);
	struct slu_client *c;
	int rc;

	*out = NULL;
	if (!config || need_time(config->timeout, "timeout", err))
		return SLU_EINVAL;
	c = mem_zalloc(sizeof *c);
	if (!c)
		return slu_fail(err, SLU_ENOMEM, "no memory for a client");
	pthread_mutex_init(&c->mtx, NULL);
	c->born = forked_now();
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->stop_fd == 0) { /* 0 means no descriptor in a struct patience, and may be stdin */
		c->stop_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
		close(0);
	}
	list_init(&c->idle);
	c->timeout = config->timeout > 0 ? config->timeout : 30 * SLU_SEC;
	c->patience = config->patience == 0 ? 30 * SLU_SEC : config->patience;
	c->absence = c->patience;
	c->idempotent = config->idempotent;
	c->packed = config->packed != 0;
	rc = c->stop_fd < 0 ? slu_fail(err, SLU_EFAILED, "cannot open a descriptor for a client: %m")
			    : copy_texts(c, config, err);
	if (!rc)
		rc = add_servers(c, config->servers ? config->servers : ADDRESS_DEFAULT, err);
	if (!rc)
		rc = open_tls(c, config, err);
	if (rc) {
		slu_client_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void
client_set_absence(struct slu_client *c, slu_time t)
{
	c->absence = t;
}

static void
link_free(struct link *l)
{
	if (l)
		http_release(&l->http);
	mem_free(l);
}

int
client_stopped(struct slu_err *err)
{
	return slu_fail(err, SLU_ECLOSED, "the client is stopped: it begins no new work; "
					  "messages and leases that it has can still be settled");
}

int
slu_client_stop(struct slu_client *c, struct slu_err *err)
{
	NEED(c, err);
	NEED_OURS(c, err);

	atomic_store(&c->stopped, true);
	(void)!write(c->stop_fd, &(uint64_t){ 1 }, sizeof(uint64_t)); /* an eventfd takes it */
	return 0;
}

void
slu_client_free(struct slu_client *c)
{
	if (!c || c->born != forked_now())
		return;
	LIST_EACH_SAFE(n, &c->idle)
		link_free(CONTAINER(n, struct link, node));
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	tls_context_unref(c->tls);
	pthread_mutex_destroy(&c->mtx);
	mem_free(c->space);
	mem_free(c->token);
	mem_free(c);
}

enum {
	HOST_TEXT = 64
};

static void
name_host(char out[static HOST_TEXT])
{
	(void)snprintf(out, HOST_TEXT, "host");
	(void)gethostname(out, HOST_TEXT - 1);
	out[HOST_TEXT - 1] = '\0';
	out[strcspn(out, ".")] = '\0';
}

void
client_process(char out[static CLIENT_OWNER_TEXT])
{
	char host[HOST_TEXT];

	name_host(host);
	(void)snprintf(out, CLIENT_OWNER_TEXT, "%s:%ld", host, (long)getpid());
}

void
client_owner(struct slu_client *c, const char *given, char out[static CLIENT_OWNER_TEXT])
{
	char host[HOST_TEXT];

	if (given) {
		(void)snprintf(out, CLIENT_OWNER_TEXT, "%s", given); /* the server refuses a cut name */
		return;
	}
	name_host(host);
	(void)snprintf(out, CLIENT_OWNER_TEXT, "%s-%ld-%" PRIx64 "-%" PRIu64, host, (long)getpid(),
		       (uint64_t)clock_boot(&clock_system) / SLU_MS,
		       atomic_fetch_add(&c->owners, 1) + 1);
}

int64_t
seconds_up(slu_time t)
{
	return t <= 0 ? 0 : t / SLU_SEC + (t % SLU_SEC > 0);
}

int64_t
seconds_to_wait(slu_time wait)
{
	return wait == SLU_NEVER ? 0 : wait <= 0 ? -1
						 : seconds_up(wait);
}

/* --- connections ------------------------------------------------------------------- */

static struct link *
link_new(struct slu_client *c, unsigned server)
{
	struct link *l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	list_init(&l->node);
	l->server = server;
	http_init(&l->http, &c->servers[server]);
	return l;
}

struct link *
link_begin(struct slu_client *c, unsigned server)
{
	struct link *found = NULL;

	pthread_mutex_lock(&c->mtx);
	LIST_EACH(n, &c->idle) {
		struct link *l = CONTAINER(n, struct link, node);

		if (l->server == server) {
			list_remove(n);
			c->n_idle--;
			found = l;
			break;
		}
	}
	pthread_mutex_unlock(&c->mtx);
	return found ? found : link_new(c, server);
}

void
link_end(struct slu_client *c, struct link *l)
{
	bool kept = false;

	if (!l)
		return;
	if (l->http.wire.fd >= 0 && l->http.whole) {
		pthread_mutex_lock(&c->mtx);
		kept = c->n_idle < CLIENT_IDLE_MAX;
		if (kept) { /* to the front: the link that was used last is the most likely to be open */
			list_append(c->idle.next, &l->node);
			c->n_idle++;
		}
		pthread_mutex_unlock(&c->mtx);
	}
	if (!kept)
		link_free(l);
}
