#include "peers/usage.h"

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

/* The first number of a thread's schedstat: nanoseconds it ran. */
static slu_time
thread_cpu(long pid, const char *thread)
{
	char path[80], line[64] = "";
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%ld/task/%.20s/schedstat", pid, thread);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(line, sizeof line, f))
		line[0] = '\0'; /* the thread has ended meanwhile */
	(void)fclose(f);
	return (slu_time)strtoll(line, NULL, 10);
}

static slu_time
process_cpu(long pid)
{
	slu_time sum = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			sum += thread_cpu(pid, e->d_name);
	if (dir)
		closedir(dir);
	return sum;
}

static void
process_memory(long pid, uint64_t *own, uint64_t *shared)
{
	char path[64], line[128];
	FILE *f;

	*own = *shared = 0;
	(void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			*own = strtoull(line + 8, NULL, 10) * 1024;
		if (strncmp(line, "RssShmem:", 9) == 0)
			*shared = strtoull(line + 9, NULL, 10) * 1024;
	}
	if (f)
		(void)fclose(f);
}

/* The parent stands after the name, which may have anything in it, and the state. */
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

		if (!all[i].ours)
			continue;
		process_memory(all[i].pid, &own, &shared);
		out->cpu += process_cpu(all[i].pid);
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
