#include "cli/cli.h"

#include "cli/complete.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A file that gets number 0, 1 or 2 because that was closed would be taken for stdin,
 * stdout or stderr, by us and by what we run. */
static void
open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int
main(int argc, char **argv)
{
	open_standard_files();
	if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
		return cli_version(1, argv);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help(1, argv);
	if (argc > 1 && strcmp(argv[1], ARGS_COMPLETE) == 0)
		return complete_commands(cli_commands, argc - 2, argv + 2);
	return cli_run(cli_commands, "sluice", argc - 1, argv + 1);
}
