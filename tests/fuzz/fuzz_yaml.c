/*
 * fuzz_yaml.c - any bytes as a configuration.
 *
 *  FUZZYAML-1  Whatever comes, there are values, faults or both, within their bounds.
 *  FUZZYAML-2  A value is never empty of path, and its line lies in the file.
 *  FUZZYAML-3  Whatever is said of shards makes a map, or a fault.
 */
#include "fuzz.h"

#include "conf/options.h"
#include "conf/yaml.h"

#include <stdlib.h>

static void
expect(bool holds)
{
	if (!holds)
		abort();
}

/* FUZZYAML-3 */
static void
make_map(const struct yaml_doc *doc)
{
	struct conf c = { .engines = engine_rows, .sharding = sharding_new(engine_rows) };
	char name[] = "default", engine[] = "log";
	struct conf_faults faults = { 0 };
	struct shardmap *map = NULL;

	c.sharding_default = name;
	c.sharding_enabled = true;
	c.shards = 1;
	c.config = name;
	c.engine = engine;
	for (unsigned i = 0; i < doc->n; i++) {
		const struct yaml_entry *const e = &doc->entries[i];

		if (sharding_is_part(c.sharding, e->path) && !strstr(e->path, "_file"))
			sharding_take(c.sharding, "f", e, &faults);
	}
	sharding_check(&c, &faults);
	if (!faults_any(&faults))
		expect(sharding_map(&c, 1, &map, NULL) == 0);
	shardmap_free(map);
	faults_release(&faults);
	sharding_unref(c.sharding);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yaml_doc doc = { 0 };
	struct conf_faults faults = { 0 };
	unsigned lines = 2; /* the end is behind the last */

	if (size > YAML_BYTES)
		return 0;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80;
	yaml_read(&doc, "f", (struct slice){ size ? (const char *)data : "", size }, &faults);
	expect(doc.n <= YAML_ENTRIES);
	for (unsigned i = 0; i < doc.n; i++) {
		const struct yaml_entry *const e = &doc.entries[i];

		expect(strlen(e->path) < YAML_PATH);
		expect((e->kind == YAML_VALUE) == (e->value != NULL));
		expect(e->line >= 1 && e->line <= lines);
	}
	make_map(&doc);
	yaml_release(&doc);
	faults_release(&faults);
	return 0;
}
