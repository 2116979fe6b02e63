/* The kit of the xDS client's tests: resource types of their own, watchers that record their callbacks, and both sides
 * of a stream as one line each. A resource's bytes are "name|value"; the value "bad", and bytes without "|", are
 * rejected. */
#ifndef TC_SUPPORT_KITS_XDS_H
#define TC_SUPPORT_KITS_XDS_H

#include "base/buf.h"
#include "base/vec.h"
#include "support/fakes/xds.h"
#include "xds/client/client.h"

extern const struct tc_xds_resource_type kit_xds_lds; /* absence means deletion */
extern const struct tc_xds_resource_type kit_xds_cds; /* absence means deletion */
extern const struct tc_xds_resource_type kit_xds_eds;

/* How many times resources were decoded since the start of the program. */
extern unsigned kit_xds_decoded;

struct kit_xds_watcher {
    struct tc_xds_watcher base;
    struct tc_buf log; /* "value v;" "error TEXT;" "ambient TEXT;" "clear;" */
    int last_code;
    bool hold; /* keeps flow-control tokens until kit_xds_release */
    TC_VEC(struct tc_xds_token *) held;
    /* Called after an event was recorded. May be NULL. */
    void (*then)(struct kit_xds_watcher *w);
    void *arg;
};

void kit_xds_watcher_init(struct kit_xds_watcher *w);
void kit_xds_watcher_fini(struct kit_xds_watcher *w);
void kit_xds_release(struct kit_xds_watcher *w);
/* Returns the events since the last call; valid until the next event or call. */
const char *kit_xds_told(struct kit_xds_watcher *w);

struct kit_xds {
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_client *client;
    struct fake_xds_server *server; /* the first server of the bootstrap */
    char *text;                     /* of the last kit_xds_request or kit_xds_report */
    bool lrs_endpoints;             /* see kit_xds_lrs_answer */
};

/* Makes a client on a manual loop. NULL: one server "s1", node id "node1". */
void kit_xds_init(struct kit_xds *k, const char *bootstrap);
/* Makes a client whose responses of any size are decoded on the background thread, which support/gate.h can hold up. */
void kit_xds_init_decode_thread(struct kit_xds *k);
void kit_xds_fini(struct kit_xds *k);
void kit_xds_watch(struct kit_xds *k, const struct tc_xds_resource_type *type, const char *name,
                   struct kit_xds_watcher *w);
void kit_xds_unwatch(struct kit_xds *k, struct kit_xds_watcher *w);
/* Returns the server's next request as 'Type [names] "version" "nonce"', a delta request as 'Type +[subscribed]
 * -[unsubscribed] {initial versions} "nonce"', each with " node" if it has a node, and " NACK code text"; "" if there
 * is none. Borrowed until the next call or kit_xds_report. */
const char *kit_xds_request(struct kit_xds *k, struct fake_xds_server *s);
/* Sends a response of these resources, ended by NULL, and runs the loop. */
void kit_xds_respond(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                     const char *version, const char *nonce, ...) __attribute__((sentinel));
/* Sends a delta response and runs the loop. Resources are "name|value@version"; "-name" removes one; "!name" is a
 * resource error NOT_FOUND "gone", one at most. */
void kit_xds_respond_delta(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                           const char *nonce, ...) __attribute__((sentinel));
/* For tc_xds_bootstrap_parse: credentials of the types "insecure" and "tls". */
bool kit_xds_creds_supported(void *arg, const char *type, const json_t *config);

#endif
