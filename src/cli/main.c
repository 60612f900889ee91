#include "cli/cli.h"

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
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("sluice " SLUICE_VERSION);
		return CLI_OK;
	}
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		puts("sluice: a queue for work\n");
	return cli_run(cli_commands, "sluice", argc - 1, argv + 1);
}
