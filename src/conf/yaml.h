/*
 * yaml.h - a YAML file as a flat list of paths and values.
 *
 *      log:                            log.level   "debug"       line 2
 *        level: debug                  listen[0]   ":7171"       line 4
 *      listen:                         listen[1]   "unix:/s"     line 5
 *        - :7171
 *        - unix:/s
 *
 * Nothing here knows which paths mean something: that is for whoever reads the list,
 * and a part with a form of its own is the entries that begin with its name. A key may
 * itself be a path: `log.level: debug` says the same.
 *
 *  Y1  All values are text: `yes`, `1e3` and `~` have no meaning of their own, other
 *      than that a plain empty value, ~ and null are no value.
 *  Y2  Bounded: YAML_BYTES of file, YAML_DEPTH levels, YAML_ENTRIES values. No aliases,
 *      no tags, one document.
 *  Y3  ${NAME} in a value is replaced by that variable of the environment, once;
 *      $${ is ${ itself. What it holds is never read as YAML.
 */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include "base/bytes.h"
#include "conf/faults.h"

enum {
	YAML_BYTES = 1024 * 1024,
	YAML_DEPTH = 16,
	YAML_ENTRIES = 65536,
	YAML_PATH = 512
};

enum yaml_kind {
	YAML_VALUE,
	YAML_NOTHING,   /* a key without a value, an empty mapping */
	YAML_EMPTY_LIST /* [] */
};

struct yaml_entry {
	char *path;
	char *value; /* YAML_VALUE */
	enum yaml_kind kind;
	unsigned line;
};

struct yaml_doc {
	struct yaml_entry *entries; /* as they stand in the file */
	unsigned n, size;
	const char *separator; /* between the keys of a path; NULL: "." */
};

/* Adds a fault for everything that is wrong, with file and line; what could be read is
 * there all the same. */
void yaml_load(struct yaml_doc *d, const char *file, struct conf_faults *faults);
void yaml_read(struct yaml_doc *d, const char *file, struct slice text,
	       struct conf_faults *faults);
void yaml_release(struct yaml_doc *d); /* a zeroed one is fine */

#endif
