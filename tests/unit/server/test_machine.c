#include "test.h"

#include "server/machine.h"

#include <stdio.h>
#include <sys/stat.h>

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(the_smallest_limit_of_a_group_and_those_above_it_counts)
{
	static const struct {
		const char *label, *own, *top, *below, *lowest;
		uint64_t limit;
	} cases[] = {
		{ "its own", "0::/a/b\n", "max\n", "5000\n", "3000\n", 3000 },
		{ "one above", "0::/a/b\n", "max\n", "2000\n", "3000\n", 2000 },
		{ "none", "0::/a/b\n", "max\n", "max\n", "max\n", 0 },
		{ "at the root", "0::/\n", "7000\n", "1\n", "1\n", 7000 },
		{ "other kinds first", "3:cpu:/a\n0::/a/b\n", "max\n", "5000\n", "3000\n", 3000 },
		{ "nothing that is read", "nonsense\n", "1\n", "1\n", "1\n", 0 },
	};

	CHECK(mkdir("root", 0777) == 0 && mkdir("root/a", 0777) == 0 && mkdir("root/a/b", 0777) == 0);
	EACH(c, cases) {
		write_file("own", cases[c].own);
		write_file("root/memory.max", cases[c].top);
		write_file("root/a/memory.max", cases[c].below);
		write_file("root/a/b/memory.max", cases[c].lowest);
		if (machine_cgroup_memory("own", "root") != cases[c].limit)
			test_fail(__FILE__, __LINE__, "%s", cases[c].label);
	}
}

TEST(groups_of_version_1_are_read_below_memory)
{
	CHECK(mkdir("root", 0777) == 0 && mkdir("root/memory", 0777) == 0 &&
	      mkdir("root/memory/a", 0777) == 0);
	write_file("own", "9:pids:/x\n4:memory:/a\n");
	write_file("root/memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("root/memory/a/memory.limit_in_bytes", "4096\n");
	CHECK_EQ(4096, machine_cgroup_memory("own", "root"));
}

TEST(without_groups_it_is_the_machine)
{
	CHECK_EQ(0, machine_cgroup_memory("no", "where"));
	CHECK(machine_memory() > 1 << 20);
}
