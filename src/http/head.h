/*
 * head.h - what the lines of a request's head say. request.c cuts the lines.
 *
 * A line comes without its CRLF and lies in r->head, where names of fields are made
 * small in place. All return 0 or an enum request_refused.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "http/request.h"

int head_request_line(struct request *r, struct slice line);
int head_field(struct request *r, struct slice line);

/* After the blank line: what only all fields together tell, then the slices. */
int head_end(struct request *r);

/* A trailer is checked and forgotten. */
int head_trailer(struct request *r, struct slice line);

#endif
