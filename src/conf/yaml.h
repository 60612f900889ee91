/*
 * yaml.h - a YAML file as a flat list of paths and values.
 *
 *      log:                            log.level   "debug"       line 2
 *        level: debug                  listen[0]   ":7171"       line 4
 *      listen:                         listen[1]   "unix:/s"     line 5
 *        - :7171
 *        - unix:/s
 *
 * The reader of the list gives paths their meaning. A key may itself be a path:
 * `log.level: debug` means the same.
 *
 *  YAML-1  All values are text: `yes` and `1e3` have no special meaning. A plain empty value,
 *      ~ and null are YAML_NOTHING.
 *  YAML-2  A file has at most YAML_BYTES bytes, YAML_DEPTH levels and YAML_ENTRIES values, no
 *      aliases, no tags, and one document.
 *  YAML-3  ${NAME} in a value becomes the value of that environment variable, which is not
 *      expanded again and never read as YAML; $${ becomes ${.
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
	struct yaml_entry *entries; /* in the order of the file */
	unsigned n, size;
	const char *separator; /* between the keys of a path; NULL: "." */
};

/* Add a fault for each error, with file and line, and an entry for each value that could be
 * read. */
void yaml_load(struct yaml_doc *d, const char *file, struct conf_faults *faults);
void yaml_read(struct yaml_doc *d, const char *file, struct slice text,
	       struct conf_faults *faults);
void yaml_release(struct yaml_doc *d); /* zeroed is fine */

#endif
