/*
 * health.h - /healthz, /readyz and /openapi.json.
 *
 * /healthz answers 200 while the process runs. /readyz answers 200 if every shard accepts new
 * work and no stop has begun; otherwise 503 with all reasons:
 *
 *      {"error":"shard_failed","message":"...","status":"not_ready","reasons":[
 *        {"reason":"shard_failed","shard":1,"message":"sync 00000003.log: ..."},
 *        {"reason":"disk_full","shard":0,"message":"..."}]}
 *
 * The reason is the name of an error: starting, closed (the server stops), shard_failed,
 * disk_full. While a log is read back, `read_bytes` and `log_bytes` show the progress.
 */
#ifndef API_HEALTH_H
#define API_HEALTH_H

struct call;

void health_healthz(struct call *c, void *arg);
void health_readyz(struct call *c, void *arg);
void health_openapi(struct call *c, void *arg);

#endif
