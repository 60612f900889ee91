#include "engine/log/standby.h"

#include "engine/log/file.h"
#include "mirror/follow.h"

#include <stdio.h>

enum {
	NUMBER = 16 /* bytes of a number, with the NUL */
};

static bool
goes_on(void *arg, uint64_t bytes)
{
	const struct logengine_standby *const s = arg;

	return s->goes_on(s->arg, bytes);
}

/* Payload files are copies of objects in the store. */
static void
drop_files(void *arg, struct disk *disk, int folder)
{
	const struct logengine_standby *const s = arg;
	struct logengine_files files;

	(void)folder;
	logengine_files_init(&files);
	if (logengine_files_open(&files, disk, s->log, s->folder, false, NULL) == 0)
		logengine_files_drop(&files); /* what stays costs room only */
	logengine_files_close(&files);
	logengine_files_release(&files);
}

static struct follow_conf
conf_of(struct logengine_standby *s, char name[static NUMBER])
{
	(void)snprintf(name, NUMBER, "%u", s->shard);
	return (struct follow_conf){
		.store = s->store,
		.uuid = s->uuid,
		.shard = name,
		.folder = s->folder,
		.disk = s->disk,
		.boot = s->boot,
		.log = s->log,
		.goes_on = goes_on,
		.emptied = drop_files,
		.arg = s,
	};
}

int
logengine_standby_follow(struct logengine_standby *s, struct slu_err *err)
{
	char name[NUMBER];
	const struct follow_conf conf = conf_of(s, name);
	struct follow_facts facts;
	const int rc = follow_line(&conf, s->span, &facts, err);

	s->bytes = facts.bytes;
	if (!rc)
		s->span = facts.span;
	return rc;
}

int
logengine_standby_empty(struct logengine_standby *s, struct slu_err *err)
{
	char name[NUMBER];
	const struct follow_conf conf = conf_of(s, name);

	s->span = s->bytes = 0;
	return follow_empty(&conf, err);
}
