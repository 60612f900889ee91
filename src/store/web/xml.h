/*
 * xml.h - reads the answers of S3 and Azure. Pure.
 *
 * The answers are flat: elements with a text, some of them repeated. A reader needs no tree.
 */
#ifndef STORE_WEB_XML_H
#define STORE_WEB_XML_H

#include "base/bytes.h"

/* Takes everything up to the end of the next element <name>...</name> off the beginning. Returns
 * false if the slice has no such element; otherwise *text is what the element holds, as written. */
bool xml_next(struct slice *rest, const char *name, struct slice *text);

/* The text of the first element with that name; n 0 if the document has no such element. */
struct slice xml_find(struct slice document, const char *name);

/* Copies a text with its entities (&amp; &lt; &#10; ...) replaced. Returns false if it does not fit,
 * or has an entity that XML does not know, or a NUL. */
bool xml_text(struct slice text, char *out, size_t size);

#endif
