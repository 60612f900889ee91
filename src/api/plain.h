/*
 * plain.h - /healthz, /readyz, /metrics and /openapi.json: for those who watch, and
 * for programs that want to know what there is.
 *
 * healthz: the process answers. readyz: every shard takes work, and no stop has
 * begun; else 503 and why. metrics: Prometheus text.
 */
#ifndef API_PLAIN_H
#define API_PLAIN_H

struct call;

void plain_healthz(struct call *c, void *arg);
void plain_readyz(struct call *c, void *arg);
void plain_metrics(struct call *c, void *arg);
void plain_openapi(struct call *c, void *arg);

#endif
