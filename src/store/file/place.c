/*
 * place.c - which file systems a file store trusts.
 *
 * A store needs three things of a file system: `link` is atomic, also over machines; what was
 * synced survives a power cut; and an operation that hangs is repeated, not given up.
 */
#include "store/file/file_private.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum trust {
	TRUSTED,
	TRUSTED_HARD_4, /* NFS, if it is version 4 and mounted hard */
	UNSAFE_ONLY,    /* with store.unsafe */
	NEVER
};

struct file_system {
	unsigned long type;
	const char *name;
	enum trust trust;
	const char *why;
};

static const struct file_system systems[] = {
	{ 0xef53, "ext4", TRUSTED, NULL },
	{ 0x58465342, "XFS", TRUSTED, NULL },
	{ 0x9123683e, "Btrfs", TRUSTED, NULL },
	{ 0x2fc12fc1, "ZFS", TRUSTED, NULL },
	{ 0xf2f52010, "F2FS", TRUSTED, NULL },
	{ 0xca451a4e, "bcachefs", TRUSTED, NULL },
	{ 0x00c36400, "CephFS", TRUSTED, NULL },
	{ 0x01161970, "GFS2", TRUSTED, NULL },
	{ 0x6969, "NFS", TRUSTED_HARD_4, NULL },
	{ 0x01021994, "tmpfs", UNSAFE_ONLY, "it forgets everything when the machine stops" },
	{ 0x794c7630, "overlay", UNSAFE_ONLY, "it usually ends with its container" },
	{ 0x517b, "SMB", NEVER, "two machines may both create one name" },
	{ 0xff534d42, "CIFS", NEVER, "two machines may both create one name" },
	{ 0xfe534d42, "SMB2", NEVER, "two machines may both create one name" },
	{ 0x65735546, "FUSE", NEVER, "its link may not be atomic" },
};

#define EXPECTED "expected a local disk, NFSv4 mounted hard, CephFS or GFS2"

static enum store_result
refuse(struct slu_err *err, const char *name, const char *why, bool never)
{
	slu_fail(err, SLU_EINVAL, "unsafe file system: %s (%s); " EXPECTED "%s", name, why,
		 never ? "" : ", or store.unsafe");
	return STORE_REFUSED;
}

/* Whether the comma-separated options of a mount contain a word, or one that begins with it. */
static bool
has_option(const char *mount, const char *word, bool begins)
{
	size_t n = strlen(word);

	for (const char *p = mount; *p; p += strcspn(p, " ,"), p += *p != '\0')
		if (strncmp(p, word, n) == 0 && (begins || strchr(" ,", p[n])))
			return true;
	return false;
}

static enum store_result
check_nfs(const char *mount, struct slu_err *err)
{
	if (!has_option(mount, "vers=4", true))
		return refuse(err, "NFS", "not version 4", false);
	if (!has_option(mount, "hard", false))
		return refuse(err, "NFS", "not mounted hard", false);
	return STORE_OK;
}

enum store_result
file_place_check(const struct file_place *p, bool unsafe, struct slu_err *err)
{
	char number[32];

	for (size_t i = 0; i < COUNT(systems); i++) {
		const struct file_system *f = &systems[i];

		if (f->type != p->type)
			continue;
		if (f->trust == TRUSTED || (unsafe && f->trust != NEVER))
			return STORE_OK;
		return f->trust == TRUSTED_HARD_4
			       ? check_nfs(p->mount, err)
			       : refuse(err, f->name, f->why, f->trust == NEVER);
	}
	if (unsafe)
		return STORE_OK;
	snprintf(number, sizeof number, "type 0x%lx", p->type);
	return refuse(err, number, "unknown", false);
}

/* Finds the mount with this device in /proc/self/mountinfo: "36 35 0:52 / /mnt rw - nfs4 host:/x
 * rw,vers=4.2,hard". Leaves the text empty if it is not there. */
static void
find_mount(char *out, size_t size, dev_t dev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[2048], device[32];

	snprintf(device, sizeof device, " %u:%u ", major(dev), minor(dev));
	while (f && fgets(line, sizeof line, f)) {
		char type[32], options[200];
		const char *dash = strstr(line, " - ");

		if (dash && strstr(line, device) &&
		    sscanf(dash, " - %31s %*s %199s", type, options) == 2)
			snprintf(out, size, "%s %s", type, options);
	}
	if (f)
		fclose(f);
}

enum store_result
file_place_read(struct file_place *p, int folder, struct slu_err *err)
{
	struct statfs fs;
	struct stat st;

	*p = (struct file_place){ 0 };
	if (fstatfs(folder, &fs) || fstat(folder, &st))
		return file_fail(errno, "statfs", err);
	p->type = (unsigned long)fs.f_type & 0xffffffff;
	find_mount(p->mount, sizeof p->mount, st.st_dev);
	return STORE_OK;
}
