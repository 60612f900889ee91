/*
 * report.h - prints an error or a note on stderr, in the same form for every command:
 *
 *      sluice push: no server at 127.0.0.1:7171: Connection refused
 *      {"error":"unavailable","message":"no server at ...","exit":1}        with --json
 */
#ifndef CLI_LIB_REPORT_H
#define CLI_LIB_REPORT_H

#include <sluice/err.h>

/* command: "queue set"; "" = none. code: a SLU_ code; 0 = a note, {"note":"..."} in JSON. text: may come from a
 * server; it is printed escaped. Returns `exit`, an enum cli_exit. */
int cli_report(const char *command, bool json, int code, int exit, const char *text);

#endif
