/*
 * upgrade.h - GET /stream: the connection becomes one of frames (http/frames.h).
 */
#ifndef API_UPGRADE_H
#define API_UPGRADE_H

struct call;

/* For route.handle. A request without "Upgrade: sluice-stream" is answered with 426. */
void upgrade_enter(struct call *c, void *api);

#endif
