/*
 * show.h - a table of options as people and programs want to see it.
 *
 *  S1  A secret that is set is shown as ***, everywhere, whatever its length. That is
 *      no YAML, so that nobody loads it by mistake.
 *  S2  What show_values prints is a file that loads to the same settings.
 */
#ifndef CONF_SHOW_H
#define CONF_SHOW_H

#include "conf/load.h"

#include <stdio.h>

void show_help(const struct option_set *s, const struct option_action *actions, FILE *out);
void show_doc(const struct option_set *s, const struct option_action *actions, FILE *out);
void show_values(const struct option_set *s, FILE *out);

/* {"log.level":{"value":"info","from":"default","kind":"word",...},...} */
void show_json(const struct option_set *s, struct buf *out);

/* The value of a row as a log may have it: S1. */
void show_value(const struct option_set *s, unsigned i, struct buf *out);

#endif
