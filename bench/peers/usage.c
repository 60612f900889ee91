#include "peers/usage.h"

#include "bench/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PROCESSES_MAX = 4096
};

struct process {
	long pid, parent;
	bool ours;
};

/* Reads the parent: it follows the name, which may contain anything, and the state. */
static long
parent_of(long pid)
{
	char path[64], line[512] = "";
	const char *at;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	at = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	(void)fclose(f);
	return at && strlen(at) > 4 ? strtol(at + 4, NULL, 10) : -1;
}

static size_t
list(struct process *all, pid_t root)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (dir && n < PROCESSES_MAX && (e = readdir(dir)) != NULL) {
		const long pid = strtol(e->d_name, NULL, 10);

		if (pid > 0)
			all[n++] = (struct process){ pid, parent_of(pid), pid == (long)root };
	}
	if (dir)
		closedir(dir);
	return n;
}

static bool
mark_children(struct process *all, size_t n)
{
	bool more = false;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && !all[i].ours; k++)
			if (all[k].ours && all[i].parent == all[k].pid)
				all[i].ours = more = true;
	return more;
}

void
usage_of(pid_t root, struct usage *out)
{
	static struct process all[PROCESSES_MAX];
	const size_t n = list(all, root);
	uint64_t largest = 0;

	*out = (struct usage){ 0 };
	while (mark_children(all, n))
		;
	for (size_t i = 0; i < n; i++) {
		uint64_t own, shared;
		slu_time cpu;

		if (!all[i].ours)
			continue;
		process_memory(all[i].pid, &own, &shared);
		cpu = process_cpu(all[i].pid);
		out->cpu += cpu > 0 ? cpu : 0;
		out->bytes += own;
		if (shared > largest)
			largest = shared;
	}
	out->bytes += largest;
}

slu_time
usage_own_cpu(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
	return t.tv_sec * SLU_SEC + t.tv_nsec;
}
