#include "api/upgrade/upgrade.h"

#include "api/api.h"
#include "api/dialect.h"
#include "http/chars.h"
#include "http/http.h"

#define PROTOCOL "sluice-stream"

/* Whether the list of options of the field has this one. */
static bool
has_option(const struct call *c, const char *field, struct slice want)
{
	struct slice rest = call_field(c, field), option;
	bool more = rest.n > 0, found = false;

	while (more && !found) {
		more = slice_cut(&rest, ',', &option);
		found = http_same(http_trim(option), want);
	}
	return found;
}

static void
refuse(struct call *c, void *api)
{
	const struct http_refusal why = {
		.status = 426,
		.reason = "expected the fields Connection: Upgrade and Upgrade: " PROTOCOL,
		.route = c->route,
		.method = c->method,
		.path = c->path,
	};
	const char *const type = dialect_describe(&c->x.out, &why, api);

	(void)call_add(c, "Upgrade", SLICE(PROTOCOL)); /* the answer is fine without */
	call_answer(c, 426, type, &c->x.out);
}

void
upgrade_enter(struct call *c, void *api)
{
	if (!has_option(c, "connection", SLICE("upgrade")) || !has_option(c, "upgrade", SLICE(PROTOCOL)) ||
	    !call_request(c)->keep_alive || !slice_eq(c->method, SLICE("GET")))
		refuse(c, api);
	else if (call_frames(c))
		dialect_refuse(c, SLU_ENOMEM, NULL, -1);
}
