/* The xDS bootstrap (A27): the addresses of control planes, and the identity of this client. Immutable; any thread. */
#ifndef TC_XDS_BOOTSTRAP_BOOTSTRAP_H
#define TC_XDS_BOOTSTRAP_BOOTSTRAP_H

#include <jansson.h>

#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "base/validation_errors.h"
#include "xds/bootstrap/limits.h"

/* Selects the authorities whose resources one client holds for all targets that may share one (xds/domain/client_pool.h
 * says which). A71 gives each target its own client, so that each decides on its own fallback; an authority with one
 * server has nothing to fall back to. If two authorities name the same server, either both are shared or neither is. */
enum tc_xds_share {
    TC_XDS_SHARE_WITHOUT_FALLBACK, /* the default: authorities with one server that stands in no list with fallbacks */
    TC_XDS_SHARE_ALWAYS,           /* "torc.share_client": true */
    TC_XDS_SHARE_NEVER,            /* "torc.share_client": false */
};

/* One xds_servers entry. */
struct tc_xds_server {
    struct tc_rstr *uri;        /* never NULL, not empty; xds/domain checks that it is a target (bootstrap_env.h) */
    struct tc_rstr *creds_type; /* of the first supported channel_creds entry; NULL: the channel's own credentials */
    json_t *creds_config;       /* the config of creds_type, or NULL */
    json_t *call_creds;         /* A97: array of the supported entries of call_creds; NULL: none */
    /* server_features. ignore_resource_deletion changes only the key: without fail_on_data_errors a deletion leaves the
     * value in use anyway (A88). */
    bool ignore_resource_deletion;
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
    size_t n_servers; /* 0: the authority uses the top level's servers */
    bool fallback_on_reachability_only;
};

struct tc_xds_bootstrap {
    struct tc_ref ref;
    struct tc_rstr *origin; /* the variable, and the file that it names, for texts; NULL: not from the environment */
    struct tc_xds_server *servers;
    size_t n_servers; /* >= 1 */
    struct tc_xds_authority *authorities;
    size_t n_authorities;
    struct tc_rstr *node_id; /* never NULL; may be empty */
    struct tc_rstr *node;    /* the Node message, serialised, with user agent and client features filled in */
    /* The node's metadata has a GENERATOR, by which istiod chooses the form of its resources: the servers are istiod,
     * directly or behind its agent. */
    bool for_istiod;
    struct tc_rstr *server_listener_template;         /* or NULL */
    struct tc_rstr *client_default_listener_template; /* "%s" by default */
    json_t *certificate_providers;                    /* object, or NULL; checked by xds/domain (cert_providers.h) */
    struct tc_xds_limits limits;
    enum tc_xds_share share;
};

/* Returns whether a type of channel credentials is supported. `config` may be NULL. Called from inside the functions
 * below that parse; type and config are borrowed for the call. */
typedef bool (*tc_xds_creds_supported_fn)(void *arg, const char *type, const json_t *config);

/* Parses a bootstrap text. Returns an object with one reference. If the text is invalid, returns NULL with *error
 * (INVALID_ARGUMENT), whose text, cut at 8 KiB, lists the errors by field path. *error must be OK before. */
struct tc_xds_bootstrap *tc_xds_bootstrap_parse(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_status *error);
/* Parses a bootstrap text, and adds every error to *f. Returns an object with one reference; NULL if *f then has an
 * error, even an earlier one. */
struct tc_xds_bootstrap *tc_xds_bootstrap_check(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_validation_errors *f);
/* Reads the bootstrap from GRPC_XDS_BOOTSTRAP (a path) or, if that is not set or empty, from GRPC_XDS_BOOTSTRAP_CONFIG
 * (JSON). Returns an object with one reference. On failure returns NULL with *error, which names the origin and the
 * reason: UNAVAILABLE if there is no text or the file cannot be read, INVALID_ARGUMENT if the text is invalid. *error
 * must be OK before. */
struct tc_xds_bootstrap *tc_xds_bootstrap_from_environment(tc_xds_creds_supported_fn supported, void *arg,
                                                           struct tc_status *error);
/* NULL is allowed in both. */
struct tc_xds_bootstrap *tc_xds_bootstrap_ref(struct tc_xds_bootstrap *b);
void tc_xds_bootstrap_unref(struct tc_xds_bootstrap *b);
/* Returns the authority of this name, borrowed; NULL: there is none. */
const struct tc_xds_authority *tc_xds_bootstrap_authority(const struct tc_xds_bootstrap *b, struct tc_slice name);
/* Returns the server with this key, of the top level or of any authority, borrowed; NULL: none. */
const struct tc_xds_server *tc_xds_bootstrap_server(const struct tc_xds_bootstrap *b, const struct tc_rstr *key);
/* Returns whether one client holds the resources of this authority (NULL: the top level) for all targets. */
bool tc_xds_bootstrap_shares(const struct tc_xds_bootstrap *b, const struct tc_xds_authority *authority);
/* Returns whether one client holds this server's resources for all targets. All authorities that name the server have
 * the same answer. */
bool tc_xds_bootstrap_shares_server(const struct tc_xds_bootstrap *b, const struct tc_xds_server *server);
/* Returns whether tc_xds_bootstrap_shares answers `shared` for at least one authority; the top level counts as one. */
bool tc_xds_bootstrap_any(const struct tc_xds_bootstrap *b, bool shared);
/* Returns whether at least one server uses the channel's own credentials, because its entry has no channel_creds. */
bool tc_xds_bootstrap_uses_channel_credentials(const struct tc_xds_bootstrap *b);

#endif
