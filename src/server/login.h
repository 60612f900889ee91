/*
 * login.h - who may call this server, by its settings.
 *
 *      auth.keys, auth.jwks, auth.secret, auth.audience, ...   ──> auth.h
 *      auth.hosts, auth.metrics, listen                        ──> guard.h
 */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "auth/guard.h"
#include "conf/reload.h"

enum {
	LOGIN_PLACES = 16
};

struct login {
	struct guard guard;
	struct guard_place places[LOGIN_PLACES];
};

/* True if these settings require authentication. */
bool login_is_on(const struct conf *conf);

/* SLU_EINVAL if the keys cannot be read; the error names the setting or the file. */
int login_check(const struct conf *conf, struct slu_err *err);

/* Adds a part to reload: keys, audience, issuer and leeway may change in a running server.
 * SLU_EINVAL; the error names the setting or the file. */
int login_open(struct login *l, const struct conf *conf, struct reload *reload,
	       struct slu_log *log, struct slu_err *err);
void login_close(struct login *l); /* zeroed is fine */

/* Before the server starts: describe the listener with that number. */
void login_place(struct login *l, unsigned listener, struct guard_place place);

#endif
