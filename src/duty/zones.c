#include "duty/zones.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct zones_row {
	struct zones_row *next;
	struct zone *zone;
	char name[ZONE_LONGEST + 1];
};

enum {
	PATH = 512
};

void
zones_init(struct zones *z)
{
	z->first = NULL;
	pthread_mutex_init(&z->mtx, NULL); /* cannot fail without attributes */
}

void
zones_release(struct zones *z)
{
	struct zones_row *next;

	for (struct zones_row *r = z->first; r; r = next) {
		next = r->next;
		zone_free(r->zone);
		mem_free(r);
	}
	z->first = NULL;
	pthread_mutex_destroy(&z->mtx);
}

/* Returns the bytes of the file, or 0. */
static size_t
read_file(const char *name, char *out, size_t room)
{
	const char *const folder = getenv("TZDIR");
	char path[PATH];
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof path, "%s/%s", folder && folder[0] ? folder : "/usr/share/zoneinfo", name);
	f = fopen(path, "rbe");
	if (!f)
		return 0;
	n = fread(out, 1, room, f);
	(void)fclose(f);
	return n;
}

static int
read_zone(const char *name, struct zone **out, struct slu_err *err)
{
	char *const room = mem_alloc(ZONE_FILE + 1);
	size_t n;
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	n = read_file(name, room, ZONE_FILE + 1);
	if (n == 0)
		rc = slu_fail(err, SLU_EINVAL, "invalid zone: %s; expected a time zone of this machine, such as Europe/Berlin", name);
	else
		rc = zone_new(out, (struct slice){ room, n }, err);
	mem_free(room);
	return rc;
}

static int
add_row(struct zones *z, const char *name, struct zones_row **out, struct slu_err *err)
{
	struct zones_row *const r = mem_zalloc(sizeof *r);
	int rc = r ? zone_check_name(slice_of(name), err) : slu_fail(err, SLU_ENOMEM, "out of memory");

	if (!rc)
		rc = read_zone(name, &r->zone, err);
	if (rc) {
		mem_free(r);
		return rc;
	}
	(void)snprintf(r->name, sizeof r->name, "%s", name);
	r->next = z->first;
	z->first = *out = r;
	return 0;
}

/* Empty or UTC: NULL. */
static int
get_zone(struct zones *z, const char *name, const struct zone **out, struct slu_err *err)
{
	struct zones_row *r;
	int rc = 0;

	*out = NULL;
	if (name[0] == '\0' || strcmp(name, "UTC") == 0)
		return 0;
	pthread_mutex_lock(&z->mtx);
	for (r = z->first; r && strcmp(r->name, name) != 0; r = r->next)
		;
	if (!r)
		rc = add_row(z, name, &r, err);
	pthread_mutex_unlock(&z->mtx);
	*out = rc ? NULL : r->zone;
	return rc;
}

int
zones_plan(struct zones *z, const struct schedule *s, struct schedule_plan *out, struct slu_err *err)
{
	const int rc = cron_parse(&out->cron, slice_of(s->when), err);

	return rc ? rc : get_zone(z, s->zone, &out->zone, err);
}
