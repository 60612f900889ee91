/*
 * place.h - can a file or a folder of the settings be used or made, before it is?
 */
#ifndef SERVER_PLACE_H
#define SERVER_PLACE_H

#include <sluice/err.h>

enum place_kind {
	PLACE_FILE,  /* to append to */
	PLACE_FOLDER /* to keep files in */
};

/* It is there, of that kind and writable; or the folder above it is, so that it can be made.
 * Nothing is made. what is the setting: "--data". SLU_EINVAL. */
int place_check(const char *what, const char *path, enum place_kind kind, struct slu_err *err);

#endif
