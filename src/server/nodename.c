#include "server/nodename.h"

#include "base/hash.h"
#include "server/node_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

enum {
	LIFE_TEXT = 2 * LINE_LIFE + 1,
	FILE_TEXT = 256,
	PATH = 4096
};

/* ---- The file `node`: NODENAME-1 ---- */

static void
write_life(const uint8_t life[static LINE_LIFE], char out[static LIFE_TEXT])
{
	for (unsigned i = 0; i < LINE_LIFE; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", life[i]);
}

/* Returns false if the text is no life. */
static bool
read_life(const char *text, uint8_t life[static LINE_LIFE])
{
	if (strlen(text) != LIFE_TEXT - 1)
		return false;
	for (unsigned i = 0; i < LINE_LIFE; i++) {
		const int high = ascii_hex(text[2 * i]), low = ascii_hex(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		life[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int
name_file(char out[static PATH], const char *folder, struct slu_err *err)
{
	if (snprintf(out, PATH, "%s/node", folder) >= PATH)
		return slu_fail(err, SLU_EINVAL, "invalid folder: the name is too long");
	return 0;
}

static int
in_use(const char *folder, struct slu_err *err)
{
	return slu_fail(err, SLU_EEXISTS, "%.150s is used by another server; expected a --data of its own", folder);
}

static int
lock_file(struct nodename *id, const char *folder, struct slu_err *err)
{
	char path[PATH];
	const int rc = name_file(path, folder, err);

	if (rc)
		return rc;
	id->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (id->file < 0)
		return slu_fail(err, SLU_EDOWN, "open %.200s: %m", path);
	return flock(id->file, LOCK_EX | LOCK_NB) ? in_use(folder, err) : 0;
}

int
nodename_check(const char *folder, struct slu_err *err)
{
	char path[PATH];
	int rc = name_file(path, folder, err), file;

	if (rc)
		return rc;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0; /* no server with stores has been here */
	rc = flock(file, LOCK_SH | LOCK_NB) ? in_use(folder, err) : 0;
	close(file);
	return rc;
}

/* A file that cannot be read is as good as none: the node gets another name. */
static void
read_file(struct nodename *id)
{
	char text[FILE_TEXT] = "", life[64] = "", name[BEAT_NAME_MAX + 1] = "";

	if (pread(id->file, text, sizeof text - 1, 0) <= 0 ||
	    sscanf(text, "life %63s name %64s", life, name) != 2)
		return;
	if (read_life(life, id->former))
		(void)snprintf(id->name, sizeof id->name, "%s", name);
}

static int
write_file(struct nodename *id, struct slu_err *err)
{
	char text[FILE_TEXT], life[LIFE_TEXT];
	int n;

	write_life(id->life, life);
	n = snprintf(text, sizeof text, "life %s\nname %s\n", life, id->name);
	if (ftruncate(id->file, 0) || pwrite(id->file, text, (size_t)n, 0) != n)
		return slu_fail(err, SLU_EDOWN, "write the file `node`: %m");
	return 0;
}

/* A name that no other node has, and that stays: members.h ranks nodes by it. */
static int
draw_name(struct nodename *id, struct slu_err *err)
{
	char host[BEAT_NAME_MAX - 9] = "node";
	uint32_t random;
	const int rc = hash_random(&random, sizeof random, err);

	if (gethostname(host, sizeof host - 1))
		(void)snprintf(host, sizeof host, "node");
	(void)snprintf(id->name, sizeof id->name, "%s-%08x", host, random);
	return rc;
}

static int
begin_life(struct nodename *id, const char *folder, struct slu_err *err)
{
	int rc = hash_random(id->life, sizeof id->life, err);

	if (!rc)
		rc = lock_file(id, folder, err);
	if (rc)
		return rc;
	read_file(id);
	if (!*id->name)
		rc = draw_name(id, err);
	return rc ? rc : write_file(id, err);
}

/* ---- The address ---- */

/* The address of the first listener; the name of the machine stands for all of its addresses. */
static void
choose_address(struct nodename *id, const struct node *n)
{
	const char *const first = n->conf->advertise ? n->conf->advertise : server_address(n->server, 0);
	const char *const text = first ? first : "unknown";
	static const char *const any[] = { "0.0.0.0:", "[::]:", "*:" };
	char host[128] = "localhost";

	(void)gethostname(host, sizeof host - 1);
	(void)snprintf(id->address, sizeof id->address, "%s", text);
	for (unsigned i = 0; i < sizeof any / sizeof any[0]; i++) {
		const char *const at = strstr(text, any[i]);

		if (!n->conf->advertise && at)
			(void)snprintf(id->address, sizeof id->address, "%.*s%s:%s", (int)(at - text), text, host,
				       at + strlen(any[i]));
	}
}

/* ---- Open and close ---- */

int
nodename_open(struct node *n, struct slu_err *err)
{
	struct nodename *const id = &n->nodename;
	int rc;

	if (id->is_open)
		return 0;
	id->file = -1;
	choose_address(id, n);
	rc = begin_life(id, n->conf->data, err);
	if (rc && id->file >= 0)
		close(id->file);
	id->is_open = !rc;
	return rc;
}

void
nodename_close(struct nodename *id)
{
	if (id->is_open)
		close(id->file);
	id->is_open = false;
}
