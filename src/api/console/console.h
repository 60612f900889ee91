/*
 * console.h - serves the web console: constant files, the same for every caller.
 *
 *      GET /console/        index.html
 *      GET /console/FILE    a file of web/, packed by web/pack.py
 *      GET /console         301 to console/
 *      GET /v1/admin/me     who the caller is, and what the caller may do
 *
 * The pages read everything from the API, with the rights of the caller. The files hold no data, so they
 * need no token.
 *
 *  CONSOLE-1  The files load nothing from another site, and no text becomes code: the
 *             Content-Security-Policy allows scripts and styles of this server alone, without unsafe-*.
 *  CONSOLE-2  No page of another site can show the console in a frame.
 *  CONSOLE-3  A browser asks for each file again by its ETag and gets 304 if the file is unchanged. So a
 *             new server is never used with old pages.
 *  CONSOLE-4  With `console: off` every path of the console is 404, and / does not lead there.
 */
#ifndef API_CONSOLE_CONSOLE_H
#define API_CONSOLE_CONSOLE_H

struct call;

/* A file of web/. */
struct console_file {
	const char *name; /* below /console/ */
	const char *type;
	const char *etag; /* with its quotes */
	const unsigned char *plain, *gzip;
	unsigned plain_size, gzip_size;
};

extern const struct console_file console_files[]; /* made by web/pack.py */
extern const unsigned console_n_files;

void console_file(struct call *c, void *arg);  /* /console/... */
void console_enter(struct call *c, void *arg); /* /console */
void console_me(struct call *c, void *arg);    /* /v1/admin/me */

/* Leads a browser from / to the console. */
void console_redirect(struct call *c, const char *place);

#endif
