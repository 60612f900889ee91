/* zonefile.h - zones of the system's zoneinfo, for tests. */
#ifndef TESTS_ZONEFILE_H
#define TESTS_ZONEFILE_H

#include "test.h"

#include "core/calendar/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline struct zone *
zonefile_open(const char *name)
{
	static char bytes[ZONE_FILE];
	struct zone *z;
	char path[128];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
	f = fopen(path, "rb");
	CHECK(f);
	n = fread(bytes, 1, sizeof bytes, f);
	(void)fclose(f);
	CHECK_EQ(0, zone_new(&z, (struct slice){ bytes, n }, NULL), name);
	return z;
}

/* Makes localtime_r of the C library use the zone, as an oracle. */
static inline void
zonefile_oracle(const char *name)
{
	CHECK_EQ(0, setenv("TZ", name, 1));
	tzset();
}

#endif
