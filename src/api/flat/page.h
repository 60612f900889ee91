/*
 * page.h - an answer with a page of messages: {"NAME":[ROW, ...], "cursor":"..."}.
 *
 *      page_start ──> rows.write for each row ──> rows.done ──> page_end, page_reply
 */
#ifndef API_FLAT_PAGE_H
#define API_FLAT_PAGE_H

#include "api/rows.h"

/* Opens the answer and its list, then rows_start. */
void page_start(struct rows *r, const char *name);

/* Reads the rows of a->op on a file thread, at most API_LOOK_BYTES of records. `take` gets each row and writes nothing. */
void page_look(struct rows *r, struct apicall *a, rows_write *take, void (*done)(struct apicall *a, int rc));

/* The cursor behind the rows that were read; 0 at the end. */
uint64_t page_cursor(const struct rows *r);

/* rows.done of a page without members of its own. Refuses if rc is not 0. */
void page_done(struct apicall *a, int rc);

/* Ends the list. The caller may add members, then calls page_reply. */
void page_end(struct rows *r);

/* Writes the cursor and answers 200. */
void page_reply(struct rows *r);

#endif
