/*
 * zone_rule.h - the footer of a TZif file: a time zone as POSIX writes it in TZ, such as
 * CET-1CEST,M3.5.0,M10.5.0/3. For zone.c alone. Pure.
 */
#ifndef CORE_CALENDAR_ZONE_RULE_H
#define CORE_CALENDAR_ZONE_RULE_H

#include "base/bytes.h"

/* Offsets beyond this are refused. */
#define ZONE_OFFSET_MAX 93599

enum zone_day_kind {
	ZONE_DAY_JULIAN,   /* Jn: 1 to 365, without leap days */
	ZONE_DAY_OF_YEAR,  /* n: 0 to 365, with leap days */
	ZONE_DAY_OF_MONTH, /* Mm.w.d */
};

/* The day of a year, and the local time of the change on that day. */
struct zone_day {
	enum zone_day_kind kind;
	int month;    /* 1 to 12; day of month only */
	int week;     /* 1 to 5, 5 = the last */
	int day;      /* of the week, 0 = Sunday, or of the year */
	int32_t time; /* seconds after midnight; may be negative or more than a day */
};

struct zone_rule {
	int32_t standard; /* seconds east of UTC */
	int32_t summer;   /* the same in summer; as standard if has_summer is false */
	bool has_summer;
	struct zone_day begins, ends; /* of summer time */
};

/* Returns false if the text is malformed. */
bool zone_rule_parse(struct slice text, struct zone_rule *out);

int32_t zone_rule_offset(const struct zone_rule *r, int64_t moment);
int64_t zone_rule_next(const struct zone_rule *r, int64_t moment); /* ZONE_NEVER: no change */

#endif
