/*
 * credentials.h - the token that is shown to a server, and where it comes from:
 *
 *      --token-file FILE   before   SLUICE_TOKEN   before   SLUICE_TOKEN_FILE
 *
 * and before that of a context (context.h).
 *
 * Never a flag itself: every user of the machine reads those.
 */
#ifndef CLI_CREDENTIALS_H
#define CLI_CREDENTIALS_H

#include <sluice/err.h>

/* file may be NULL. *out: to be freed by mem_free, or NULL: there is none. SLU_EINVAL and
 * SLU_EDOWN name the file or the variable, and never what is in it. */
int credentials_token(const char *file, char **out, struct slu_err *err);

/* The token of a file; "-" is stdin. */
int credentials_file(const char *file, char **out, struct slu_err *err);

#endif
