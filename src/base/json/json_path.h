/*
 * json_path.h - paths into a JSON document: JSON Pointer (RFC 6901) with wildcards.
 *
 *      /a/b        member b of member a
 *      /a/0        the first element of the array a, or its member "0"
 *      /a~1b/~0    member ~ of member a/b
 *      a/b         the same as /a/b
 *
 * Wildcards, as a step:
 *
 *      *           every member of an object
 *      []          every element of an array; /a[] is the same as /a/[]
 *      **          every child of an object or array
 *      ...         the value itself and everything below it
 *
 * With `through`, a path goes through arrays: /items/sku is the sku of every object in the
 * array items, as /items/[]/sku is, and /tags is the array tags and each of its elements.
 *
 * A walk reads a document once and skips what the path cannot reach. It follows the path by
 * places, one bit each; a value can have several:
 *
 *      steps   /items  /[]  /sku
 *      places  0       1    2     3       the path leads to values with the last place, 3
 */
#ifndef BASE_JSON_JSON_PATH_H
#define BASE_JSON_JSON_PATH_H

#include "base/json/json.h"

enum {
	JSON_PATH_MAX = 32 /* steps */
};

enum json_step_kind {
	JSON_STEP_NAME,
	JSON_STEP_MEMBER,  /* * */
	JSON_STEP_ELEMENT, /* [] */
	JSON_STEP_CHILD,   /* ** */
	JSON_STEP_DEEP     /* ... */
};

struct json_step {
	enum json_step_kind kind;
	struct slice name; /* JSON_STEP_NAME: unescaped */
	int64_t index;     /* JSON_STEP_NAME: the same as the index of an element, or -1 */
};

struct json_path {
	unsigned n;
	bool through; /* the path goes through arrays */
	struct json_step steps[JSON_PATH_MAX];
};

/* Appends the steps of text to path. Escaped names are written to room, which has text.n bytes;
 * others point into text. Returns SLU_EINVAL if text is not a path. */
int json_path_add(struct json_path *path, struct slice text, char *room,
		  struct slu_err *err);

/*
 * For a caller that walks a document itself: the places of each value.
 *
 *      places = json_path_start(path)                       of the document itself
 *      places = json_path_child(path, places, ...)          of a member or element below it
 *
 * 0: the path reaches no value below.
 */
uint64_t json_path_start(const struct json_path *path);

/* name: of the member, NULL for an element. index: of the element. */
uint64_t json_path_child(const struct json_path *path, uint64_t from,
			 const struct json_str *name, int64_t index);

/* Returns whether the path leads to the value with these places. */
bool json_path_ends(const struct json_path *path, uint64_t places);

bool json_path_has_wildcard(const struct json_path *path);

/* How many places one value can have: 1, or more in a path with `...`. */
unsigned json_path_cost(const struct json_path *path);

/* Gets each value that the path leads to: str is set for a string, raw for other scalars. Returns
 * false to end the walk. */
typedef bool json_visit(void *arg, const struct json_event *value);

/* Returns SLU_EINVAL if the document is not valid or nested too deep, as far as the walk has read
 * it. */
int json_walk(struct slice document, const struct json_path *path, json_visit *visit,
	      void *arg, struct slu_err *err);

#endif
