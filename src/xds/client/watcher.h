/* Delivery to watchers. Callbacks come by the loop's queue, one for each run of the watcher's task, never from inside a
 * call of the client. Loop thread only. */
#ifndef TC_XDS_CLIENT_WATCHER_H
#define TC_XDS_CLIENT_WATCHER_H

#include "xds/client/client.h"

struct tc_xds_entry;

/* Begins to deliver. `holder` is the client whose loop delivers, borrowed. `entry` is the client's cache entry; NULL
 * for a name that cannot be requested, and for a remote client. Appends the watcher to `list` by its link. The
 * functions below are for watchers between start and stop. */
void tc_xds_watch_start(struct tc_xds_watcher *w, struct tc_xds_client *holder, struct tc_xds_entry *entry,
                        struct tc_link *list);
/* Drops the events queued for the watcher, and takes it off its list. */
void tc_xds_watch_stop(struct tc_xds_watcher *w);
/* Stops all watchers of a list. */
void tc_xds_watch_stop_all(struct tc_link *list);
/* Return `holder`, and `entry`, which may be NULL, of tc_xds_watch_start. */
struct tc_xds_client *tc_xds_watch_client(const struct tc_xds_watcher *w);
struct tc_xds_entry *tc_xds_watch_entry(const struct tc_xds_watcher *w);
/* Queues on_changed with the resource, or with the error if `resource` is NULL; takes references. `token`: of the
 * response that brought the news; NULL: none did. Callbacks that are still queued are dropped, since on_changed
 * replaces them. */
void tc_xds_watch_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                          struct tc_xds_token *token);
/* Queues on_ambient_error, behind the callbacks that are queued; takes references. `token`: of the
 * response that brought the error; NULL: none did. */
void tc_xds_watch_ambient(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_token *token);

#endif
