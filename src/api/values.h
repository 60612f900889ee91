/*
 * values.h - what the fields of a request may hold: one rule a kind, the same in a
 * query and in JSON.
 *
 *      kind        text                               C
 *      name        as core/names.h has it, as         folded to small letters
 *      key         the next two
 *      line        as a correlation id
 *      id          12345, UUID                        struct given_id
 *      span        2, 1.5 (seconds), 500ms, 1h30m     slu_time
 *      priority    -3, high, normal, low              int32_t
 *      lease       l-12345                            uint64_t, the fencing token
 *      receipt     as base/receipt.h has it           struct receipt
 *
 * A lease id is the fencing token of the lease with a mark before it, so that nobody
 * takes it for a number to compare. One of another form is a lease we never gave:
 * VALUE_NO_LEASE, which no message has.
 *
 * A JSON parser that keeps numbers as doubles rounds ids. Such a number names no message,
 * except one that version 0.1.0 stored (base/id.h): so it is looked up like any other, and
 * if there is no such message the answer is SLU_EROUNDED instead of SLU_ENOTFOUND. A UUID
 * is never taken for rounded.
 *
 * A refusal is SLU_EINVAL, or SLU_EROUNDED for an id like 3.18e+17; it leaves *out alone.
 */
#ifndef API_VALUES_H
#define API_VALUES_H

#include "base/bytes.h"
#include "base/json_table.h"
#include "base/receipt.h"

#include <sluice/err.h>

#define VALUE_NO_LEASE UINT64_MAX

enum {
	VALUE_LEASE_TEXT = 24 /* with the end */
};

/* A name folded, and as it was written. */
struct spelled {
	struct slice name;
	struct slice as;
};

/* The id of a message as a caller sent it. */
struct given_id {
	uint64_t id;
	bool rounded; /* it is a number, and one that the generator skips */
};

int value_id(struct slice s, struct given_id *out, struct slu_err *err);

/* What rc means for that id: SLU_EROUNDED and the text for people in err, if rc is
 * SLU_ENOTFOUND and the id was rounded. Else rc, and err is left alone. */
int value_id_failed(struct given_id id, int rc, struct slu_err *err);

/* names has s.n bytes, and the names of out point into it. */
int value_receipt(struct slice s, char *names, struct receipt *out, struct slu_err *err);

int value_span(struct slice s, slu_time min, slu_time max, slu_time *out,
	       struct slu_err *err);
int value_priority(struct slice s, int32_t *out, struct slu_err *err);
void value_lease(struct slice s, uint64_t *out);
/* Somewhere in out. */
const char *value_lease_text(uint64_t token, char out[static VALUE_LEASE_TEXT]);

/*
 * For tables of json_table.h:
 *
 *      reader              C member       value
 *      json_read_name      struct slice   string
 *      json_read_spelled   struct spelled string
 *      json_read_id        struct given_id  number or string
 *      json_read_receipt   struct receipt   string
 *      json_read_span      slu_time       number or string; min and max in ns
 *      json_read_priority  int32_t        number or string
 *      json_read_lease     uint64_t       string
 *      json_read_key       struct slice   string
 *      json_read_line      struct slice   string
 *      json_read_object    struct slice   object, as it is written; max: its bytes
 */
json_read json_read_name, json_read_spelled, json_read_id, json_read_receipt, json_read_span;
json_read json_read_priority, json_read_lease, json_read_key, json_read_line, json_read_object;

/* Why a document was refused, for people: which element of its array (or -1), what
 * was expected, what was there instead, where. The reader has failed. */
int json_explain(const struct json *r, int64_t index, struct slu_err *err);

#endif
