#include "store_rig.h"

#include "memstore.h"
#include "store/azure/azure.h"
#include "store/file/file.h"
#include "store/postgres/postgres.h"
#include "store/s3/s3.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void
memory_url(char out[static STORE_URL_MAX])
{
	strcpy(out, "memory://rig");
}

static void
memory_lose_answer(struct store *s)
{
	memstore_fault(s, STORE_PUT, MEMSTORE_LOSE_ANSWER, 1);
}

/* A folder below the working directory, which is empty at first. */
static void
file_url(char out[static STORE_URL_MAX])
{
	char here[STORE_URL_MAX - 20];

	CHECK(getcwd(here, sizeof here));
	snprintf(out, STORE_URL_MAX, "file://%s/store", here);
}

/* Ten thousand syncs would take long. */
static void
file_fill(struct store_rig *r, char (*names)[STORE_NAME_MAX], uint32_t n)
{
	const char *root = r->url + strlen("file://");
	char path[STORE_URL_MAX + STORE_NAME_MAX];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s", root, names[i]);
		for (char *p = path + strlen(root) + 1; *p; p++)
			if (*p == '/') {
				*p = '\0';
				(void)mkdir(path, 0700);
				*p = '/';
			}
		const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		CHECK(fd >= 0);
		close(fd);
	}
}

/* A prefix of its own in the bucket that a program of tests/lib made. */
static void
bucket_url(const char *variable, const char *program, char out[static STORE_URL_MAX])
{
	static unsigned n;
	const char *const url = getenv(variable);
	const int bucket = url ? (int)strcspn(url, "?") : 0;

	if (!url)
		test_fail(__FILE__, __LINE__, "%s is not set: run the test with tests/lib/%s", variable, program);
	snprintf(out, STORE_URL_MAX, "%.*s/t%d.%u%s", bucket, url, (int)getpid(), n++, url + bucket);
}

static void
s3_url(char out[static STORE_URL_MAX])
{
	bucket_url("SLUICE_TEST_S3", "rgw.py", out);
}

static void
azure_url(char out[static STORE_URL_MAX])
{
	bucket_url("SLUICE_TEST_AZURE", "azurite.py", out);
}

/* A schema of its own in the database that tests/lib/postgres.py made. */
static void
postgres_url(char out[static STORE_URL_MAX])
{
	static unsigned n;
	const char *const url = getenv("SLUICE_TEST_POSTGRES");

	if (!url)
		test_fail(__FILE__, __LINE__, "SLUICE_TEST_POSTGRES is not set: run the test with tests/lib/postgres.py");
	snprintf(out, STORE_URL_MAX, "%.*s?schema=t%d_%u", (int)strcspn(url, "?"), url, (int)getpid(), n++);
}

enum {
	FILLERS = 16
};

struct filler {
	pthread_t thread;
	struct store *s;
	char (*names)[STORE_NAME_MAX];
	uint32_t from, n; /* every FILLERS-th name from this one on, of n */
};

static void *
fill_some(void *arg)
{
	const struct filler *const f = arg;

	for (uint32_t i = f->from; i < f->n; i += FILLERS)
		CHECK_EQ(STORE_OK, store_rig_put(f->s, f->names[i], ""));
	return NULL;
}

/* Ten thousand requests one after the other would take long. */
static void
fill_by_threads(struct store_rig *r, char (*names)[STORE_NAME_MAX], uint32_t n)
{
	struct filler fillers[FILLERS];

	for (uint32_t i = 0; i < FILLERS; i++) {
		fillers[i] = (struct filler){ .s = r->s, .names = names, .from = i, .n = n };
		CHECK_EQ(0, pthread_create(&fillers[i].thread, NULL, fill_some, &fillers[i]));
	}
	for (uint32_t i = 0; i < FILLERS; i++)
		pthread_join(fillers[i].thread, NULL);
}

