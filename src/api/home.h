/*
 * home.h - the page for a person with a browser: at /, and for a path that no route has.
 *
 *      GET /  Accept: text/html    302 to the console (api/console/console.h); without a console, or if the
 *                                  server does not know its name in Host: a page with version, state, links
 *      GET /  otherwise            {"name":"sluice","version":"0.2.0","status":"serving", ...}
 *      a path without a route      the page as 404, or the JSON error of dialect_describe
 *
 * The page is constant except for the state. It contains nothing of the request, has no script,
 * and its Content-Security-Policy allows its own style and nothing else.
 */
#ifndef API_HOME_H
#define API_HOME_H

struct call;

void home(struct call *c, void *arg);

/* For http_conf.page: the page for a path that no route has, written to c->x.out, if the client
 * asked for HTML. Returns its content type, or NULL. */
const char *home_page(struct call *c, void *arg);

#endif
