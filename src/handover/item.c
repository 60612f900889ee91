/*
 * item.c - what items with names have in common: files and objects.
 */
#include "handover/handover_private.h"

#include "base/json/json.h"
#include "base/mem.h"

#include <string.h>

static bool
ends_in(const char *name, const char *ending)
{
	const size_t n = strlen(name), m = strlen(ending);

	return n >= m && strcmp(name + n - m, ending) == 0;
}

bool
handover_is_message(const char *name)
{
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ')
			return false;
	return name[0] != '.' && !ends_in(name, ".tmp") && !ends_in(name, ".part") && !ends_in(name, ".json");
}

/* The object without spaces around it. */
static void
trim(char *text)
{
	size_t n = strlen(text), from = strspn(text, " \t\r\n");

	while (n > from && strchr(" \t\r\n", text[n - 1]))
		n--;
	memmove(text, text + from, n - from);
	text[n - from] = '\0';
}

/* JSON that is no object makes the server refuse the message. */
void
handover_check_options(struct handover_item *item)
{
	struct json r;

	if (!item->options)
		return;
	trim(item->options);
	json_init(&r, slice_of(item->options), JSON_DEPTH);
	if (json_peek(&r) == JSON_OBJECT)
		json_skip(&r);
	else
		json_fail(&r, SLU_EINVAL, NULL, "expected an object");
	if (json_end(&r, NULL) == 0)
		return;
	mem_free(item->options);
	item->options = mem_strdup("{\"invalid .json\":0}");
}
