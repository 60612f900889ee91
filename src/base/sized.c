#include "base/sized.h"

#include "base/mem.h"

#include <string.h>

enum {
	SIZE_MAX_SANE = 64 << 10 /* a larger struct_size was not initialised */
};

static size_t
size_of(const void *given)
{
	size_t size;

	memcpy(&size, given, sizeof size);
	return size;
}

static int
check_size(size_t size, const char *name, struct slu_err *err)
{
	if (size >= sizeof size && size <= SIZE_MAX_SANE)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"invalid struct_size %zu of struct %s; expected what SLU_OPTIONS_INIT(struct %s) sets",
			size, name, name);
}

/* Copies given, of size bytes, into room, of known bytes. */
static int
convert(const void *given, size_t size, void *room, size_t known, const char *name,
	struct slu_err *err)
{
	const char *bytes = given;

	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return slu_fail(err, SLU_EINVAL,
					"struct %s has members set that version %s of the library does not have",
					name, slu_version());
	memset(room, 0, known);
	memcpy(room, given, size < known ? size : known);
	memcpy(room, &known, sizeof known);
	return 0;
}

const void *
sized_read(const void *given, void *room, size_t known, const char *name, struct slu_err *err)
{
	if (!given) {
		memset(room, 0, known);
		memcpy(room, &known, sizeof known);
		return room;
	}
	if (size_of(given) == known)
		return given;
	if (check_size(size_of(given), name, err))
		return NULL;
	return convert(given, size_of(given), room, known, name, err) ? NULL : room;
}

int
sized_write(void *out, const void *from, size_t known, const char *name, struct slu_err *err)
{
	const size_t size = size_of(out);
	const int rc = check_size(size, name, err);

	if (rc)
		return rc;
	memset(out, 0, size);
	memcpy(out, from, size < known ? size : known);
	memcpy(out, &size, sizeof size);
	return 0;
}

static int
convert_all(struct sized_array *a, const char *given, size_t n, size_t known, const char *name,
	    struct slu_err *err)
{
	char *copy = mem_array(n, known);
	int rc = 0;

	if (!copy)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu times struct %s", n, name);
	a->items = a->copy = copy;
	for (size_t i = 0; i < n && !rc; i++)
		rc = convert(given + i * a->stride, a->stride, copy + i * known, known, name, err);
	return rc;
}

int
sized_array(struct sized_array *a, const void *given, size_t n, size_t known, const char *name,
	    struct slu_err *err)
{
	const char *bytes = given;
	int rc;

	*a = (struct sized_array){ .items = (void *)given, .stride = n ? size_of(given) : known };
	rc = check_size(a->stride, name, err);
	for (size_t i = 1; i < n && !rc; i++)
		if (size_of(bytes + i * a->stride) != a->stride)
			rc = slu_fail(err, SLU_EINVAL,
				      "element %zu of an array of struct %s has another struct_size than the first: "
				      "each needs SLU_OPTIONS_INIT(struct %s)",
				      i, name, name);
	if (rc || a->stride == known)
		return rc;
	return convert_all(a, given, n, known, name, err);
}

void
sized_array_answer(const struct sized_array *a, void *given, size_t n, size_t known)
{
	const size_t head = sizeof(size_t); /* the caller's struct_size stays */
	const size_t both = a->stride < known ? a->stride : known;

	for (size_t i = 0; a->copy && i < n; i++)
		memcpy((char *)given + i * a->stride + head, (char *)a->copy + i * known + head,
		       both - head);
}

void
sized_array_release(struct sized_array *a)
{
	mem_free(a->copy);
	*a = (struct sized_array){ 0 };
}
