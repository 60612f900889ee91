#include "server/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number in a file; 0 if the file is missing or says "max". */
static uint64_t
read_limit(const char *root, const char *group, const char *name)
{
	char path[4096];
	char text[64] = "";
	FILE *f;

	if (snprintf(path, sizeof path, "%s%s/%s", root, group, name) >= (int)sizeof path)
		return 0;
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof text, f))
		text[0] = 0;
	fclose(f);
	return strtoull(text, NULL, 10);
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	if (!a || !b)
		return a ? a : b;
	return a < b ? a : b;
}

/* The lowest limit of the group and of its parents. */
static uint64_t
group_limit(const char *root, char *group, const char *name)
{
	uint64_t limit = 0;

	for (;;) {
		char *const end = strrchr(group, '/');

		limit = smaller(limit, read_limit(root, group, name));
		if (!end)
			return limit;
		*end = 0;
	}
}

/* A line is "0::/group" (version 2) or "4:memory,other:/group" (version 1). */
static uint64_t
line_limit(const char *root, char *line)
{
	char *const kinds = strchr(line, ':');
	char *const group = kinds ? strchr(kinds + 1, ':') : NULL;
	char below[4096];

	if (!group)
		return 0;
	*group = 0;
	line = group + 1;
	line[strcspn(line, "\n")] = 0;
	if (strcmp(line, "/") == 0)
		line[0] = 0;
	if (kinds[1] == 0)
		return group_limit(root, line, "memory.max");
	if (!strstr(kinds + 1, "memory") ||
	    snprintf(below, sizeof below, "%s/memory", root) >= (int)sizeof below)
		return 0;
	return group_limit(below, line, "memory.limit_in_bytes");
}

uint64_t
machine_cgroup_memory(const char *own, const char *root)
{
	FILE *const f = fopen(own, "re");
	char line[4096];
	uint64_t limit = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		limit = smaller(limit, line_limit(root, line));
	fclose(f);
	return limit;
}

uint64_t
machine_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	const uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;

	return smaller(all, machine_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup"));
}
