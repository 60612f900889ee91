/*
 * retry.h - a retry policy as JSON, and what it is made of: words and times.
 *
 *      {"kind":"exponential","jitter":"full","base":"1s","max":"15m"}
 */
#ifndef FORM_RETRY_H
#define FORM_RETRY_H

#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <sluice/retry.h>

/* A word of JSON, and its number in C. */
struct form_word {
	const char *name;
	int value;
};

/* Reads a string and returns the value of the word that is equal to it. If no word is, the reader fails with the text
 * `expected`, and the function returns `otherwise`. */
int form_word_read(struct json *r, const struct form_word *words, size_t n, const char *expected, int otherwise);

void form_span_write(struct json_out *w, const char *name, slu_time span);

/* Reads the members of a retry policy; one that is missing keeps its value in *out. */
void form_retry_read(struct json *r, struct slu_backoff *out);

/* A reader of a row (base/json/json_table.h) whose member is a struct terms; a member that is missing has its default. */
void form_retry_read_terms(struct json *r, const struct json_field *f, void *place);

void form_retry_write(struct json_out *w, const char *name, const struct slu_backoff *b);

#endif
