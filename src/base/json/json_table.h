/*
 * json_table.h - reads an object into a struct by a table, one row for each member.
 *
 *         static const struct json_field fields[] = {
 *                 JSON_FIELD(text, struct item, queue, .required = true, .max = 128),
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
 * A member that is null counts as missing, unless it is required. Two members with the
 * same name are refused if a row has that name. Error texts begin with the name:
 * "priority: expected a whole number from 0 to 10".
 *
 * A row may have a second name, `also`. An object may use both names if the values are
 * equal. The C member of that row is, or begins with, the struct slice to compare.
 *
 * The objects of an array often begin with the same members, byte for byte: the namespace and
 * the queue. json_fields_again reads these once: it remembers the first members in a row whose
 * rows have `repeats`, and copies their values into each object that has the same bytes.
 */
#ifndef BASE_JSON_JSON_TABLE_H
#define BASE_JSON_JSON_TABLE_H

#include "base/json/json.h"

struct json_field;

/* Reads the next value into place. A caller may write its own. */
typedef void json_read(struct json *r, const struct json_field *f, void *place);

struct json_field {
	struct slice name;
	json_read *read;
	size_t offset; /* in the struct */
	size_t size;   /* of the C member; the reader asserts that it fits */
	bool required;
	bool repeats;      /* json_fields_again may copy the value from an object before */
	struct slice also; /* a second name, or empty */
	int64_t min, max;  /* range of a number (both 0: any), or bytes of a text (max 0: any) */
};

/* A row: the name in JSON, the reader, the C member, and limits. */
#define JSON_ROW(key, reader, type, member, ...)        \
	{                                               \
		.name = { key, sizeof(key) - 1 },       \
		.read = (reader),                       \
		.offset = offsetof(type, member),       \
		.size = sizeof(((type *)NULL)->member), \
		__VA_ARGS__                             \
	}

/* A row whose C member has the name of the JSON member. how: the end of the name of one of the
 * readers below. */
#define JSON_FIELD(how, type, member, ...) JSON_ROW(#member, json_read_##how, type, member, __VA_ARGS__)

/* Rows for up to eight members of one kind: JSON_FIELDS(text, struct item, queue, key). */
/* clang-format off */
#define JSON_FIELDS(how, type, ...) JSON_FIELDS_OF(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(json_read_##how, type, __VA_ARGS__)
#define JSON_FIELDS_OF(a, b, c, d, e, f, g, h, n, ...) JSON_FIELDS_##n
#define JSON_FIELDS_1(read, type, member)      JSON_ROW(#member, read, type, member)
#define JSON_FIELDS_2(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_1(read, type, __VA_ARGS__)
#define JSON_FIELDS_3(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_2(read, type, __VA_ARGS__)
#define JSON_FIELDS_4(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_3(read, type, __VA_ARGS__)
#define JSON_FIELDS_5(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_4(read, type, __VA_ARGS__)
#define JSON_FIELDS_6(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_5(read, type, __VA_ARGS__)
#define JSON_FIELDS_7(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_6(read, type, __VA_ARGS__)
#define JSON_FIELDS_8(read, type, member, ...) JSON_ROW(#member, read, type, member), JSON_FIELDS_7(read, type, __VA_ARGS__)
/* clang-format on */

enum json_unknown {
	JSON_LENIENT, /* skip members without a row */
	JSON_STRICT   /* refuse them */
};

/* The largest C member of a row with a second name. */
#define JSON_ALSO_MAX 64

/* The rows of a table that an object has, a bit each. */
struct json_seen {
	uint64_t named; /* by the name */
	uint64_t also;  /* by the second name */
	uint64_t given; /* and the value was not null */
};

/* The order in which senders wrote members so far, for one table. Zeroed: nothing is known. A wrong guess costs time alone. */
struct json_habit {
	uint64_t required; /* the rows of the table that are required */
	size_t n;          /* rows of the table; 0: not known yet */
	uint8_t next[65];  /* for 1 + a row: the row that followed it; for 0: the first row */
};

/* Members of an object that others repeat. Zeroed but for habit: none. */
struct json_again {
	struct json_habit *habit; /* of the caller, who may keep it for other documents */
	struct slice raw;         /* the members as written, without the comma behind; n 0: none */
	size_t value;             /* where in raw the last value begins */
	struct json_seen seen;    /* their rows */
	size_t last;              /* 1 + the row of the last one */
	struct slice head;        /* from the brace to the colon of the member that follows them; n 0: not known */
	size_t follower;          /* the row of that member */
	uint64_t values[8];       /* their C members, in the order of the rows */
};

/* Reads the next object. At most 64 fields. Returns a bit for each member that the object has, 1 <<
 * its row; other members of out stay unchanged. */
uint64_t json_fields(struct json *r, const struct json_field *fields, size_t n,
		     enum json_unknown unknown, void *out);

/* The same with a habit that the caller keeps for other objects of the table. */
uint64_t json_fields_habit(struct json *r, const struct json_field *fields, size_t n,
			   enum json_unknown unknown, struct json_habit *habit, void *out);

/* The same for the objects of one array, with one `again` for all of them. */
uint64_t json_fields_again(struct json *r, const struct json_field *fields, size_t n,
			   enum json_unknown unknown, struct json_again *again, void *out);

/*      reader            C member         value
 *      json_read_bool    bool             true or false
 *      json_read_i64     int64_t          whole number
 *      json_read_u64     uint64_t         whole number; min and max not negative
 *      json_read_double  double           number
 *      json_read_text    struct slice     string, unescaped; see json_text
 *      json_read_chars   char []          string, unescaped, with a NUL; a longer one is refused
 *      json_read_base64  struct slice     string, decoded into the room of json_room
 *      json_read_time    slu_time         string, a moment of RFC 3339
 *      json_read_raw     struct slice     any value, as written
 */
json_read json_read_bool, json_read_i64, json_read_u64, json_read_double;
json_read json_read_text, json_read_chars, json_read_base64, json_read_time, json_read_raw;

#endif
