#include "api/uploads.h"

#include "base/limit.h"

void
uploads_init(struct uploads *u)
{
	*u = (struct uploads){ .max_bytes = UINT64_MAX, .max_memory = UINT64_MAX };
	pthread_mutex_init(&u->lock, NULL);
	list_init(&u->open);
}

void
uploads_limit(struct uploads *u, uint32_t max, uint64_t max_bytes, uint64_t max_memory)
{
	pthread_mutex_lock(&u->lock);
	u->max = max;
	u->max_bytes = max_bytes;
	u->max_memory = max_memory;
	pthread_mutex_unlock(&u->lock);
}

/* Number and bytes of the other uploads: of all namespaces, or of the same namespace. */
struct sum {
	uint64_t n, bytes;
};

static struct sum
sum_others(const struct uploads *u, const struct upload_share *one, bool of_namespace)
{
	struct sum s = { 0, 0 };

	LIST_EACH(node, &u->open) {
		const struct upload_share *const other = CONTAINER(node, struct upload_share, node);

		if (other == one || (of_namespace && !slice_eq(other->namespace, one->namespace)))
			continue;
		s.n++;
		s.bytes += other->in_memory == one->in_memory ? other->bytes : 0;
	}
	return s;
}

static int
check(const struct upload_share *one, struct sum others, uint64_t bytes, uint64_t max, uint64_t max_bytes,
      bool of_namespace, struct slu_err *err)
{
	const int n = of_namespace ? (int)one->namespace.n : 0;
	const char *const name = of_namespace ? one->namespace.p : "";
	const char *const what = of_namespace ? "namespace " : "the server";

	if (!one->node.next && max && others.n >= max)
		return limit_fail(err, SLU_EBUSY, LIMIT_UPLOADS, SLU_SEC,
				  "%s%.*s: more than %llu unfinished uploads", what, n, name,
				  (unsigned long long)max);
	if (bytes > max_bytes || others.bytes > max_bytes - bytes)
		return limit_fail(err, SLU_EBUSY, LIMIT_UPLOADS, SLU_SEC,
				  "%s%.*s: more than %llu bytes of unfinished uploads %s", what, n, name,
				  (unsigned long long)max_bytes, one->in_memory ? "in memory" : "in files");
	return 0;
}

static uint64_t
half(uint64_t max)
{
	return max / 2 + max % 2;
}

static void
forget(struct upload_share *one)
{
	if (one->node.next)
		list_remove(&one->node);
	one->node = (struct list){ NULL, NULL };
}

int
uploads_grow(struct uploads *u, struct upload_share *one, struct slice namespace, bool in_memory,
	     uint64_t bytes, struct slu_err *err)
{
	struct sum beside;
	uint64_t max_bytes;
	int rc;

	if (bytes <= UPLOAD_SMALL)
		return 0;
	pthread_mutex_lock(&u->lock);
	one->namespace = namespace;
	one->in_memory = in_memory;
	max_bytes = in_memory ? u->max_memory : u->max_bytes;
	rc = check(one, sum_others(u, one, false), bytes, u->max, max_bytes, false, err);
	beside = sum_others(u, one, true);
	if (!rc && beside.n > 0)
		rc = check(one, beside, bytes, half(u->max), half(max_bytes), true, err);
	if (!rc && !one->node.next)
		list_append(&u->open, &one->node);
	if (rc)
		forget(one);
	one->bytes = bytes;
	pthread_mutex_unlock(&u->lock);
	return rc;
}

void
uploads_end(struct uploads *u, struct upload_share *one)
{
	pthread_mutex_lock(&u->lock); /* also to look: a neighbour in the list writes here */
	forget(one);
	pthread_mutex_unlock(&u->lock);
}
