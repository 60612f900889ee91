/*
 * credentials.h - finds the token for a server. The first of these wins:
 *
 *      --token-file FILE, SLUICE_TOKEN, SLUICE_TOKEN_FILE, the token of the context (context.h)
 *
 * No option takes the token itself: every user of the machine can read the options of a process.
 */
#ifndef CLI_LIB_CREDENTIALS_H
#define CLI_LIB_CREDENTIALS_H

#include <sluice/err.h>

/* file: the value of --token-file, or NULL. *out: the token, freed by mem_free; NULL if there is no token.
 * The texts of SLU_EINVAL and SLU_EDOWN name the file or the variable, never its content. */
int credentials_token(const char *file, char **out, struct slu_err *err);

/* Reads a token from a file; "-" is stdin. */
int credentials_file(const char *file, char **out, struct slu_err *err);

#endif
