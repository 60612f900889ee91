#include "bench/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

slu_time
process_cpu(long pid)
{
	slu_time sum = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
	dir = pid > 0 ? opendir(path) : NULL;
	if (!dir)
		return -1;
	while ((e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			sum += thread_cpu(pid, e->d_name);
	closedir(dir);
	return sum;
}

void
process_memory(long pid, uint64_t *own, uint64_t *shared)
{
	char path[64], line[128];
	FILE *f;

	*own = *shared = 0;
	(void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			*own = strtoull(line + 8, NULL, 10) * 1024;
		if (strncmp(line, "RssShmem:", 9) == 0)
			*shared = strtoull(line + 9, NULL, 10) * 1024;
	}
	if (f)
		(void)fclose(f);
}
