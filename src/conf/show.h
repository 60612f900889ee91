/*
 * show.h - prints a table of options: help, docs, values, JSON.
 *
 *  SHOW-1  Output shows a secret that is set as ***, whatever its length. *** is invalid
 *      YAML, so it is never loaded by mistake.
 *  SHOW-2  show_values prints a file that loads to the same settings.
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

/* The value of a row, for logs: SHOW-1. */
void show_value(const struct option_set *s, unsigned i, struct buf *out);

#endif
