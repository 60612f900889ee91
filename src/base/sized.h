/*
 * sized.h - reads option structs of programs built with older or newer headers.
 *
 * A public options struct begins with `size_t struct_size`, set by SLU_OPTIONS_INIT
 * (include/sluice/api.h). The caller's struct may be shorter than ours (older headers: the
 * missing members are 0) or longer (newer headers: the members that this library does not
 * have must be 0, or the call is refused).
 *
 *         struct slu_open_config room;
 *         const struct slu_open_config *c = SIZED(slu_open_config, given, &room, err);
 *
 *         if (!c)
 *                 return SLU_EINVAL;
 *
 * A struct of our own size, the usual case, is not copied.
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <sluice/err.h>

/* Returns given in the size `known` of this library: given itself, or a copy in room; zeros if
 * given is NULL. Returns NULL, with SLU_EINVAL in err, if struct_size is not set, or a member that
 * this library does not have is not 0. */
const void *sized_read(const void *given, void *room, size_t known, const char *name,
		       struct slu_err *err);

#define SIZED(tag, given, room, err) \
	((const struct tag *)sized_read((given), (room), sizeof(struct tag), #tag, (err)))

/* Fills the caller's struct from `from`, which has the size `known` of this library; struct_size stays. Returns
 * SLU_EINVAL if that is not set. */
int sized_write(void *out, const void *from, size_t known, const char *name, struct slu_err *err);

/* An array of these structs, all with the same struct_size. */
struct sized_array {
	void *items;   /* in the size of this library: given, or copy */
	void *copy;    /* NULL if items is given */
	size_t stride; /* of given */
};

/* Returns SLU_EINVAL as above, or SLU_ENOMEM. Release the array also after a failure. The function
 * does not write to given; the caller may, through items. */
int sized_array(struct sized_array *a, const void *given, size_t n, size_t known,
		const char *name, struct slu_err *err);

/* Copies results that the caller wrote into items back to given. */
void sized_array_answer(const struct sized_array *a, void *given, size_t n, size_t known);
void sized_array_release(struct sized_array *a);

#endif
