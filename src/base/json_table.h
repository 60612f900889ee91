/*
 * json_table.h - an object into a struct, by a table: one row a member.
 *
 *         static const struct json_field fields[] = {
 *                 JSON_FIELD(text, struct item, topic, .required = true, .max = 128),
 *                 JSON_FIELD(i64, struct item, priority, .min = 0, .max = 10),
 *                 JSON_FIELD(base64, struct item, payload),
 *                 JSON_FIELD(time, struct item, deliver_after),
 *         };
 *
 *         json_array(&r);
 *         while (json_element(&r)) {
 *                 struct item item = { .priority = 5 };
 *
 *                 json_fields(&r, fields, COUNT(fields), JSON_STRICT, &item);
 *                 ...
 *         }
 *         return json_end(&r, &err);
 *
 * A member that is null counts as left out, unless it is required. Two members of one
 * name are refused when a row has that name. Messages begin with the name: "priority:
 * expected a whole number from 0 to 10".
 *
 * A row may have a second name, `also`. An object may have both names if the values are the
 * same. The C member of such a row is, or begins with, a struct slice: that is compared.
 */
#ifndef BASE_JSON_TABLE_H
#define BASE_JSON_TABLE_H

#include "base/json.h"

struct json_field;

/* Read the value that comes next into place. A caller may bring its own. */
typedef void json_read(struct json *r, const struct json_field *f, void *place);

struct json_field {
	struct slice name;
	json_read *read;
	size_t offset; /* in the struct */
	size_t size;   /* of the C member; readers assert that it is theirs */
	bool required;
	struct slice also; /* a second name, or empty: see below */
	int64_t min, max;  /* numbers: range, both 0 for none. text: bytes, max 0 for none */
};

/* how: the end of the name of one of the readers below. The C member is named as the
 * JSON member is; where it cannot be, write the row out. */
#define JSON_FIELD(how, type, member, ...)               \
	{                                                \
		.name = { #member, sizeof #member - 1 }, \
		.read = json_read_##how,                 \
		.offset = offsetof(type, member),        \
		.size = sizeof(((type *)NULL)->member),  \
		__VA_ARGS__                              \
	}

enum json_unknown {
	JSON_LENIENT, /* members that have no row are skipped */
	JSON_STRICT   /* or refused */
};

/* A C member that has a row with a second name is at most this large. */
#define JSON_ALSO_MAX 64

/* Read the object that comes next. At most 64 fields. Returns a bit for each field
 * that was given, 1 << its row; out keeps what it had where nothing was given. */
uint64_t json_fields(struct json *r, const struct json_field *fields, size_t n,
		     enum json_unknown unknown, void *out);

/*      reader            C member         value
 *      json_read_bool    bool             true or false
 *      json_read_i64     int64_t          whole number
 *      json_read_i32     int32_t          whole number
 *      json_read_u64     uint64_t         whole number; min and max not negative
 *      json_read_double  double           number
 *      json_read_text    struct slice     string, unescaped; see json_text
 *      json_read_base64  struct slice     string, decoded into the room of json_room
 *      json_read_time    slu_time         string, a moment of RFC 3339
 *      json_read_string  struct json_str  string, as it is written
 *      json_read_raw     struct slice     any value, as it is written
 */
json_read json_read_bool, json_read_i64, json_read_i32, json_read_u64;
json_read json_read_double, json_read_text, json_read_base64, json_read_time;
json_read json_read_string, json_read_raw;

#endif
