/*
 * trace.h - the trace of a message: W3C Trace Context, level 1.
 *
 *         traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *         tracestate:  vendor=opaque,other=1
 *
 * A field that is not valid is ignored: no request fails because of its trace.
 *
 *  TRACE-1  A traceparent has lower-case hex digits, a trace id and a parent id that are not
 *           all zero, and a version other than ff. Version 00 has exactly 55 bytes; a later
 *           version may have more behind a '-', and is passed on as version 00.
 *  TRACE-2  A tracestate is only valid with a valid traceparent. It has 1 to 512 bytes of
 *           printable ASCII: at most 32 members, each key=value or empty.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "base/bytes.h"

enum {
	TRACE_PARENT = 55,
	TRACE_STATE_MAX = 512,
	TRACE_MEMBERS_MAX = 32
};

/* Writes s to out as version 00, 55 bytes without a NUL. Returns false if s breaks TRACE-1. */
bool trace_parent(struct slice s, char out[static TRACE_PARENT]);

/* Returns whether s is valid by TRACE-2. */
bool trace_state(struct slice s);

#endif
