#include "store/web/web.h"

#include "base/mem.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum {
	IDLE_MAX = 64,      /* connections that are kept */
	FIELD_MAX = 6000,   /* bytes of a field; a session token has up to 4096 */
	SLOWEST = 256 << 10 /* bytes a second: the timeout of a call grows with its content */
};

struct web {
	char *ca, *proxy;
	slu_time timeout;
	pthread_mutex_t mtx;
	CURL *idle[IDLE_MAX];
	unsigned n_idle;
};

/* ---- The connections ---- */

static void
init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct web *
web_new(const struct web_conf *conf)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct web *w = mem_zalloc(sizeof *w);

	if (!w)
		return NULL;
	pthread_once(&once, init_curl);
	pthread_mutex_init(&w->mtx, NULL);
	w->timeout = conf->timeout ? conf->timeout : WEB_TIMEOUT;
	w->ca = conf->ca ? mem_strdup(conf->ca) : NULL;
	w->proxy = conf->proxy ? mem_strdup(conf->proxy) : NULL;
	if ((conf->ca && !w->ca) || (conf->proxy && !w->proxy)) {
		web_free(w);
		return NULL;
	}
	return w;
}

void
web_free(struct web *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->n_idle; i++)
		curl_easy_cleanup(w->idle[i]);
	pthread_mutex_destroy(&w->mtx);
	mem_free(w->ca);
	mem_free(w->proxy);
	mem_free(w);
}

static CURL *
take(struct web *w)
{
	CURL *h = NULL;

	pthread_mutex_lock(&w->mtx);
	if (w->n_idle > 0)
		h = w->idle[--w->n_idle];
	pthread_mutex_unlock(&w->mtx);
	return h ? h : curl_easy_init();
}

/* The handle keeps its connection, and forgets the call. */
static void
give_back(struct web *w, CURL *h)
{
	curl_easy_reset(h);
	pthread_mutex_lock(&w->mtx);
	if (w->n_idle < IDLE_MAX) {
		w->idle[w->n_idle++] = h;
		h = NULL;
	}
	pthread_mutex_unlock(&w->mtx);
	if (h)
		curl_easy_cleanup(h);
}

/* ---- A call ---- */

void
web_field(struct web_call *c, const char *fmt, ...)
{
	char line[FIELD_MAX];
	struct curl_slist *longer = NULL;
	va_list ap;

	va_start(ap, fmt);
	const int n = vsnprintf(line, sizeof line, fmt, ap);

	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof line)
		longer = curl_slist_append(c->fields, line);
	if (longer)
		c->fields = longer;
	else
		c->failed = true;
}

/* A new status line: what came before was of an interim answer. */
static size_t
on_head(char *p, size_t size, size_t n, void *user)
{
	struct web_call *const c = user;

	if (n > 5 && memcmp(p, "HTTP/", 5) == 0)
		buf_clear(&c->head);
	buf_put(&c->head, p, size * n);
	return c->head.failed ? 0 : size * n;
}

struct flight {
	struct web_call *call;
	CURL *handle;
	bool sent;
};

/* A request is about to be sent. If a kept connection is lost, libcurl would send the request again on a new one. */
static int
on_ready(void *user, char *to, char *from, int to_port, int from_port)
{
	struct flight *const f = user;
	const bool again = f->sent;

	(void)to;
	(void)from;
	(void)to_port;
	(void)from_port;
	f->sent = true;
	return again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* An `out` that is full stays failed, and the rest is read and dropped: store_get reports it. */
static size_t
on_body(char *p, size_t size, size_t n, void *user)
{
	const struct flight *const f = user;
	long status = 0;

	curl_easy_getinfo(f->handle, CURLINFO_RESPONSE_CODE, &status);
	if (status < 300 && f->call->out)
		buf_put(f->call->out, p, size * n);
	else if (status >= 300)
		buf_put(&f->call->why, p, size * n < WEB_WHY_MAX - f->call->why.n ? size * n : WEB_WHY_MAX - f->call->why.n);
	return size * n;
}

static long
milliseconds(slu_time t)
{
	return (long)(t / SLU_MS);
}

static void
prepare(const struct web *w, struct web_call *c, struct flight *f, char why[static CURL_ERROR_SIZE])
{
	CURL *const h = f->handle;
	const size_t content = c->body.n > c->expected ? c->body.n : c->expected;
	const slu_time timeout = w->timeout + (slu_time)(content / SLOWEST) * SLU_SEC;
	const bool has_body = strcmp(c->method, "PUT") == 0;

	curl_easy_setopt(h, CURLOPT_URL, c->url);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(w->timeout));
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, milliseconds(timeout));
	curl_easy_setopt(h, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, c->fields);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_ready);
	curl_easy_setopt(h, CURLOPT_PREREQDATA, f);
	if (has_body) {
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, c->body.n ? c->body.p : "");
		curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.n);
	}
	if (strcmp(c->method, "HEAD") == 0)
		curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
	else
		curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, c->method);
	if (w->ca)
		curl_easy_setopt(h, CURLOPT_CAINFO, w->ca);
	if (w->proxy)
		curl_easy_setopt(h, CURLOPT_PROXY, w->proxy);
}

static int
fail(CURLcode rc, const char *why, struct slu_err *err)
{
	enum slu_code code = SLU_EDOWN;

	if (rc == CURLE_ABORTED_BY_CALLBACK)
		why = "the connection was lost";
	if (rc == CURLE_OUT_OF_MEMORY)
		code = SLU_ENOMEM;
	else if (rc == CURLE_OPERATION_TIMEDOUT)
		code = SLU_ETIMEOUT;
	return slu_fail(err, code, "%s", why[0] ? why : curl_easy_strerror(rc));
}

int
web_run(struct web *w, struct web_call *c, struct slu_err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	struct flight f = { .call = c };
	long status = 0;
	CURLcode rc;

	buf_init(&c->head, WEB_HEAD_MAX);
	buf_init(&c->why, WEB_WHY_MAX);
	web_field(c, "Content-Type:%s", strcmp(c->method, "PUT") == 0 ? " application/octet-stream" : "");
	web_field(c, "Expect:"); /* a body is sent without asking first */
	f.handle = c->failed ? NULL : take(w);
	if (!f.handle)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	prepare(w, c, &f, why);
	rc = curl_easy_perform(f.handle);
	curl_easy_getinfo(f.handle, CURLINFO_RESPONSE_CODE, &status);
	give_back(w, f.handle);
	c->status = (unsigned)status;
	return rc ? fail(rc, why, err) : 0;
}

struct slice
web_head(const struct web_call *c, const char *name)
{
	const size_t n = strlen(name);
	const char *const end = c->head.n > 0 ? c->head.p + c->head.n : NULL;
	const char *next;

	for (const char *line = c->head.p; line && line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			break;
		if ((size_t)(next - line) > n && line[n] == ':' && strncasecmp(line, name, n) == 0)
			return slice_trim((struct slice){ line + n + 1, (size_t)(next - line) - n - 1 }, " \t\r");
	}
	return (struct slice){ 0 };
}

slu_time
web_date(const struct web_call *c)
{
	const struct slice value = web_head(c, "date");
	char text[64];
	time_t t;

	if (value.n == 0 || value.n >= sizeof text)
		return 0;
	memcpy(text, value.p, value.n);
	text[value.n] = '\0';
	t = curl_getdate(text, NULL);
	return t > 0 ? (slu_time)t * SLU_SEC : 0;
}

void
web_call_release(struct web_call *c)
{
	curl_slist_free_all(c->fields);
	c->fields = NULL;
	buf_release(&c->head);
	buf_release(&c->why);
}
