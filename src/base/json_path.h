/*
 * json_path.h - where in a JSON document: JSON Pointer (RFC 6901) with wildcards.
 *
 *      /a/b        member b of member a
 *      /a/0        the first element of the array a, or its member "0"
 *      /a~1b/~0    member ~ of member a/b
 *      a/b         the same as /a/b
 *
 * and as a step:
 *
 *      *           every member of an object
 *      []          every element of an array; /a[] is the same as /a/[]
 *      **          every child, of either
 *      ...         the value itself and all that is below it
 *
 * A path may go through arrays (`through`): then /items/sku is every sku of the objects in the
 * array items, as /items/[]/sku is, and /tags is the array tags and each of its elements.
 *
 * A walk reads a document once, whatever the path, and skips what the path cannot reach:
 *
 *      steps   /items  /[]  /sku          a value is reached by a set of places in the path,
 *      places  0       1    2     3       one bit each; 3, the end, means: this one is it
 */
#ifndef BASE_JSON_PATH_H
#define BASE_JSON_PATH_H

#include "base/json.h"

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
	struct slice name; /* NAME: unescaped */
	int64_t index;     /* NAME: of an element, or -1 */
};

struct json_path {
	unsigned n;
	bool through; /* a name that is not an index, and the end, hold for all elements of an array */
	struct json_step steps[JSON_PATH_MAX];
};

/* Add the steps of text to what path has. Names that are escaped are written to room,
 * which has text.n bytes; others point into text. SLU_EINVAL. */
int json_path_add(struct json_path *path, struct slice text, char *room,
		  struct slu_err *err);

/*
 * For a caller that walks a document on its own: the set of places of each value.
 *
 *      places = json_path_start(path)                       of the document itself
 *      places = json_path_child(path, places, ...)          of a member or element below it
 *
 * 0: no value below can be reached.
 */
uint64_t json_path_start(const struct json_path *path);

/* name: of a member, NULL for an element; index: of an element. */
uint64_t json_path_child(const struct json_path *path, uint64_t places,
			 const struct json_str *name, int64_t index);

/* Does the path lead to the value with these places? */
bool json_path_ends(const struct json_path *path, uint64_t places);

bool json_path_has_wildcard(const struct json_path *path);

/* How many places one value may have: 1, or more in a path with `...`. */
unsigned json_path_cost(const struct json_path *path);

/* A value that the path leads to; str is set for a string, raw for other scalars. True:
 * go on. */
typedef bool json_visit(void *arg, const struct json_event *value);

/* SLU_EINVAL: no JSON, or nested too deep. What follows the value at which visit said
 * no is not looked at. */
int json_walk(struct slice document, const struct json_path *path, json_visit *visit,
	      void *arg, struct slu_err *err);

#endif
