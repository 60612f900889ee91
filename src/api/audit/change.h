/*
 * change.h - what was there before and after a change, for its line in the audit file (api/audit/audit.h).
 *
 *      struct change_note n;
 *
 *      if (change_begin(a, &n)) {
 *              flat_policy_encode(&was, &n.before);
 *              flat_policy_encode(&would, &n.after);
 *              change_end(a, &n);
 *      }
 *      apicall_run(a, answer);            the line of this op has "before" and "after"
 *
 *  CHANGE-1  Of the members that both sides may have, the line has those that differ. Each side has at most CHANGE_BYTES; if
 *            members were left out, `after` has "more":true.
 *  CHANGE-2  The caller writes neither payloads, attributes, results and states, nor tokens.
 */
#ifndef API_CHANGE_H
#define API_CHANGE_H

#include "api/apicall.h"
#include "base/json/json_out.h"

enum {
	CHANGE_BYTES = 256 /* of a JSON object */
};

struct change_note {
	struct json_out before, after; /* objects: the caller writes members */

	/* Private. */
	struct buf was, is;
};

/* Begins a note. Returns false if the server writes no audit file: the caller writes none. */
bool change_begin(struct apicall *a, struct change_note *n);

/* Sets a->change, in the memory of a, and ends the note. Without memory the line lacks it. */
void change_end(struct apicall *a, struct change_note *n);

/* Writes both members of a line. */
void change_write(struct json_out *w, const struct apicall_change *c);

#endif
