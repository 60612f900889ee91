/*
 * nodes_node_disk.c - all files of a node's disk as bytes.
 */
#include "nodes_node.h"

#include <stdio.h>

void
node_load_disk(void)
{
	struct disk *const d = &node.disk.disk;
	struct sim_image_file f;
	uint32_t at = 0;

	simdisk_init(&node.disk);
	node.disk.steady = true; /* the world tears the files of a node that is down */
	while (sim_image_next(node.channel->bytes, node.start.n_bytes, &at, &f)) {
		char path[SIM_NAME];
		char *slash;
		int folder, file;

		snprintf(path, sizeof path, "%.*s", SIM_NAME - 1, f.name);
		slash = strrchr(path, '/');
		*slash = 0;
		folder = d->ops->folder(d, path);
		file = d->ops->create(d, folder, slash + 1);
		CHECK(folder >= 0 && file >= 0);
		CHECK_EQ(0, d->ops->write(d, file, f.content, f.n, 0));
		d->ops->close(d, file);
		d->ops->close(d, folder);
	}
}

void
node_save_disk(void)
{
	struct node_told *const t = &node.channel->told;
	const char *name;

	t->n_bytes = 0;
	for (unsigned i = 0; (name = simdisk_name(&node.disk, i)) != NULL; i++) {
		size_t size;
		const char *const p = simdisk_content(&node.disk, name, &size);
		const uint32_t n = (uint32_t)size;

		CHECK(t->n_bytes + strlen(name) + 5 + n <= NODES_BYTES);
		memcpy(t->bytes + t->n_bytes, name, strlen(name) + 1);
		t->n_bytes += (uint32_t)strlen(name) + 1;
		memcpy(t->bytes + t->n_bytes, &n, sizeof n);
		if (n) /* an empty file may have no content */
			memcpy(t->bytes + t->n_bytes + sizeof n, p, n);
		t->n_bytes += (uint32_t)sizeof n + n;
	}
}
