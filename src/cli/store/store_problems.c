#include "cli/store/store_private.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
	KEPT_MAX = 1000,
	TEXT_MAX = 400
};

void
store_problems_init(struct store_problems *p)
{
	*p = (struct store_problems){ 0 };
	buf_init(&p->text, (size_t)KEPT_MAX * TEXT_MAX);
}

void
store_problems_release(struct store_problems *p)
{
	buf_release(&p->text);
}

void
store_problems_clear(struct store_problems *p)
{
	buf_clear(&p->text);
	p->n = 0;
}

void
store_problem(struct store_problems *p, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	if (p->n++ >= KEPT_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap); /* cut is fine */
	va_end(ap);
	buf_put(&p->text, text, strlen(text) + 1);
}

/* The text behind `before`; NULL: the first one. NULL behind the last one. */
static const char *
next_text(const struct store_problems *p, const char *before)
{
	const char *const next = before ? before + strlen(before) + 1 : p->text.p;

	return p->text.n && next < p->text.p + p->text.n ? next : NULL;
}

void
store_problems_put(const struct store_problems *p, struct json_out *w)
{
	json_out_array(w, "problems");
	for (const char *text = next_text(p, NULL); text; text = next_text(p, text))
		json_out_str(w, NULL, slice_of(text));
	json_out_close(w);
}

void
store_problems_print(const struct store_problems *p)
{
	for (const char *text = next_text(p, NULL); text; text = next_text(p, text))
		printf("  %s\n", text);
	if (p->n > KEPT_MAX)
		printf("  and %" PRIu32 " more\n", p->n - KEPT_MAX);
}
