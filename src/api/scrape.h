/*
 * scrape.h - GET /metrics: Prometheus text, format 0.0.4.
 *
 *      the process, the server's and the api's own counters      at once
 *      every queue                              TOPICS, all lanes together, page by page
 *      every shard                              SHARD, all together
 *
 * docs/metrics.md lists all of them; it is made from an answer of this, and a test
 * holds it to it. Names stay as they are: dashboards and alerts use them.
 *
 * Lanes that do not answer within stats.timeout are left out (api/gather.h).
 *
 * At most `metrics.queues` queues have lines of their own. The others are added up as
 * namespace ".other", topic ".other", which no queue can be called.
 */
#ifndef API_SCRAPE_H
#define API_SCRAPE_H

struct call;

void scrape_metrics(struct call *c, void *api);

#endif
