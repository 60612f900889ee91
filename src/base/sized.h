/*
 * sized.h - read structs of programs that were built with other headers.
 *
 * A public options struct begins with `size_t struct_size`, set by SLU_OPTIONS_INIT
 * (include/sluice/api.h). The caller's struct may be shorter than ours (it was built with
 * older headers: what it lacks is 0) or longer (newer headers: what we do not know must
 * be 0, or it would be passed over in silence).
 *
 *         struct slu_open_config room;
 *         const struct slu_open_config *c = SIZED(slu_open_config, given, &room, err);
 *
 *         if (!c)
 *                 return SLU_EINVAL;
 *
 * Structs of our own size, all of them in practice, are used where they are.
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <sluice/err.h>

/* given as the library knows it: given itself, or room; NULL is all zeros. Returns NULL,
 * with SLU_EINVAL in err, if struct_size is not set, or members that this library does
 * not know are. */
const void *sized_read(const void *given, void *room, size_t known, const char *name,
		       struct slu_err *err);

#define SIZED(tag, given, room, err) \
	((const struct tag *)sized_read((given), (room), sizeof(struct tag), #tag, (err)))

/* An array of such structs: each says its size, all the same. */
struct sized_array {
	void *items; /* as the library knows them: given, or copy */
	void *copy;
	size_t stride; /* of given */
};

/* SLU_EINVAL as above, SLU_ENOMEM. Release it in any case. given is changed only through
 * items, by a caller that answers in it. */
int sized_array(struct sized_array *a, const void *given, size_t n, size_t known,
		const char *name, struct slu_err *err);

/* Answers were written into items: see to it that they are in given. */
void sized_array_answer(const struct sized_array *a, void *given, size_t n, size_t known);
void sized_array_release(struct sized_array *a);

#endif
