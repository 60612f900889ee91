/*
 * place.h - checks whether a file or folder of the settings can be used or created.
 */
#ifndef SERVER_PLACE_H
#define SERVER_PLACE_H

#include <sluice/err.h>

enum place_kind {
	PLACE_FILE,  /* to append to */
	PLACE_FOLDER /* to keep files in */
};

/* Checks that `path` is there, of that kind and writable, or that the folder above it takes new
 * entries. Leaves nothing behind. what: the setting, "--data". Returns SLU_EINVAL otherwise. */
int place_check(const char *what, const char *path, enum place_kind kind, struct slu_err *err);

#endif
