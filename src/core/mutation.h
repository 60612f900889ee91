/*
 * mutation.h - changes of a JSON document, in lockd's query language.
 *
 *      /a/b=1              set
 *      /n++  /n--          count up and down; a missing member counts from 0
 *      /n=+3  /n=-2        add; also /n+=3 and /n-=2
 *      rm:/a/b             remove, if it exists; also remove: del: delete:
 *      time:/t=NOW         the time, in UTC; or a moment of RFC 3339
 *      /a{/b=1,/c++}       several below a path, separated by commas or line feeds
 *
 * A text is one mutation: commas and line feeds separate mutations only inside braces; elsewhere
 * they are part of a value. A value is true, false or null (in any case), a number (007 is 7), or
 * a text. Quotes around a value are not part of it, and protect commas inside braces; "5" is the
 * number 5. A value is never an array or object.
 *
 * A path makes missing objects, and replaces values on its way that are neither object nor array.
 * A step into an array is the index of an existing element. Whole numbers are added exactly while
 * they fit 64 bits.
 *
 * A path with wildcards (base/json/json_path.h: * [] ** ...) changes every value it leads to. It
 * makes no objects, and does not search a value that it has changed. Removing an element makes its
 * array shorter.
 *
 * Each mutation rewrites the document as text, so memory is two copies of it, and the work is
 * mutations times bytes (times the steps of a path with `...`). MUTATION_WORK bounds it, checked
 * before the first mutation is applied.
 */
#ifndef CORE_MUTATION_H
#define CORE_MUTATION_H

#include "base/json/json_path.h"
#include "base/stop.h"

enum {
	MUTATIONS_MAX = 128,       /* mutations of a call, and its texts */
	MUTATION_WORK = 256 << 20, /* bytes that a call may write, over all mutations */
	MUTATION_NESTING = 8       /* braces inside braces */
};

enum mutation_kind {
	MUTATION_SET,
	MUTATION_ADD,
	MUTATION_REMOVE
};

struct mutation {
	enum mutation_kind kind;
	const struct json_path *path;
	struct slice value; /* SET: JSON; ADD: a JSON number */
};

/*
 * Parses a text, mutation by mutation:
 *
 *         mutation_parse(&p, text, room, &value, now);
 *         while (mutation_next(&p, &m, &err) == 0 && !p.end) ...
 */
struct mutation_parser {
	struct slice text;
	const char *p;
	char *room; /* text.n bytes, for names */
	struct buf *value;
	slu_time now;
	struct json_path path;
	unsigned nesting;                      /* open braces */
	unsigned prefix[MUTATION_NESTING + 1]; /* steps of the path at each level */
	bool begun;                            /* the mutation of the text has been parsed */
	bool ended;                            /* there are no more */
};

void mutation_parse(struct mutation_parser *p, struct slice text, char *room,
		    struct buf *value, slu_time now);

/* Parses the next mutation, valid until the call after. Returns SLU_EINVAL or SLU_ENOMEM. */
int mutation_next(struct mutation_parser *p, struct mutation *m, struct slu_err *err);

/* Applies all texts, in order. document is valid JSON. out: the new document, at most out->max
 * bytes. stop: set by another thread to end early (SLU_ECANCELED); may be NULL. Returns SLU_EINVAL
 * with the text and the place in it, SLU_ETOOBIG if out or MUTATION_WORK is exceeded, or
 * SLU_ENOMEM. */
int mutations_apply(const struct slice *texts, unsigned n, struct slice document,
		    slu_time now, const struct stop *stop, struct buf *out, struct slu_err *err);

#endif
