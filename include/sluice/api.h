/*
 * api.h - what every public header needs: version, linkage, visibility, time.
 *
 * Everything exported is named slu_ or SLU_. The headers compile as C11 and as
 * C++11 and include nothing beyond the C standard library.
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
 *     struct_size, which SLU_OPTIONS_INIT sets. Later versions add members behind its end; the
 *     library reads as much as there is and takes the rest as 0. SLU_EINVAL says that
 *     struct_size was not set, or that a member is set which an older library does not
 *     know. In an array every element has it.
 *   - A struct that the library fills (messages, stats, leases, struct slu_err) keeps its
 *     size: later versions take new members from its `reserved` words, which are 0.
 *   - Structs without either that the library hands out (slu_run, slu_delivery_info) grow
 *     at their end: use them where they are, do not copy them. Rows of tables that you write
 *     (slu_priority, slu_json_field) stay as they are.
 *   - Error codes keep their numbers, functions their symbol versions.
 *
 *         struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1 };
 *
 * C++ has no designated initialisers before C++20: slu_options<slu_put>() is a zeroed struct
 * with its size.
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

/* Nanoseconds: a length of time, or a moment on a clock. Signed, so that
 * differences need no care; 292 years is enough of both. */
typedef int64_t slu_time;

#define SLU_US    ((slu_time)1000)
#define SLU_MS    (1000 * SLU_US)
#define SLU_SEC   (1000 * SLU_MS)
#define SLU_MIN   (60 * SLU_SEC)
#define SLU_HOUR  (60 * SLU_MIN)
#define SLU_NEVER INT64_MAX /* no deadline; wait for as long as it takes */

/* As a timeout where 0 has another meaning (a default, or SLU_NEVER): do not wait at all. */
#define SLU_NOWAIT ((slu_time)-1)

/*
 * fork(). What was opened before a fork (executor, queue, worker, broker, client, service)
 * stays the parent's: the child has none of its threads. In the child every call with it fails
 * with SLU_EINVAL and a text that says so, close and free return at once and leave its memory
 * to exit or exec. Open what the child needs in the child. A queue's folder is free for the
 * child when the parent has closed it.
 */

SLU_BEGIN_DECLS

/* The version of the library that runs, as SLU_VERSION_TEXT has it: a program that was built
 * with older headers sees a newer one here. */
SLU_API const char *slu_version(void);

/* Free what a function of the library says is yours to free. NULL is fine. */
SLU_API void slu_free(void *p);

SLU_END_DECLS

#endif
