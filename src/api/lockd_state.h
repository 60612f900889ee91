/*
 * lockd_state.h - locks and state in the lockd dialect: a table of routes.
 *
 *      lockd_lease       acquire, keepalive, release, describe
 *      lockd_state       get, update, remove, metadata
 *      lockd_mutate      mutate
 *      lockd_attach      attachments
 *      lockd_query       query, index/flush
 *      lockd_namespace   settings of a namespace
 *      lockd_lock        what they share: which key, by whose right, why not
 *
 * docs/locks.md is their contract, core/locks.h has the rules.
 */
#ifndef API_LOCKD_STATE_H
#define API_LOCKD_STATE_H

#include "http/route.h"

/* Their arg is a struct api. */
extern const struct route lockd_state_routes[];
extern const unsigned lockd_state_n_routes;

#define LOCKD_DOCUMENT_MAX   (100 << 20) /* bytes of JSON, as it is sent */
#define LOCKD_MUTATE_MAX     (16 << 20)  /* of a document that is changed in memory, or searched */
#define LOCKD_ATTACHMENT_MAX (1 << 30)

typedef void lockd_handler(struct call *c, void *api);

lockd_handler lockd_acquire, lockd_keepalive, lockd_release, lockd_describe;
lockd_handler lockd_get, lockd_update, lockd_update_take, lockd_remove, lockd_metadata;
lockd_handler lockd_mutate;
lockd_handler lockd_attach, lockd_attach_take, lockd_attachments, lockd_detach_all;
lockd_handler lockd_attachment, lockd_detach;
lockd_handler lockd_search, lockd_flush;
lockd_handler lockd_namespace_get, lockd_namespace_set;

#endif
