/* fuzz_manifest.c - a backup.json that is taken leads nowhere else, and is written the
 * same again. */
#include "fuzz.h"

#include "cli/backup/manifest.h"

#include <string.h>

static void
check_name(const char *name)
{
	FUZZ_CHECK(name[0] && name[0] != '/' && name[0] != '.');
	FUZZ_CHECK(!strstr(name, "/.") && !strstr(name, "//"));
	FUZZ_CHECK(name[strlen(name) - 1] != '/');
}

static void
check_again(const struct manifest *m)
{
	struct manifest again;
	struct slu_err err;
	struct buf text;

	buf_init(&text, SIZE_MAX);
	manifest_write(m, &text);
	FUZZ_CHECK(manifest_read(&again, buf_slice(&text), &err) == 0);
	FUZZ_CHECK(again.n_files == m->n_files && again.n_shards == m->n_shards);
	FUZZ_CHECK(again.bytes == m->bytes);
	manifest_release(&again);
	buf_release(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_err err;
	struct manifest m;

	if (manifest_read(&m, (struct slice){ (const char *)data, size }, &err) == 0) {
		for (uint32_t i = 0; i < m.n_files; i++)
			check_name(m.files[i].name);
		check_again(&m);
	}
	manifest_release(&m);
	return 0;
}
