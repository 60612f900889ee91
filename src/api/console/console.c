#include "api/console/console.h"

#include "api/api.h"
#include "api/dialect.h"
#include "auth/guard.h"
#include "http/call.h"

#include <strings.h>

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct console_file *
find(struct slice name)
{
	for (unsigned i = 0; i < console_n_files; i++)
		if (slice_eq(name, slice_of(console_files[i].name)))
			return &console_files[i];
	return NULL;
}

static bool
has_word(struct slice text, const char *word)
{
	const size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++)
		if (strncasecmp(text.p + i, word, n) == 0)
			return true;
	return false;
}

/* False: no memory for the fields that make the page safe. */
static bool
add_fields(struct call *c, const struct console_file *f)
{
	return !call_add(c, "Content-Security-Policy", slice_of(policy)) &&
	       !call_add(c, "X-Content-Type-Options", SLICE("nosniff")) &&
	       !call_add(c, "Referrer-Policy", SLICE("no-referrer")) &&
	       !call_add(c, "Cross-Origin-Opener-Policy", SLICE("same-origin")) &&
	       !call_add(c, "Cross-Origin-Resource-Policy", SLICE("same-origin")) &&
	       !call_add(c, "Cache-Control", SLICE("no-cache")) &&
	       !call_add(c, "ETag", slice_of(f->etag)) &&
	       !call_add(c, "Vary", SLICE("Accept-Encoding"));
}

static void
send_file(struct call *c, const struct console_file *f)
{
	const bool packed = has_word(call_field(c, "accept-encoding"), "gzip");

	if (!add_fields(c, f) || (packed && call_add(c, "Content-Encoding", SLICE("gzip")))) {
		dialect_refuse(c, SLU_ENOMEM, NULL, -1);
		return;
	}
	if (has_word(call_field(c, "if-none-match"), f->etag)) {
		call_answer(c, 304, NULL, NULL);
		return;
	}
	if (packed)
		buf_put(&c->x.out, f->gzip, f->gzip_size);
	else
		buf_put(&c->x.out, f->plain, f->plain_size);
	call_answer(c, 200, f->type, &c->x.out);
}

static bool
is_on(const void *arg)
{
	const struct api *const api = arg;

	return atomic_load(&api->console);
}

void
console_file(struct call *c, void *arg)
{
	struct slice name = c->path;
	const struct console_file *f;

	slice_skip(&name, strlen("/console/"));
	f = is_on(arg) ? find(name.n ? name : SLICE("index.html")) : NULL;
	if (f)
		send_file(c, f);
	else
		dialect_refuse(c, SLU_ENOTFOUND, "no such file of the console", -1);
}

void
console_redirect(struct call *c, const char *place)
{
	(void)call_add(c, "Location", slice_of(place)); /* relative: a proxy may have added a prefix */
	(void)call_set(c, "Cache-Control", SLICE("no-store"));
	call_answer(c, 302, NULL, NULL);
}

void
console_enter(struct call *c, void *arg)
{
	if (is_on(arg))
		console_redirect(c, "console/");
	else
		dialect_refuse(c, SLU_ENOTFOUND, "no such path", -1);
}

/* --- the caller ----------------------------------------------------------------- */

static void
write_grant(struct json_out *w, const struct grant *g)
{
	static const enum right rights[] = { RIGHT_READ, RIGHT_WRITE, RIGHT_ADMIN, RIGHT_CONSUME };

	json_out_object(w, NULL);
	json_out_str(w, "namespace", g->pattern);
	json_out_array(w, "rights");
	for (size_t i = 0; i < COUNT(rights); i++)
		if (g->rights & rights[i])
			json_out_str(w, NULL, slice_of(right_name(rights[i])));
	json_out_close(w);
	json_out_close(w);
}

void
console_me(struct call *c, void *arg)
{
	const struct api *const api = arg;
	const struct identity *const who = c->x.who;
	const struct grant all = { SLICE("*"), RIGHT_ALL };
	const bool known = who && who != identity_anyone();
	struct json_out w;

	json_out_open(&w, &c->x.out);
	json_out_str(&w, "name", known ? who->name : SLICE(""));
	json_out_bool(&w, "authenticated", guard_is_on(api->guard));
	json_out_array(&w, "grants");
	for (unsigned i = 0; known && i < who->n_grants; i++)
		write_grant(&w, &who->grants[i]);
	if (!known)
		write_grant(&w, &all);
	json_out_close(&w);
	json_out_close(&w);
	api_end_line(&c->x.out);
	(void)call_add(c, "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	call_answer(c, 200, api_json, &c->x.out);
}
