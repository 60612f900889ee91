/*
 * systemd.h - the protocol of the service manager (systemd).
 *
 *      LISTEN_PID, LISTEN_FDS         listening sockets, from descriptor 3 on
 *      NOTIFY_SOCKET                  where to send the state
 *      WATCHDOG_PID, WATCHDOG_USEC    how often at least to send WATCHDOG=1
 *
 * As sd_listen_fds(3) and sd_notify(3), without their library. Without a service manager
 * these functions do nothing.
 */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <sluice/api.h>

enum {
	SYSTEMD_FIRST_FD = 3,
	SYSTEMD_FDS_MAX = 16
};

/* The number of sockets passed to this process. */
unsigned systemd_sockets(void);

/* Send lines of NAME=VALUE. Failures are ignored. */
void systemd_notify(const char *text);

/* READY=1 and a status text. */
void systemd_ready(const char *status);

/* RELOADING=1; systemd_ready follows. */
void systemd_reloading(void);

/* The interval for WATCHDOG=1: half of WATCHDOG_USEC; SLU_NEVER: not wanted. */
slu_time systemd_watchdog(void);

#endif
