/* The bootstrap: where the control plane is and who we are (A27 and today's text). Immutable and shared. */
#ifndef TC_XDS_BOOTSTRAP_H
#define TC_XDS_BOOTSTRAP_H

#include <jansson.h>

#include "base/faults.h"
#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "xds/limits.h"

/* One xds_servers entry. */
struct tc_xds_server {
    struct tc_rstr *uri;        /* a target of Torc's own resolvers */
    struct tc_rstr *creds_type; /* of the first supported channel_creds entry; NULL: none given (the channel's own) */
    json_t *creds_config;       /* its config, or NULL */
    json_t *call_creds;         /* A97: the entries of call_creds that are supported, or NULL: none */
    bool ignore_resource_deletion; /* server_features */
    bool fail_on_data_errors;
    bool resource_timer_is_transient_error;
    bool incremental; /* server feature "torc.incremental_ads" */
    bool trusted_xds_server;
    struct tc_rstr *key; /* text that is equal for equal entries: uri, creds, features */
};

struct tc_xds_authority {
    struct tc_rstr *name;
    struct tc_rstr *client_listener_template; /* client_listener_resource_name_template, or NULL */
    struct tc_xds_server *servers;
    size_t n_servers; /* 0: the top level's */
    bool fallback_on_reachability_only;
};

struct tc_xds_bootstrap {
    struct tc_ref ref;
    struct tc_rstr *origin; /* file and variable, as texts about it begin; NULL: it was given as a text */
    struct tc_xds_server *servers;
    size_t n_servers; /* >= 1 */
    struct tc_xds_authority *authorities;
    size_t n_authorities;
    struct tc_rstr *node_id;
    struct tc_rstr *node; /* the Node message, serialised, with user agent and client features filled in */
    struct tc_rstr *server_listener_template;         /* or NULL */
    struct tc_rstr *client_default_listener_template; /* "%s" by default */
    json_t *certificate_providers;                    /* object, or NULL (kept for credentials) */
    struct tc_xds_limits limits;
};

/* Whether a channel credential type is supported; the only thing the bootstrap asks of credentials. */
typedef bool (*tc_xds_creds_supported_fn)(void *arg, const char *type, const json_t *config);

/* Parses a bootstrap text. NULL with *error (INVALID_ARGUMENT): every fault named by field path. */
struct tc_xds_bootstrap *tc_xds_bootstrap_parse(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_status *error);
/* From GRPC_XDS_BOOTSTRAP (a path, wins) or GRPC_XDS_BOOTSTRAP_CONFIG (JSON). The text of *error names path and reason.
 */
struct tc_xds_bootstrap *tc_xds_bootstrap_from_environment(tc_xds_creds_supported_fn supported, void *arg,
                                                           struct tc_status *error);
struct tc_xds_bootstrap *tc_xds_bootstrap_ref(struct tc_xds_bootstrap *b);
void tc_xds_bootstrap_unref(struct tc_xds_bootstrap *b);
const struct tc_xds_authority *tc_xds_bootstrap_authority(const struct tc_xds_bootstrap *b, struct tc_slice name);

#endif
