/*
 * resp.h - the protocol of Redis: commands as arrays of strings, replies as trees.
 *
 *      *2\r\n $4\r\nLPOP\r\n $1\r\nq\r\n         a command
 *      :7\r\n   +OK\r\n   -ERR ...\r\n   $3\r\nabc\r\n   *2\r\n ...   replies
 */
#ifndef PEERS_RESP_H
#define PEERS_RESP_H

#include "base/bytes.h"

void resp_command(struct buf *out, unsigned words);
void resp_word(struct buf *out, struct slice word);
void resp_text(struct buf *out, const char *word);
void resp_number(struct buf *out, uint64_t n);

/* The bytes of the reply at the front of `in`; 0 if it is not complete. */
size_t resp_whole(struct slice in);

struct resp {
	char kind;         /* + - : $ * */
	int64_t n;         /* the number, the length, or how many parts follow; -1 = nil */
	struct slice text; /* the text of + - : and $ */
};

/* Reads the next part of a complete reply, an array before its elements. Returns false at the end. */
bool resp_next(struct slice *in, struct resp *r);

#endif
