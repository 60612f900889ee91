#include "json_oracle.h"

#include <jansson.h>
#include <inttypes.h>

enum {
	DEPTH = 2048 /* jansson's own */
};

/* A level of the tree that is being walked. */
struct level {
	json_t *node;
	void *member; /* of an object: the next one */
	size_t index; /* of an array: the next one */
};

void
oracle_text(struct buf *lines, const char *what, struct slice text)
{
	buf_puts(lines, what);
	buf_putc(lines, ' ');
	for (size_t i = 0; i < text.n; i++)
		buf_printf(lines, "%02x", (unsigned char)text.p[i]);
	buf_putc(lines, '\n');
}

static void
tell_scalar(struct buf *lines, const json_t *node)
{
	switch (json_typeof(node)) {
	case JSON_STRING:
		oracle_text(lines, "str",
			    (struct slice){ json_string_value(node), json_string_length(node) });
		break;
	case JSON_INTEGER:
		buf_printf(lines, "int %" PRId64 "\n", (int64_t)json_integer_value(node));
		break;
	case JSON_REAL:
		buf_printf(lines, "real %a\n", json_real_value(node));
		break;
	default:
		buf_puts(lines, json_is_null(node) ? "null\n" : json_is_true(node) ? "true\n"
										   : "false\n");
		break;
	}
}

/* The next of a level, NULL behind the last. Members come in the order of the
 * document. */
static json_t *
next_child(struct level *l, struct buf *lines)
{
	json_t *child;

	if (json_is_array(l->node))
		return json_array_get(l->node, l->index++);
	if (!l->member)
		return NULL;
	oracle_text(lines, "key", slice_of(json_object_iter_key(l->member)));
	child = json_object_iter_value(l->member);
	l->member = json_object_iter_next(l->node, l->member);
	return child;
}

/* Out of all levels that are at their end, then the next value, or NULL. */
static json_t *
next_value(struct buf *lines, struct level *levels, size_t *depth)
{
	while (*depth > 0) {
		struct level *const l = &levels[*depth - 1];
		json_t *const child = next_child(l, lines);

		if (child)
			return child;
		buf_puts(lines, json_is_array(l->node) ? "]\n" : "}\n");
		(*depth)--;
	}
	return NULL;
}

static void
tell(struct buf *lines, json_t *node)
{
	static struct level levels[DEPTH];
	size_t depth = 0;

	for (; node; node = next_value(lines, levels, &depth)) {
		if (json_is_array(node) || json_is_object(node)) {
			buf_puts(lines, json_is_array(node) ? "[\n" : "{\n");
			levels[depth++] = (struct level){ node, json_object_iter(node), 0 };
		} else {
			tell_scalar(lines, node);
		}
	}
}

enum oracle
json_oracle(struct slice document, struct buf *lines)
{
	const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
	json_error_t error;
	json_t *root = json_loadb(document.p, document.n, flags, &error);

	if (root) {
		tell(lines, root);
		json_decref(root);
		return ORACLE_TAKES;
	}
	switch (json_error_code(&error)) {
	case json_error_duplicate_key:
	case json_error_null_byte_in_key:
		return ORACLE_DIFFERS;
	default:
		return ORACLE_REFUSES;
	}
}
