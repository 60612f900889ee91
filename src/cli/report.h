/*
 * report.h - an error on stderr, one for every command:
 *
 *      sluice push: no server at 127.0.0.1:7171: Connection refused
 *      {"error":"unavailable","message":"no server at ...","exit":1}        with --json
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <sluice/err.h>

/* command: "queue set"; "": none yet. code: 0 is something to know, no error, {"note":"..."}. The text
 * may come from a server: it is shown escaped. Returns `exit`, an enum cli_exit. */
int cli_report(const char *command, bool json, int code, int exit, const char *text);

#endif
