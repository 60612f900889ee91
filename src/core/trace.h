/*
 * trace.h - the trace that a message belongs to: W3C Trace Context, level 1.
 *
 *         traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *         tracestate:  vendor=opaque,other=1
 *
 * What is not valid is not there: nobody's request fails because of its trace.
 *
 *  T1  A traceparent has lower-case hex digits alone, a trace id and a parent id that
 *      are not all zero, and a version other than ff. Version 00 is exactly 55 bytes;
 *      a later one may be longer, behind a '-', and is handed on as version 00.
 *  T2  A tracestate counts only beside a valid traceparent. It is 1 to 512 bytes of
 *      printable ASCII: at most 32 members, each key=value or empty.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "base/bytes.h"

enum {
	TRACE_PARENT = 55,
	TRACE_STATE_MAX = 512,
	TRACE_MEMBERS_MAX = 32
};

/* T1: written to out, 55 bytes without an end, as version 00. */
bool trace_parent(struct slice s, char out[static TRACE_PARENT]);

bool trace_state(struct slice s); /* T2 */

#endif
