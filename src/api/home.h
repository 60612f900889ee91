/*
 * home.h - the page for a person with a browser: at /, and for a path that no route has.
 *
 *      GET /  Accept: text/html    a page: version, state, links
 *      GET /  otherwise            {"name":"sluice","version":"0.2.0","status":"serving", ...}
 *      a path that is not there    the page as 404, or the JSON error of api_describe
 *
 * The page is constant but for the state. It contains nothing of the request, has no script,
 * and its Content-Security-Policy allows its own style and nothing else.
 */
#ifndef API_HOME_H
#define API_HOME_H

struct call;

void home(struct call *c, void *api);

/* For server_conf.page: the page for a path that no route has, written to c->out, if the client
 * asked for HTML. Returns its content type, or NULL. */
const char *home_page(struct call *c, void *api);

#endif
