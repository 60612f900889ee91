/*
 * out.h - writes the answer of an SQS action, as JSON or as XML.
 *
 *      sqs_out_begin(&o, a);
 *      sqs_out_text(&o, "MessageId", id);        "MessageId":"..."      <MessageId>...</MessageId>
 *      sqs_out_list(&o, "Messages", "Message");  "Messages":[
 *      sqs_out_item(&o);                         {                      <Message>
 *      sqs_out_item_end(&o);                     }                      </Message>
 *      sqs_out_list_end(&o);                     ]
 *      sqs_out_end(&o);
 *
 * A list of XML has no element of its own, and a map has an element for each pair. A list or a map
 * that is never begun is left out of both.
 */
#ifndef API_SQS_OUT_H
#define API_SQS_OUT_H

#include "api/apicall.h"
#include "base/json/json_out.h"

struct sqs_out {
	struct apicall *a;
	struct buf *b;
	struct json_out *w;  /* NULL: XML */
	struct json_out own; /* w, unless the caller has another */
	const char *tag;     /* XML: of the items of the open list, or of the pairs of the open map */
	const char *key;     /* XML: of the keys of the open map */
};

/* Begins the answer; w: the writer of JSON, or NULL for one of its own. */
void sqs_out_begin(struct sqs_out *o, struct apicall *a, struct json_out *w);

/* Continues an answer that was begun: for a writer of rows. */
void sqs_out_resume(struct sqs_out *o, struct apicall *a, struct json_out *w);

void sqs_out_text(struct sqs_out *o, const char *name, struct slice text);
void sqs_out_plain(struct sqs_out *o, const char *name, struct slice text); /* needs no escapes */
void sqs_out_number(struct sqs_out *o, const char *name, int64_t n);
void sqs_out_bool(struct sqs_out *o, const char *name, bool v);

void sqs_out_list(struct sqs_out *o, const char *json, const char *xml);
void sqs_out_item(struct sqs_out *o);
void sqs_out_item_end(struct sqs_out *o);
void sqs_out_element(struct sqs_out *o, struct slice text); /* an item that is a text */
void sqs_out_list_end(struct sqs_out *o);

/* A map of texts; key: the name of its keys in XML. */
void sqs_out_map(struct sqs_out *o, const char *json, const char *xml, const char *key);
void sqs_out_pair(struct sqs_out *o, const char *name, struct slice value);
void sqs_out_pair_of(struct sqs_out *o, struct slice name, struct slice value);
void sqs_out_map_end(struct sqs_out *o);

/* A map of objects: a pair whose value has members. */
void sqs_out_open(struct sqs_out *o, struct slice name);
void sqs_out_close(struct sqs_out *o);

/* Ends the object and answers the call. */
void sqs_out_end(struct sqs_out *o);

/* Answers an action that has no result. */
void sqs_out_nothing(struct apicall *a);

/* Appends the text with the escapes of XML. */
void sqs_out_escape(struct buf *b, struct slice text);

#endif
