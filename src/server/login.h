/*
 * login.h - who may call this server, out of its settings.
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

/* Must a caller say who he is, by these settings? */
bool login_is_on(const struct conf *conf);

/* Can the keys be read? SLU_EINVAL names the setting or the file. */
int login_check(const struct conf *conf, struct slu_err *err);

/* Keys, audience, issuer and leeway may change while it runs: a part of reload. SLU_EINVAL:
 * the sentence names the setting or the file. */
int login_open(struct login *l, const struct conf *conf, struct reload *reload,
	       struct slu_log *log, struct slu_err *err);
void login_close(struct login *l); /* of a zeroed one: fine */

/* Before the server starts: what is known of the listener of that number. */
void login_place(struct login *l, unsigned listener, struct guard_place place);

#endif
