/*
 * scrape.h - GET /metrics: Prometheus text, format 0.0.4.
 *
 *      the process, the server's and the api's own counters      at once
 *      every queue                              TOPICS, all lanes together, page by page
 *      every shard                              SHARD, all together
 *
 * docs/metrics.md lists all metrics; tools/metrics-doc makes it from an answer, and a test
 * compares the two. Names never change: dashboards and alerts use them.
 *
 * Lanes that do not answer within stats.timeout are left out (api/fanout.h).
 *
 * At most `metrics.queues` queues have lines of their own. The sum of the others is namespace
 * ".other", topic ".other", which is not a valid name.
 */
#ifndef API_SCRAPE_H
#define API_SCRAPE_H

struct call;

void scrape_metrics(struct call *c, void *api);

#endif
