/* The kit of the xDS client's tests: resource types for tests, watchers that record their callbacks, and requests and
 * responses as text. A resource's bytes are "name|value"; the value "bad", and bytes without "|", are rejected. */
#ifndef TC_SUPPORT_KITS_XDS_H
#define TC_SUPPORT_KITS_XDS_H

#include "base/buf.h"
#include "base/vec.h"
#include "support/fakes/xds.h"
#include "xds/client/client.h"

extern const struct tc_xds_resource_type kit_xds_lds; /* absence means deletion */
extern const struct tc_xds_resource_type kit_xds_cds; /* absence means deletion */
extern const struct tc_xds_resource_type kit_xds_eds;

/* How many resources the types above have decoded since the program began, rejected ones included. */
extern unsigned kit_xds_decoded;

struct kit_xds_watcher {
    struct tc_xds_watcher base;
    struct tc_buf log; /* "value v;" "error TEXT;" "ambient TEXT;" "clear;" */
    int last_code;     /* the status code of the last event; OK for a value, and for the end of an error */
    bool hold;         /* keeps flow-control tokens until kit_xds_release or kit_xds_watcher_fini */
    TC_VEC(struct tc_xds_token *) held; /* references */
    /* Called after an event was recorded. May be NULL. */
    void (*then)(struct kit_xds_watcher *w);
    void *arg; /* for `then` */
};

void kit_xds_watcher_init(struct kit_xds_watcher *w);
/* Gives back the tokens that are held. The watcher must no longer watch. */
void kit_xds_watcher_fini(struct kit_xds_watcher *w);
/* Gives back the tokens that are held. */
void kit_xds_release(struct kit_xds_watcher *w);
/* Returns the events since the last call. Borrowed until the next event or call, or kit_xds_watcher_fini. */
const char *kit_xds_told(struct kit_xds_watcher *w);

struct kit_xds {
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_client *client;
    struct fake_xds_server *server; /* the first server of the bootstrap; the fake's */
    char *text;                     /* that kit_xds_request or kit_xds_report returned last; owned */
    bool lrs_endpoints;             /* see kit_xds_lrs_answer */
};

/* Makes a client on a manual loop. bootstrap: JSON; NULL: one server "s1", node id "node1". */
void kit_xds_init(struct kit_xds *k, const char *bootstrap);
/* kit_xds_init(k, NULL) for a client that decodes new resources of any size on the background thread, which
 * support/gate.h can block. */
void kit_xds_init_decode_thread(struct kit_xds *k);
/* Ends the client, and frees the other members. The test must have given back its own references to the client. Watches
 * that are left end without a callback. */
void kit_xds_fini(struct kit_xds *k);
/* Begins to watch. The watcher must live until kit_xds_unwatch or kit_xds_fini. */
void kit_xds_watch(struct kit_xds *k, const struct tc_xds_resource_type *type, const char *name,
                   struct kit_xds_watcher *w);
void kit_xds_unwatch(struct kit_xds *k, struct kit_xds_watcher *w);
/* Returns the oldest request to the server that was not returned yet: 'Type [names] "version" "nonce"', or for a delta
 * request 'Type +[subscribed] -[unsubscribed] {initial versions} "nonce"'. " node" follows if the request has a node,
 * then " NACK code text" if it is a NACK. Returns "" if there is no request. Borrowed until the next call,
 * kit_xds_report or kit_xds_fini. */
const char *kit_xds_request(struct kit_xds *k, struct fake_xds_server *s);
/* Sends a response and runs the loop. After the nonce: at most 16 resources "name|value", then NULL. */
void kit_xds_respond(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                     const char *version, const char *nonce, ...) __attribute__((sentinel));
/* Sends a delta response and runs the loop. After the nonce, in any order, then NULL: at most 15 resources
 * "name|value@version", at most 15 removed resources "-name", at most one resource error "!name" (NOT_FOUND, "gone").
 */
void kit_xds_respond_delta(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                           const char *nonce, ...) __attribute__((sentinel));
/* For tc_xds_bootstrap_parse: credentials of the types "insecure" and "tls". */
bool kit_xds_creds_supported(void *arg, const char *type, const json_t *config);

#endif
