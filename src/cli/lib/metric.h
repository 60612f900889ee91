/*
 * metric.h - reads lines of /metrics.
 *
 *      sluice_messages{state="ready"} 12
 *
 *         if (metric_is(line, "sluice_messages") && metric_label(line, "state", state, sizeof state))
 *                 n = metric_value(line);
 */
#ifndef CLI_LIB_METRIC_H
#define CLI_LIB_METRIC_H

#include "base/bytes.h"

/* Whether the line is a value of this metric. */
bool metric_is(struct slice line, const char *name);

/* Reads a label; a text that does not fit is cut. Returns false if the line does not have it. */
bool metric_label(struct slice line, const char *name, char *out, size_t room);

double metric_value(struct slice line);

#endif
