/*
 * replay.c - run a fuzz target over the files of a folder, as a test: TAP, one line a
 * file. For builds without libFuzzer.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum {
	MOST = 1 << 20
};

/* The name is said first: when the target crashes, it is the last one said. Each
 * input is copied to where its memory ends with it, for the sanitizer. */
static int
replay(const char *path)
{
	static uint8_t bytes[MOST];
	FILE *const f = fopen(path, "rb");
	uint8_t *exact;
	size_t n;

	printf("# %s\n", path);
	fflush(stdout);
	if (!f)
		return 1;
	n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	exact = malloc(n + 1);
	if (!exact)
		return 1;
	memcpy(exact + 1, bytes, n);
	(void)LLVMFuzzerTestOneInput(exact + 1, n); /* always 0 */
	free(exact);
	return 0;
}

static int
is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int
replay_folder(const char *folder, struct dirent **entries, int n)
{
	int failed = 0;

	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		char path[4096];
		int rc;

		(void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		rc = replay(path);
		failed |= rc;
		printf("%s %d - %s\n", rc ? "not ok" : "ok", i + 1, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return failed;
}

int
main(int argc, char **argv)
{
	struct dirent **entries;
	int n;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	n = scandir(argv[1], &entries, is_file, alphasort);
	if (n <= 0) {
		fprintf(stderr, "%s: no files\n", argv[1]);
		return 2;
	}
	return replay_folder(argv[1], entries, n);
}
