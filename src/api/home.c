#include "api/home.h"

#include "api/authorize_call.h"
#include "api/api.h"
#include "api/console/console.h"
#include "auth/guard.h"
#include "http/call.h"

#include <strings.h>

#define STYLE                                                                                  \
	"body{font:16px/1.5 system-ui,sans-serif;margin:4rem auto;max-width:36rem;padding:0 1" \
	"rem;color:#222;background:#fff}code{color:#555}@media(prefers-color-scheme:dark){bod" \
	"y{color:#ddd;background:#1a1a1a}a{color:#8bf}code{color:#aaa}}"

/* The digest of STYLE: tests/integration/admin/test_home.py checks it. */
static const char policy[] =
	"default-src 'none'; style-src 'sha256-903Y3hzu3EQXIUFbUV/0Ups3WbQ4IV94qwToPa9sZdw='; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char about[] = "A queue for work: durable, leased, prioritised, ordered per key.";
static const char foreign_host[] =
	"You called this server by a name that it does not know, so it refuses other calls by that "
	"name. Add the name to the setting <code>auth.hosts</code>.";

static const char html[] = "text/html; charset=utf-8";

static const struct {
	const char *name, *path, *text;
} links[] = {
	{ "health", "/healthz", "the process answers" },
	{ "ready", "/readyz", "every shard takes work" },
	{ "metrics", "/metrics", "for Prometheus" },
	{ "openapi", "/openapi.json", "every call, for programs" },
};

static const char *
state_of(const struct api *api)
{
	if (atomic_load(&api->draining))
		return "stopping";
	return atomic_load_explicit(&api->open, memory_order_acquire) ? "serving" : "starting";
}

/* Does the client ask for HTML by name? Programs send nothing, or any type. */
static bool
wants_html(const struct call *c)
{
	static const char type[] = "text/html";
	const struct slice accept = call_field(c, "accept");
	const size_t n = sizeof type - 1;

	for (size_t i = 0; i + n <= accept.n; i++)
		if (strncasecmp(accept.p + i, type, n) == 0)
			return true;
	return false;
}

/* Is the caller about to be refused for the name that it calls the server by? */
static bool
has_foreign_host(const struct call *c, const struct api *api)
{
	return !guard_is_on(api->guard) && call_field(c, "host").n > 0 && authorize_own_host(c).n == 0;
}

static void
write_page(struct buf *out, const struct api *api, const char *title, const char *text)
{
	buf_printf(out,
		   "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		   "<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>"
		   "<style>" STYLE "</style>\n<h1>%s</h1>\n<p>%s</p>\n"
		   "<p>Version " SLUICE_VERSION ", %s.</p>\n<ul>\n",
		   title, title, text, state_of(api));
	for (size_t i = 0; i < COUNT(links); i++)
		buf_printf(out, "<li><a href=\"%s\">%s</a>: %s</li>\n", links[i].path, links[i].path,
			   links[i].text);
	buf_puts(out, "</ul>\n<p>The command <code>sluice</code> shows queues and messages.</p>\n</html>\n");
}

static void
write_json(struct buf *out, const struct api *api)
{
	struct json_out w;

	json_out_open(&w, out);
	json_out_str(&w, "name", SLICE("sluice"));
	json_out_str(&w, "version", SLICE(SLUICE_VERSION));
	json_out_str(&w, "status", slice_of(state_of(api)));
	if (api->environment && api->environment[0])
		json_out_str(&w, "environment", slice_of(api->environment));
	if (api->trace_url && api->trace_url[0])
		json_out_str(&w, "trace_url", slice_of(api->trace_url));
	for (size_t i = 0; i < COUNT(links); i++)
		json_out_str(&w, links[i].name, slice_of(links[i].path));
	json_out_close(&w);
	api_end_line(out);
}

/* False: no memory for the header fields that make the page safe. */
static bool
add_fields(struct call *c)
{
	return !call_add(c, "Content-Security-Policy", slice_of(policy)) &&
	       !call_add(c, "X-Content-Type-Options", SLICE("nosniff")) &&
	       !call_add(c, "Referrer-Policy", SLICE("no-referrer"));
}

static void
vary(struct call *c)
{
	(void)call_set(c, "Vary", SLICE("Accept"));            /* the answer is fine without, */
	(void)call_set(c, "Cache-Control", SLICE("no-store")); /* and without this */
}

void
home(struct call *c, void *arg)
{
	const struct api *const api = arg;
	const bool page = wants_html(c) && add_fields(c);

	vary(c);
	if (page && atomic_load(&api->console) && !has_foreign_host(c, api)) {
		console_redirect(c, "console/");
		return;
	}
	if (page)
		write_page(&c->x.out, api, "Sluice", has_foreign_host(c, api) ? foreign_host : about);
	else
		write_json(&c->x.out, api);
	call_answer(c, 200, page ? html : api_json, &c->x.out);
}

const char *
home_page(struct call *c, void *arg)
{
	if (!wants_html(c) || !add_fields(c))
		return NULL;
	vary(c);
	write_page(&c->x.out, arg, "Not found", "This server has no such path.");
	return html;
}
