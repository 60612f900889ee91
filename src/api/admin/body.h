/*
 * body.h - a condition on a JSON body: PATH=VALUE.
 *
 *      user.id=42               member id of member user; user.id also means that of each object of an array user
 *      items.0.sku=A7           the sku of the first item
 *      /user/e.mail=a@b.c       a path that begins with a slash is a JSON Pointer (base/json/json_path.h)
 *
 *  BODY-1  It holds if one value at the path is VALUE: a string with this text, a number of the same value, exactly
 *          (base/json/json_same.h), or true, false, null.
 *  BODY-2  A body that is not JSON never holds, and neither does one of more than 1 MiB, which has a file of its own.
 */
#ifndef API_ADMIN_BODY_H
#define API_ADMIN_BODY_H

#include "base/json/json_path.h"

enum {
	BODY_PATH_MAX = 256 /* bytes */
};

struct body_condition {
	struct json_path path; /* points into text and names */
	struct slice value;
	bool is_number;
	char text[2 * BODY_PATH_MAX]; /* the path as a JSON Pointer */
	char names[2 * BODY_PATH_MAX];
};

/* *out must not be copied. out->value points into text. Returns SLU_EINVAL if text is not PATH=VALUE. */
int body_condition_read(struct body_condition *out, struct slice text, struct slu_err *err);

bool body_condition_holds(const struct body_condition *c, struct slice body);

/* Appends a path of dots, user.id, to a path. text and names have room for 2 * dots.n bytes and must live as long as the
 * path. Returns SLU_EINVAL. */
int body_path_add(struct json_path *path, struct slice dots, char *text, char *names, struct slu_err *err);

#endif
