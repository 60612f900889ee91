/*
 * mutation.h - changes to a JSON document, in the words of lockd's query language.
 *
 *      /a/b=1              set
 *      /n++  /n--          count up and down; a member that is missing counts from 0
 *      /n=+3  /n=-2        add; also /n+=3 and /n-=2
 *      rm:/a/b             remove, if it is there; also remove: del: delete:
 *      time:/t=NOW         the time, in UTC; or a moment of RFC 3339
 *      /a{/b=1,/c++}       several below a path, with commas or line feeds between
 *
 * A text is one mutation: commas and line feeds separate mutations only inside braces, and are
 * part of a value elsewhere. A value is true, false or null (in small or large letters), a
 * number (007 is 7), or else text. Quotes around a value are not part of it, and keep commas
 * together inside braces; "5" is the number 5. Values are never arrays or objects.
 *
 * Objects that are missing on the way are made, and what stands in their place and is neither
 * object nor array gives way. A step into an array is the index of an element that is there.
 * Whole numbers are added exactly as long as they fit 64 bits.
 *
 * A path with wildcards (base/json_path.h: * [] ** ...) changes every value it leads to.
 * Nothing is made then, and a value that was changed is not searched again. Removing an
 * element makes its array shorter.
 *
 * The document is changed as text, one mutation after another: memory is two copies of
 * it, whatever it holds. So the work is mutations times bytes (times the steps of a path with
 * `...`). It is bounded by MUTATION_WORK, checked before the first mutation is applied.
 */
#ifndef CORE_MUTATION_H
#define CORE_MUTATION_H

#include "base/json_path.h"
#include "base/stop.h"

enum {
	MUTATIONS_MAX = 128,       /* of a call, and of the texts that bring them */
	MUTATION_WORK = 256 << 20, /* bytes of documents that a call may write, one after another */
	MUTATION_NESTING = 8       /* braces */
};

enum mutation_kind {
	MUTATION_SET,
	MUTATION_ADD,
	MUTATION_REMOVE
};

/* One of them, parsed. */
struct mutation {
	enum mutation_kind kind;
	const struct json_path *path;
	struct slice value; /* SET: JSON; ADD: a number of JSON */
};

/*
 * Reads a text, mutation by mutation:
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
	unsigned nesting;
	unsigned prefix[MUTATION_NESTING + 1]; /* steps of the path, a level */
	bool begun;                            /* the text's one mutation was met */
	bool ended;                            /* there was no more */
};

void mutation_parse(struct mutation_parser *p, struct slice text, char *room,
		    struct buf *value, slu_time now);

/* The next, good until the one after it. SLU_EINVAL, SLU_ENOMEM. */
int mutation_next(struct mutation_parser *p, struct mutation *m, struct slu_err *err);

/* Write the document with this change to out. SLU_EINVAL: it cannot be changed that way.
 * SLU_ETOOBIG: out is full. SLU_ENOMEM. */
int mutation_apply(const struct mutation *m, struct slice document, struct buf *out,
		   struct slu_err *err);

/* All of them, in order; document is valid JSON. out: the new one, at most out->max
 * bytes. stop: another thread sets it to end early (SLU_ECANCELED); NULL: nobody does.
 * SLU_EINVAL names the text and the place in it; SLU_ETOOBIG: out or MUTATION_WORK. */
int mutations_apply(const struct slice *texts, unsigned n, struct slice document,
		    slu_time now, const struct stop *stop, struct buf *out, struct slu_err *err);

#endif
