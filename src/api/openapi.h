/*
 * openapi.h - the document that describes every route: openapi.py writes it.
 */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

extern const char openapi_text[]; /* JSON, not terminated */
extern const unsigned openapi_size;
extern const unsigned openapi_url; /* where the "/" of servers[0].url stands */

#endif
