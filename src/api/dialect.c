#include "api/dialect.h"

#include "api/admin/admin.h"
#include "api/api.h"
#include "api/handler.h"
#include "api/flat/flat.h"
#include "api/codeq/codeq.h"
#include "api/lockd/lockd.h"
#include "api/refusals.h"
#include "api/sqs/sqs.h"
#include "base/mem.h"
#include "http/http.h"

#include <stdio.h>

const struct dialect *const dialects[] = { &flat_dialect, &lockd_dialect, &admin_dialect, &sqs_dialect, &codeq_dialect, NULL };

/* --- routes ------------------------------------------------------------------- */

static unsigned
count_routes(const struct dialect *const *all)
{
	unsigned n = 0;

	for (; *all; all++)
		n += (*all)->n_routes;
	return n;
}

int
dialect_check_base(const char *base, struct slu_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
	const size_t n = strlen(base);

	if (n > 1 && n <= DIALECT_BASE && base[0] == '/' && base[n - 1] != '/' && strspn(base, letters) == n &&
	    !strstr(base, "//"))
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid base path: %.100s; expected /NAME or /NAME/NAME, at most %d bytes", base,
			DIALECT_BASE);
}

/* Bytes of the paths that are written anew. */
static size_t
count_text(const struct dialect *const *all, const char *base)
{
	size_t n = 0;

	for (; base && *all; all++)
		for (unsigned i = 0; (*all)->base && i < (*all)->n_routes; i++)
			n += strlen(base) + strlen((*all)->routes[i].path) + 1;
	return n;
}

/* Writes the path of a row below another base. */
static void
replace_base(struct route *row, const struct dialect *d, const char *base, char **text)
{
	const char *const path = row->path;

	if (!d->base || !base)
		return;
	row->path = *text;
	*text += sprintf(*text, "%s%s", base, path + strlen(d->base)) + 1; /* fits: count_text */
}

int
dialects_join(const struct dialect *const *all, const char *base, struct route **out, unsigned *n)
{
	struct route *row;
	char *text;

	*n = count_routes(all);
	row = *out = mem_alloc(*n * sizeof *row + count_text(all, base));
	if (!row)
		return SLU_ENOMEM;
	text = (char *)(row + *n);
	for (; *all; all++)
		for (unsigned i = 0; i < (*all)->n_routes; i++, row++) {
			*row = (*all)->routes[i];
			row->dialect = *all;
			replace_base(row, *all, base, &text);
			if (row->handler)
				row->handle = apicall_handle;
		}
	return 0;
}

static const struct dialect *
by_path(const struct dialect *const *all, struct slice path)
{
	const struct dialect *best = all[0];
	size_t longest = 0;

	for (; *all; all++) {
		const struct slice prefix = slice_of((*all)->prefix);

		if (prefix.n > longest && prefix.n < path.n && memcmp(prefix.p, path.p, prefix.n) == 0) {
			best = *all;
			longest = prefix.n;
		}
	}
	return best;
}

/* --- errors ------------------------------------------------------------------- */

struct dialect_error
dialect_error(const struct dialect *d, int code)
{
	const struct slu_err_row *const row = slu_err_row(code);

	for (unsigned i = 0; i < d->n_errors; i++)
		if (d->errors[i].code == code)
			return d->errors[i];
	return (struct dialect_error){ code, row->flat_name, (unsigned)row->flat_status };
}

void
dialect_begin(struct call *c, const struct api *api)
{
	c->route->dialect->begin(c, api);
}

void
dialect_refuse_err(struct call *c, const struct slu_err *err, int64_t index)
{
	c->route->dialect->refuse(c, err, index);
}

void
dialect_refuse(struct call *c, int rc, const char *text, int64_t index)
{
	struct slu_err err;

	(void)slu_fail(&err, (enum slu_code)rc, "%s", text && *text ? text : slu_err_row(rc)->text);
	dialect_refuse_err(c, &err, index);
}

/* --- refusals of the server --------------------------------------------------- */

/* The code that has this status. */
static int
code_of_status(unsigned status)
{
	static const int codes[] = { SLU_ENOTFOUND, SLU_ETIMEOUT, SLU_ETOOBIG, SLU_EBUSY, SLU_EDOWN };

	for (size_t i = 0; i < COUNT(codes); i++)
		if (slu_err_row(codes[i])->flat_status == (int)status)
			return codes[i];
	return SLU_EINVAL;
}

static bool
is_named(const char *reason, int code)
{
	return strcmp(reason, slu_err_row(code)->flat_name) == 0;
}

static int
code_of(const struct http_refusal *r, enum limit limit)
{
	if (limit != LIMIT_COUNT && r->status == 503)
		return SLU_EBUSY;
	if (is_named(r->reason, SLU_ENOMEM))
		return SLU_ENOMEM;
	if (is_named(r->reason, SLU_ESTARTING))
		return SLU_ESTARTING;
	return code_of_status(r->status);
}

/* The server has no memory for a request, or other requests hold limits.memory. */
static void
note_memory(struct api *api, int code, enum limit limit)
{
	if (code == SLU_ENOMEM)
		refusals_request(api, SLU_ENOMEM, NULL);
	else if (limit == LIMIT_MEMORY)
		refusals_request(api, SLU_ENOMEM, "limits.memory");
}

/* A long path is cut. */
static void
write_text(char *out, size_t size, const struct http_refusal *r)
{
	const int n = snprintf(out, size, "%s: %s", http_reason(r->status), r->reason);

	if (r->status == 404 || r->status == 405)
		(void)snprintf(out + n, size - (size_t)n, ": %.*s %.*s", (int)r->method.n,
			       r->method.p, (int)r->path.n, r->path.p);
}

const char *
dialect_describe(struct buf *out, const struct http_refusal *r, void *arg)
{
	struct api *const api = arg;
	const struct dialect *const d = r->route ? r->route->dialect : by_path(api->dialects, r->path);
	const enum limit limit = r->status == 413 ? LIMIT_BODY : limit_by_name(r->reason);
	const int code = code_of(r, limit);
	struct slu_err err;
	char text[320];

	note_memory(api, code, limit);
	write_text(text, sizeof text, r);
	if (code == SLU_ESTARTING)
		(void)api_starting(api, &err);
	d->describe(out, &(struct dialect_refusal){
				 .status = r->status,
				 .code = code,
				 .reason = r->reason,
				 .text = code == SLU_ESTARTING ? err.text : text,
				 .limit = limit,
				 .method = r->method,
				 .path = r->path,
			 });
	return d->type;
}