const struct store_rig_row store_rig_rows[] = {
	[STORE_RIG_MEMORY] = {
		.name = "memory",
		.ops = &store_memory,
		.url = memory_url,
		.lose_answer = memory_lose_answer,
	},
	[STORE_RIG_FILE] = {
		.name = "file",
		.ops = &store_file,
		.url = file_url,
		.shared = true,
		.fill = file_fill,
	},
	[STORE_RIG_POSTGRES] = {
		.name = "postgres",
		.ops = &store_postgres,
		.url = postgres_url,
		.shared = true,
		.fill = fill_by_threads,
	},
	[STORE_RIG_S3] = {
		.name = "s3",
		.ops = &store_s3,
		.url = s3_url,
		.shared = true,
		.fill = fill_by_threads,
	},
	[STORE_RIG_AZURE] = {
		.name = "azure",
		.ops = &store_azure,
		.url = azure_url,
		.shared = true,
		.slow = true,
		.fill = fill_by_threads,
	},
};

struct store *
store_rig_open(const struct store_rig *r)
{
	const struct store_ops *const rows[] = { r->row->ops, NULL };
	const struct store_conf conf = { .url = r->url, .unsafe = true };
	struct slu_err err = { 0 };
	struct store *s;

	if (store_open(&s, rows, &conf, &err) != STORE_OK)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return s;
}

const struct store_rig_row *
store_rig_kit_row(void)
{
	const char *const name = getenv("KIT_STORE");
	enum store_rig_store row = STORE_RIG_AZURE;

	while (row != STORE_RIG_MEMORY && (!name || strcmp(store_rig_rows[row].name, name) != 0))
		row--;
	return &store_rig_rows[row];
}

static _Atomic slu_time shown;

static enum store_result
show_clock(struct store *s, slu_time *wall, struct slu_err *err)
{
	(void)s, (void)err;
	*wall = shown;
	return STORE_OK;
}

struct store *
store_rig_open_kit(const char *memory)
{
	static struct store_ops timed; /* of all stores of a test: they have one row */
	struct store_rig rig = { .row = store_rig_kit_row() };
	struct store *s;

	rig.row->url(rig.url);
	if (rig.row->ops == &store_memory)
		snprintf(rig.url, sizeof rig.url, "%s", memory);
	s = store_rig_open(&rig);
	if (rig.row->ops == &store_memory)
		return s;
	timed = *s->ops;
	timed.clock = show_clock;
	s->ops = &timed;
	return s;
}

void
store_rig_set_clock(struct store *s, slu_time wall)
{
	if (s->ops == &store_memory)
		memstore_set_clock(s, wall);
	shown = wall;
}

void
store_rig_run(enum store_rig_store row, store_rig_case *test)
{
	struct store_rig r = { .row = &store_rig_rows[row] };

	r.row->url(r.url);
	buf_init(&r.bytes, STORE_OBJECT_MAX + 1);
	r.s = store_rig_open(&r);
	test(&r);
	store_close(r.s);
	buf_release(&r.bytes);
}

enum store_result
store_rig_put(struct store *s, const char *name, const char *text)
{
	struct slu_err err;

	return store_put(s, name, slice_of(text), STORE_IF_ABSENT, &err);
}

const char *
store_rig_get(struct store_rig *r, const char *name)
{
	buf_clear(&r->bytes);
	const enum store_result result =
		store_get(r->s, name, 0, SIZE_MAX, &r->bytes, NULL, &r->err);

	if (result != STORE_OK) {
		buf_clear(&r->bytes);
		buf_printf(&r->bytes, "[%s]", store_result_name(result));
	}
	return buf_str(&r->bytes);
}

const char *
store_rig_list(struct store_rig *r, const char *prefix, const char *after, uint32_t max)
{
	struct store_names names = { 0 };
	const enum store_result result = store_list(r->s, prefix, after, max, &names, &r->err);

	buf_clear(&r->bytes);
	if (result != STORE_OK)
		buf_printf(&r->bytes, "[%s]", store_result_name(result));
	for (uint32_t i = 0; i < names.n; i++)
		buf_printf(&r->bytes, "%s%s", i ? " " : "", names.names[i]);
	if (names.more)
		buf_puts(&r->bytes, " +");
	store_names_release(&names);
	return buf_str(&r->bytes);
}

void
store_rig_fill(struct store_rig *r, char (*names)[STORE_NAME_MAX], uint32_t n)
{
	if (r->row->fill) {
		r->row->fill(r, names, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(STORE_OK, store_rig_put(r->s, names[i], ""), names[i]);
}
