/* The cache's entries: the state of a watched resource (A88), and the last notification of its watchers. Loop thread
 * only. */
#ifndef TC_XDS_CLIENT_CACHE_H
#define TC_XDS_CLIENT_CACHE_H

#include "xds/client/local_internal.h"
#include "xds/client/name.h"

#define TC_XDS_NO_TYPE SIZE_MAX
/* Returns the index of a type, or TC_XDS_NO_TYPE if the client never watched the type. */
size_t tc_xds_type_index(const struct tc_xds_local_client *c, struct tc_slice type_url);
/* Returns the index of a type. Adds the type if the client never watched it. */
size_t tc_xds_type_add(struct tc_xds_local_client *c, const struct tc_xds_resource_type *type);

/* Returns the entry of a canonical name, borrowed, or NULL. */
struct tc_xds_entry *tc_xds_entry_find(const struct tc_xds_authority_state *s, size_t type, struct tc_slice name);
/* Returns the entry that a name in a response of this channel means, borrowed; NULL: there is none, or its authority
 * does not use the channel. */
struct tc_xds_entry *tc_xds_channel_entry(struct tc_xds_channel *ch, size_t type, const struct tc_xds_name *name);
/* Adds an entry, REQUESTED, to the authority's table, which owns it. `name` is canonical; the entry takes a reference.
 * The caller queues the request (tc_xds_authority_request). */
struct tc_xds_entry *tc_xds_entry_new(struct tc_xds_authority_state *s, size_t type, struct tc_rstr *name);
/* Removes the entry, which must not have watches, from the table and frees it. The caller queues the request that
 * leaves the name out. */
void tc_xds_entry_free(struct tc_xds_entry *e);
/* Returns false if accepting a value of this many bytes would exceed held_bytes. A value that is not larger than the
 * present one always fits. Stores the cap in *most. */
bool tc_xds_entry_fits(const struct tc_xds_entry *e, size_t bytes, uint64_t *most);
/* A valid resource came from the server. Takes over the reference of `resource`. `bytes` is the resource's message;
 * bytes and version are copied. token: of the response, borrowed. */
void tc_xds_entry_accept(struct tc_xds_entry *e, const struct tc_xds_server *source, struct tc_xds_resource *resource,
                         struct tc_slice bytes, struct tc_slice version, struct tc_xds_token *token);
/* The server `by` sent an invalid resource or an error, or has deleted the resource; `by` NULL: nothing came in time.
 * Takes over the status, and copies the version. `drop`: the entry drops the value in use (A88). token: of the
 * response, borrowed; NULL: none came. */
void tc_xds_entry_fail(struct tc_xds_entry *e, enum tc_xds_state state, struct tc_status error, struct tc_slice version,
                       bool drop, const struct tc_xds_server *by, struct tc_xds_token *token);
/* Stores in the client whether the log wants the states of entries. Later calls of tc_xds_entry_accept and
 * tc_xds_entry_fail use it. */
void tc_xds_entries_check_log(struct tc_xds_local_client *c);
/* Starts, restarts or stops the does-not-exist timer. Called after a change of the entry's state or `sent_on`. */
void tc_xds_entry_check_timer(struct tc_xds_entry *e);
/* Returns the entry's present error, borrowed: that of the authority if no server can be reached, else that of the
 * resource; OK if there is none. */
const struct tc_status *tc_xds_entry_error(const struct tc_xds_entry *e);
/* Notifies one watcher of the entry's state. If there is a value and new_resource is true (the watcher does not have
 * the value yet), the watcher gets the value, and then the error if there is one. If there is a value and new_resource
 * is false, the watcher gets the error, or OK. Without a value the watcher gets the error if there is one. */
void tc_xds_entry_tell(const struct tc_xds_entry *e, struct tc_xds_watcher *w, bool new_resource,
                       struct tc_xds_token *token);
/* Notifies all watchers of what has changed since their last notification. */
void tc_xds_entry_reconcile(struct tc_xds_entry *e, struct tc_xds_token *token);

#endif
