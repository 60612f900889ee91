/*
 * objects.h - objects of a store that is reached by HTTP: what S3 and Azure have in common.
 *
 *      put      PUT     name     If-None-Match: * if the name must be absent
 *      get      GET     name     Range: bytes=...; HEAD for the size alone
 *      remove   DELETE  name
 *      list     GET     bucket   pages of names in XML
 *      clock    HEAD    bucket   the field Date of the answer
 *
 * A driver embeds struct web_objects as its first member and gives a struct objects_dialect: how a
 * request is signed and what the answers mean. It uses objects_put, objects_get and objects_remove
 * as they are, and writes its lists with objects_page.
 *
 * A request that the store refused because of its date or its old keys did nothing. It is signed
 * again, with the store's clock or with new keys, and sent again. Nothing else is repeated.
 */
#ifndef STORE_WEB_OBJECTS_H
#define STORE_WEB_OBJECTS_H

#include "store/store.h"
#include "store/web/web.h"

#include <stdatomic.h>

struct objects_call;

enum {
	OBJECTS_CODE_MAX = 64,
	OBJECTS_PROOF_MAX = 1024,     /* bytes of a proof in the query, with the NUL */
	OBJECTS_TAG_MAX = 256,        /* bytes of a tag, with the NUL */
	OBJECTS_KEY_MAX = 1025,       /* bytes of the name of an object of any program, with the NUL */
	OBJECTS_MARKER_MAX = 4096,    /* bytes of a marker of a list, with the NUL */
	OBJECTS_QUERY_MAX = 16 << 10, /* bytes of a query */
};

/* What a code of the store means ("NoSuchBucket"). A code without a row means what its status means. */
struct objects_meaning {
	const char *code; /* NULL: the end of the table */
	enum store_result result;
	enum slu_code error;
};

struct web_objects {
	struct store base;
	const struct objects_dialect *dialect;
	struct web *web;
	const char *host;      /* "https://host:port" */
	const char *root;      /* path of the bucket: "" or "/bucket" */
	const char *prefix;    /* of every name: "" or "a/b/" */
	_Atomic slu_time skew; /* the store's clock minus the clock of this machine */
};

struct objects_dialect {
	const struct objects_meaning *meanings;
	const char *code_field;   /* field of an answer with the code; NULL: only the body has it */
	const char *const *stale; /* codes after which new keys may help; NULL at the end */

	/* Adds the fields that prove who sends the call, or sets c->proof. wall: the moment of the call.
	 * renew: the store refused the keys. */
	int (*sign)(struct web_objects *o, struct objects_call *c, const char *path, slu_time wall,
		    bool renew, struct slu_err *err);

	/* Optional: sets err to a better text than the store's. Returns false if it has none. */
	bool (*explain)(const struct objects_call *c, enum slu_code code, struct slu_err *err);

	/* Elements of a list: an object; its name, ETag and time within. */
	const char *item, *key, *etag, *time;
};

/* One request. */
struct objects_call {
	const char *method;
	const char *name;  /* of an object; NULL: the bucket */
	const char *query; /* parameters in byte order; NULL: none */
	const char *range; /* value of the field Range; NULL: none */
	struct slice body;
	struct buf *out;
	size_t expected;
	bool if_absent;
	const char *if_match; /* an ETag; NULL: none */

	struct web_call web;
	char proof[OBJECTS_PROOF_MAX]; /* parameters that are a secret; "": none */
	char code[OBJECTS_CODE_MAX];   /* of a refusal: "SlowDown"; "" if the answer names none */
	bool skewed;                   /* refused for the clock of this machine; the skew is corrected */
	bool stale;                    /* refused for its keys */
};

/* For a request that cannot find an object absent, or a name taken. The caller reads c->web and
 * releases it. */
enum store_result objects_run(struct web_objects *o, struct objects_call *c, struct slu_err *err);

/* Functions of struct store_ops. */
enum store_result objects_put(struct store *s, const char *name, struct slice object,
			      enum store_mode mode, struct slu_err *err);
enum store_result objects_get(struct store *s, const char *name, uint64_t at, size_t max,
			      struct buf *out, uint64_t *size, struct slu_err *err);
enum store_result objects_remove(struct store *s, const char *name, struct slu_err *err);
enum store_result objects_remove_if(struct store *s, const char *name, const char *tag, struct slu_err *err);

/* The clock of the store, from a call that reads the bucket. */
enum store_result objects_clock(struct web_objects *o, struct objects_call *c, slu_time *wall,
				struct slu_err *err);

/* A page of a list. */
struct objects_page {
	char last[OBJECTS_KEY_MAX];      /* its last name below the prefix, also of another program */
	char marker[OBJECTS_MARKER_MAX]; /* NextMarker; "": the page has none */
	bool truncated;                  /* IsTruncated */
	bool moved;                      /* the page has a name */
	bool cut;                        /* the page has more names than were wanted */
};

/* Asks for a page and adds its names behind `after` to out, until out has max names. Leaves out
 * names of other programs. */
enum store_result objects_page(struct web_objects *o, const char *query, const char *after, uint32_t max,
			       struct objects_page *page, struct store_names *out,
			       struct slu_err *err);

/* Appends a text to a query, with all but letters, digits and - . _ ~ as %XX. */
void objects_encode(struct buf *query, const char *text);

#endif
