/*
 * head.h - parses the lines of a request's head. request.c splits the lines.
 *
 * A line has no CRLF and is in r->head; names of fields become small letters in place. All
 * functions return 0 or an enum request_refused.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "http/request.h"

int head_request_line(struct request *r, struct slice line);
int head_field(struct request *r, struct slice line);

/* After the blank line: checks the fields together, then sets the slices. */
int head_end(struct request *r);

/* Checks a trailer and drops it. */
int head_trailer(struct request *r, struct slice line);

#endif
