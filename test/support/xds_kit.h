/* What tests of the xDS client share: resource types of their own, watchers that write down what they are told, and
 * the two sides of a stream in a line each. A resource's bytes are "name|value"; the value "bad" is refused. */
#ifndef TC_SUPPORT_XDS_KIT_H
#define TC_SUPPORT_XDS_KIT_H

#include "base/buf.h"
#include "base/vec.h"
#include "support/fake_xds_transport.h"
#include "xds/client.h"

extern const struct tc_xds_resource_type tc_kit_lds; /* absence means deletion */
extern const struct tc_xds_resource_type tc_kit_cds; /* absence means deletion */
extern const struct tc_xds_resource_type tc_kit_eds;

/* How often a resource was decoded, since the start of the program. */
extern unsigned tc_kit_decoded;

struct tc_kit_watcher {
    struct tc_xds_watcher base;
    struct tc_buf log; /* "value v;" "error TEXT;" "ambient TEXT;" "clear;" */
    int last_code;
    bool hold; /* keeps the tokens until tc_kit_release */
    TC_VEC(struct tc_xds_done *) held;
    /* Called after an event was written down; may be NULL. */
    void (*then)(struct tc_kit_watcher *w);
    void *arg;
};

void tc_kit_watcher_init(struct tc_kit_watcher *w);
void tc_kit_watcher_fini(struct tc_kit_watcher *w);
void tc_kit_release(struct tc_kit_watcher *w);
/* What was told since the last call; borrowed until the next. */
const char *tc_kit_told(struct tc_kit_watcher *w);

struct tc_kit {
    struct tc_loop *loop;
    struct tc_fake_xds *fake;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_client *client;
    struct tc_fake_xds_server *server; /* the first of the bootstrap */
    char *text;                        /* of the last tc_kit_request */
};

/* A client on a manual loop. NULL: one server "s1", node id "node1". */
void tc_kit_init(struct tc_kit *k, const char *bootstrap);
/* The same, which has resources of any size decoded by another thread (support/gate.h). */
void tc_kit_init_ahead(struct tc_kit *k);
void tc_kit_fini(struct tc_kit *k);
void tc_kit_watch(struct tc_kit *k, const struct tc_xds_resource_type *type, const char *name,
                  struct tc_kit_watcher *w);
void tc_kit_unwatch(struct tc_kit *k, struct tc_kit_watcher *w);
/* The next request of the server as "Type [names] version nonce" and " NACK text"; "" when there is none. A delta
 * request is "Type +[subscribed] -[unsubscribed] {initial versions} nonce". */
const char *tc_kit_request(struct tc_kit *k, struct tc_fake_xds_server *s);
/* Sends a response of resources, up to a NULL, and runs the loop. */
void tc_kit_respond(struct tc_kit *k, struct tc_fake_xds_server *s, const struct tc_xds_resource_type *type,
                    const char *version, const char *nonce, ...) __attribute__((sentinel));
/* The same for a delta response: resources are "name|value@version", "-name" is one removed, "!name" one with a
 * resource error NOT_FOUND "gone". */
void tc_kit_respond_delta(struct tc_kit *k, struct tc_fake_xds_server *s, const struct tc_xds_resource_type *type,
                          const char *nonce, ...) __attribute__((sentinel));
bool tc_kit_creds_supported(void *arg, const char *type, const json_t *config);

#endif
