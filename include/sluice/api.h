/*
 * api.h - the base of all public headers: version, linkage, visibility, time.
 *
 * All exported names begin with slu_ or SLU_. The headers compile as C11 and as C++11
 * and include only headers of the C standard library.
 */
#ifndef SLUICE_API_H
#define SLUICE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers. Programs can compare SLU_VERSION in #if. */
#define SLU_VERSION_MAJOR 0
#define SLU_VERSION_MINOR 2
#define SLU_VERSION_PATCH 0
#define SLU_VERSION_TEXT  "0.2.0"
#define SLU_VERSION       (SLU_VERSION_MAJOR * 10000 + SLU_VERSION_MINOR * 100 + SLU_VERSION_PATCH)

#ifdef __cplusplus
#define SLU_BEGIN_DECLS extern "C" {
#define SLU_END_DECLS   }
#else
#define SLU_BEGIN_DECLS
#define SLU_END_DECLS
#endif

#if defined(__GNUC__)
#define SLU_API             __attribute__((visibility("default")))
#define SLU_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#define SLU_NORETURN        __attribute__((noreturn))
#else
#define SLU_API
#define SLU_PRINTF(fmt, va)
#define SLU_NORETURN
#endif

/*
 * How the ABI grows. Within one soname a later library runs programs that were built with
 * older headers:
 *
 *   - A struct that you fill (options, configs, tasks, messages to send) begins with
 *     struct_size, which SLU_OPTIONS_INIT sets. Later versions add members at its end; the
 *     library treats missing members as 0. A call returns SLU_EINVAL if struct_size is not
 *     set, or if a member is set that the library does not have. In an array every element
 *     has struct_size.
 *   - A struct that the library fills (messages, stats, leases, struct slu_err) keeps its
 *     size: later versions take new members from its `reserved` words, which are 0.
 *   - A struct with neither, which the library passes by pointer (slu_run, slu_delivery_info),
 *     grows at its end: do not copy it. Rows of tables that you write (slu_priority,
 *     slu_json_field) do not change.
 *   - Error codes keep their numbers, functions their symbol versions.
 *
 *         struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1 };
 *
 * C++ before C++20 has no designated initialisers: slu_options<slu_put>() returns a zeroed
 * struct with struct_size set.
 */
#ifdef __cplusplus
#define SLU_OPTIONS_INIT(type) sizeof(type)
template <typename T>
inline T
slu_options()
{
	T options = T();

	options.struct_size = sizeof options;
	return options;
}
#else
#define SLU_OPTIONS_INIT(type) .struct_size = sizeof(type)
#endif

/* Nanoseconds: a duration, or a moment on a clock. Up to 292 years. */
typedef int64_t slu_time;

#define SLU_US    ((slu_time)1000)
#define SLU_MS    (1000 * SLU_US)
#define SLU_SEC   (1000 * SLU_MS)
#define SLU_MIN   (60 * SLU_SEC)
#define SLU_HOUR  (60 * SLU_MIN)
#define SLU_NEVER INT64_MAX /* no deadline: wait without limit */

/* A timeout of 0, for functions where 0 means a default or SLU_NEVER. */
#define SLU_NOWAIT ((slu_time)-1)

/*
 * fork(). A handle that was opened before a fork (executor, queue, worker, broker, client,
 * service) belongs to the parent: the child has none of its threads. In the child every call
 * with it returns SLU_EINVAL, and close and free return at once without freeing its memory.
 * The child opens handles of its own. It can open a queue's folder after the parent has closed
 * it.
 */

SLU_BEGIN_DECLS

/* The version of the running library, in the form of SLU_VERSION_TEXT. It may be newer than the
 * headers of the program. */
SLU_API const char *slu_version(void);

/* Frees memory that the library has passed to the caller. NULL is fine. */
SLU_API void slu_free(void *p);

SLU_END_DECLS

#endif
