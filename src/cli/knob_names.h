/*
 * knob_names.h - the names that `sluice queue set` takes, for suggestions and completion. The
 * server has the last word: a name that is missing here still reaches it.
 */
#ifndef CLI_KNOB_NAMES_H
#define CLI_KNOB_NAMES_H

extern const char *const knob_names[]; /* NULL ends it */

/* The knob that is most like `name`, or NULL: it is a knob, or none is near. */
const char *knob_nearest(const char *name);

#endif
