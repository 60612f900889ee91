/*
 * values.h - the kinds of values in requests: one rule per kind, the same in a query and in
 * JSON.
 *
 *      kind        text                               C
 *      name        a name of core/names.h             folded to small letters
 *      key         a key of core/names.h              struct slice
 *      line        a correlation id of core/names.h   struct slice
 *      id          12345, UUID                        struct given_id
 *      span        2, 1.5 (seconds), 500ms, 1h30m     slu_time
 *      priority    -3, high, normal, low              int32_t
 *      lease       l-12345                            uint64_t, the fencing token
 *      receipt     a receipt of base/receipt.h        struct receipt
 *
 * A lease id is "l-" and the fencing token of the lease, so that it does not look like a
 * number to compare. Text of another form is VALUE_NO_LEASE, which no message has.
 *
 * A JSON parser that keeps numbers as doubles rounds ids. A rounded number is the id of no
 * message, except one that version 0.1.0 stored (base/id.h). So it is looked up like any other,
 * and if the message is missing the error is SLU_EROUNDED instead of SLU_ENOTFOUND. A UUID is
 * never rounded.
 *
 * Readers return SLU_EINVAL, or SLU_EROUNDED for an id like 3.18e+17; then *out is unchanged.
 */
#ifndef FORM_VALUES_H
#define FORM_VALUES_H

#include "base/bytes.h"
#include "base/json/digits.h"
#include "base/json/json_table.h"
#include "base/receipt.h"

#include <sluice/err.h>

struct arena;

#define VALUE_NO_LEASE UINT64_MAX

enum {
	VALUE_LEASE_TEXT = 2 + DIGITS_ROOM
};

/* A name, folded and as written. */
struct spelled {
	struct slice name;
	struct slice as;
};

/* The id of a message as a caller sent it. */
struct given_id {
	uint64_t id;
	bool rounded; /* a number that the generator of ids skips */
};

int value_id(struct slice s, struct given_id *out, struct slu_err *err);

/* Returns SLU_EROUNDED and fills err if rc is SLU_ENOTFOUND and the id was rounded. Otherwise
 * returns rc and does not change err. */
int value_id_failed(struct given_id id, int rc, struct slu_err *err);

/* names has s.n bytes; the names in out point into it. */
int value_receipt(struct slice s, char *names, struct receipt *out, struct slu_err *err);

int value_span(struct slice s, slu_time min, slu_time max, slu_time *out,
	       struct slu_err *err);

int value_priority(struct slice s, int32_t *out, struct slu_err *err);

/* Writes the trace as messages store it, in the memory of a; an invalid trace becomes empty. Returns
 * SLU_ENOMEM. */
/* The kind of a message with its mark, and a list with commas as the kinds of a claim: core/queue/kind.h. Return SLU_EINVAL or
 * SLU_ENOMEM. */
int value_kind(struct arena *a, struct slice kind, struct slice *out, struct slu_err *err);
int value_kinds(struct arena *a, struct slice list, struct slice *out, struct slu_err *err);

int value_trace(struct arena *a, struct slice parent, struct slice state, struct slice *out);

/* Returns a pointer into out. */
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
 *      json_read_share     struct slice   string
 *      json_read_kind      struct slice   string
 *      json_read_line      struct slice   string
 *      json_read_object    struct slice   object, as written; max: bytes
 */
json_read json_read_name, json_read_spelled, json_read_id, json_read_receipt, json_read_span;
json_read json_read_kind, json_read_priority, json_read_lease, json_read_key, json_read_share, json_read_line, json_read_object;

/* Fills err after r failed: the element of its array (index, or -1), the expected value, the
 * value found, and where. Returns the code. */
int json_explain(const struct json *r, int64_t index, struct slu_err *err);

#endif
