/*
 * state.h - locks and state in the lockd dialect.
 *
 *      lease       acquire, keepalive, release, describe
 *      state       get, update, remove, metadata
 *      mutate      mutate
 *      attach      attachments
 *      query       query, index/flush
 *      namespace   settings of a namespace
 *      lock        shared: the key, the right of the caller, refusals
 *
 * docs/locks.md is the contract, core/locks/locks.h has the rules.
 */
#ifndef API_LOCKD_STATE_H
#define API_LOCKD_STATE_H

#include "http/route.h"

#define LOCKD_DOCUMENT_MAX   (100 << 20) /* bytes of JSON, as sent */
#define LOCKD_MUTATE_MAX     (16 << 20)  /* bytes of a document that is changed in memory, or searched */
#define LOCKD_ATTACHMENT_MAX (1 << 30)

extern const struct handler lockd_acquire, lockd_keepalive, lockd_release, lockd_describe;
extern const struct handler lockd_get, lockd_remove, lockd_metadata, lockd_mutate;
extern const struct handler lockd_attachments, lockd_attachment, lockd_detach, lockd_detach_all;
extern const struct handler lockd_search, lockd_flush, lockd_namespace_get, lockd_namespace_set;

/* Of bodies in pieces: CALL-8. */
void lockd_update(struct call *c, void *api);
void lockd_update_take(struct call *c, void *api);
void lockd_attach(struct call *c, void *api);
void lockd_attach_take(struct call *c, void *api);

#endif
