#include "cli/cli.h"

#include "cli/lib/complete.h"
#include "cli/lib/session.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Opens descriptors 0, 1 and 2 if they are closed. A file that got one of these numbers would be used
 * as stdin, stdout or stderr, here and in the commands that we run. */
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
		return session_run(&cli_version, 0, argv);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return session_run(&cli_help, 0, argv);
	if (argc > 1 && strcmp(argv[1], COMPLETE_OPTION) == 0)
		return complete(cli_commands, argc - 2, argv + 2);
	return cli_run(cli_commands, "sluice", argc - 1, argv + 1);
}
