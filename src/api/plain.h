/*
 * plain.h - /healthz, /readyz and /openapi.json: for those who watch, and for programs
 * that want to know what there is.
 *
 * healthz: the process answers, and no more. readyz: every shard takes new work and no
 * stop has begun; else 503 and all that is in the way:
 *
 *      {"error":"shard_failed","message":"...","status":"not_ready","reasons":[
 *        {"reason":"shard_failed","shard":1,"message":"sync 00000003.log: ..."},
 *        {"reason":"disk_full","shard":0,"message":"..."}]}
 *
 * The reason is the name of an error: starting, closed (it stops), shard_failed,
 * disk_full. While a log is read back, `read_bytes` and `log_bytes` say how far it is.
 */
#ifndef API_PLAIN_H
#define API_PLAIN_H

struct call;

void plain_healthz(struct call *c, void *arg);
void plain_readyz(struct call *c, void *arg);
void plain_openapi(struct call *c, void *arg);

#endif
