#include "server/place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "/a" of "/a/b" and of "/a/b/", "/" of "/a", "." of "a". False: it is too long for a path. */
static bool
folder_above(const char *path, char out[static PATH_MAX])
{
	char *slash;
	size_t n = strlen(path);

	if (n >= PATH_MAX)
		return false;
	while (n > 1 && path[n - 1] == '/')
		n--;
	memcpy(out, path, n);
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash)
		(void)snprintf(out, PATH_MAX, ".");
	else
		slash[slash == out] = '\0';
	return true;
}

/* Makes an entry in the folder and removes it: permission bits do not show what a file system
 * refuses to everybody, /proc for one. False: errno says why. */
static bool
takes_entries(const char *folder)
{
	char probe[PATH_MAX + 32];

	(void)snprintf(probe, sizeof probe, "%s/.sluiced-check-XXXXXX", folder);
	return mkdtemp(probe) && rmdir(probe) == 0;
}

static int
check_above(const char *what, const char *path, struct slu_err *err)
{
	char above[PATH_MAX];
	struct stat st;

	if (!folder_above(path, above))
		return slu_fail(err, SLU_EINVAL, "%s: the path is longer than %d bytes", what,
				PATH_MAX - 1);
	if (stat(above, &st) == 0 && !S_ISDIR(st.st_mode))
		return slu_fail(err, SLU_EINVAL, "%s %s: %s is not a folder", what, path, above);
	if (!takes_entries(above))
		return slu_fail(err, SLU_EINVAL, "%s %s: folder %s: %m", what, path, above);
	return 0;
}

int
place_check(const char *what, const char *path, enum place_kind kind, struct slu_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? check_above(what, path, err)
				       : slu_fail(err, SLU_EINVAL, "%s %s: %m", what, path);
	if (!S_ISDIR(st.st_mode) != (kind == PLACE_FILE))
		return slu_fail(err, SLU_EINVAL, "%s %s: expected a %s", what, path,
				kind == PLACE_FILE ? "file" : "folder");
	return access(path, kind == PLACE_FILE ? W_OK : R_OK | W_OK | X_OK)
		       ? slu_fail(err, SLU_EINVAL, "%s %s: %m", what, path)
		       : 0;
}
