/*
 * manager.h - what a service manager (systemd) passes to us and hears from us.
 *
 *      LISTEN_PID, LISTEN_FDS         listening sockets, from descriptor 3 on
 *      NOTIFY_SOCKET                  where it wants to hear how we are
 *      WATCHDOG_PID, WATCHDOG_USEC    how often at least
 *
 * The protocol of sd_listen_fds(3) and sd_notify(3), without their library. Without a
 * manager all of this does nothing.
 */
#ifndef SERVER_MANAGER_H
#define SERVER_MANAGER_H

#include <sluice/api.h>

enum {
	MANAGER_FIRST_FD = 3,
	MANAGER_FDS_MAX = 16
};

/* How many sockets were passed to this process. */
unsigned manager_sockets(void);

/* Tell it: lines of NAME=VALUE. There is nobody to tell when that fails. */
void manager_notify(const char *text);

/* READY=1, and what a person sees in its status. */
void manager_ready(const char *status);

/* RELOADING=1; manager_ready follows. */
void manager_reloading(void);

/* How often to say WATCHDOG=1, half of what was asked for; SLU_NEVER: not at all. */
slu_time manager_watchdog(void);

#endif
