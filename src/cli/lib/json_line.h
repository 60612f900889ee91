/*
 * json_line.h - one JSON object on one line, as scripts read it.
 *
 *         struct json_out *w = json_line_begin(&l);
 *
 *         json_out_u64(w, "id", id);
 *         json_line_end(&l, stdout);
 */
#ifndef CLI_LIB_JSON_LINE_H
#define CLI_LIB_JSON_LINE_H

#include "base/json/json_out.h"

#include <stdio.h>

struct json_line {
	struct json_out w;
	struct buf text;
};

/* Opens the object. */
struct json_out *json_line_begin(struct json_line *l);

/* Closes the object, prints it and frees the line. */
void json_line_end(struct json_line *l, FILE *out);

#endif
