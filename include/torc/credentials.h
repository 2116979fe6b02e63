/* Channel credentials, which make connections trusted, and call credentials, which identify the caller on each RPC.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Credentials are immutable and counted: a constructor gives the caller one reference, and a channel or call keeps a
 * reference of its own. Functions may be called on any thread.
 *
 *     torc_credentials *tls = torc_credentials_tls(NULL, &error); // the system's roots
 *     torc_call_credentials *jwt = torc_call_credentials_jwt_token_file("/run/token", &error);
 *     torc_credentials *both = torc_credentials_composite(tls, jwt, &error);
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = both};
 *     torc_channel *channel = torc_channel_new(NULL, "dns:///orders:443", &o, &error); // fails if one of these did
 *     torc_call_credentials_unref(jwt);
 *     torc_credentials_unref(tls);
 *     torc_credentials_unref(both);
 */
#ifndef TORC_CREDENTIALS_H
#define TORC_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/export.h>
#include <torc/metadata.h>
#include <torc/size.h>
#include <torc/tls_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Credentials of channels, or of the listeners of a server. */
typedef struct torc_credentials torc_credentials;

/* TLS of a channel, from texts. */
struct torc_tls_options {
    uint64_t size;
    const char *roots_pem;       /* trusted roots, PEM; NULL: the system's */
    const char *certificate_pem; /* the client's chain, PEM, with private_key_pem; NULL: none */
    const char *private_key_pem; /* with certificate_pem; NULL: none */
    /* The application's own check of each server, after Torc's (torc/tls_peer.h); NULL: none. Only channels with these
     * very credentials share connections. The check covers the channel's server name alone, so that an RPC with another
     * authority (gRFC A81) fails. */
    torc_tls_verify_fn verify;
    void (*verify_release)(void *arg); /* called once with verify_arg, when the last reference to the credentials is
                                          gone and each torc_tls_peer was answered, on the thread that did the last of
                                          these; not if the credentials could not be made. NULL: none */
    void *verify_arg;                  /* handed to verify and verify_release; may be NULL */
    int32_t skip_verify; /* neither the server's chain nor its name is checked: without `verify`, anybody in between can
                            read and change everything, call credentials included. Logged as a warning, once in a
                            process. TORC_EINVAL with roots_pem; 0: off */
    int32_t skip_name;   /* the server's name is not checked, because `verify` does that; TORC_EINVAL without `verify`;
                            0: off */
};

/* TLS of a channel, from files in PEM form. The files are watched: new content counts from the next handshake on, and
 * established connections are replaced, without harm to their RPCs, within the refresh interval. Content that cannot be
 * used, or a certificate without its key, never replaces the last good content. Source: gRFC A65. */
struct torc_tls_files {
    uint64_t size;
    const char *ca_certificate_file; /* trusted roots; NULL: the system's */
    const char *certificate_file;    /* the client's chain, with private_key_file; NULL: none */
    const char *private_key_file;    /* with certificate_file; NULL: none */
    /* How often the files are read without a sign of a change, and how soon connections are replaced after one. 0:
     * 600000; -1: never, and established connections stay. */
    int64_t refresh_interval_ms;
    /* The application's own check of each server, as in struct torc_tls_options; NULL: none. New content of the files
     * leads to new connections, which are checked again. */
    torc_tls_verify_fn verify;
    void (*verify_release)(void *arg); /* as in struct torc_tls_options; NULL: none */
    void *verify_arg;                  /* handed to verify and verify_release; may be NULL */
    int32_t skip_verify;               /* as in struct torc_tls_options. TORC_EINVAL with ca_certificate_file; 0: off */
    int32_t skip_name;                 /* as in struct torc_tls_options. TORC_EINVAL without `verify`; 0: off */
};

/* No transport security. Never NULL: there is one object, which lives as long as the process. It may be referenced and
 * unreferenced as any other, which changes nothing. */
TORC_API torc_credentials *torc_credentials_insecure(void);
/* TLS 1.2 or newer, ALPN h2, the server's name checked against the channel's authority. The texts are copied. NULL
 * options: defaults. NULL with an error when a text is malformed or fields contradict (TORC_EINVAL), OpenSSL is not
 * there (TORC_EUNSUPPORTED), or the process is exiting (TORC_EFORK). */
TORC_API torc_credentials *torc_credentials_tls(const struct torc_tls_options *options, torc_error **error);
/* TLS as torc_credentials_tls makes it, from files. Paths are copied. NULL with an error when `files` is NULL, a file
 * cannot be read or used, or fields contradict (TORC_EINVAL), OpenSSL is not there (TORC_EUNSUPPORTED), or the process
 * is exiting (TORC_EFORK). */
TORC_API torc_credentials *torc_credentials_tls_files(const struct torc_tls_files *files, torc_error **error);
/* Credentials that use the security that the control plane configures for each cluster of an "xds:" target, with the
 * certificate providers of the bootstrap. For clusters without such a configuration, and for other targets, they use
 * `fallback`, of which they take a reference. If the security of a cluster cannot be set up, its RPCs fail; nothing is
 * sent to it as plaintext instead. For a cluster that the control plane secures, the control plane alone says whom to
 * trust (roots, and matchers of names): no hook of the application (torc/tls_peer.h) is asked. Where the fallback is
 * used, its hook is asked. NULL with an error (TORC_EINVAL) when the fallback is NULL, for servers, itself xds, or a
 * composite (make a composite of the xds credentials instead). Source: gRFCs A29, A82, A87, A101. */
TORC_API torc_credentials *torc_credentials_xds(torc_credentials *fallback, torc_error **error);

/* --- credentials of servers, for torc_server_listen ---
 *
 * Channels refuse these with TORC_EINVAL. The insecure credentials serve both sides. */

/* The certificates that a server asks of clients, if it has roots to verify them with. */
enum torc_client_certificates {
    TORC_CLIENT_CERTIFICATES_REQUIRED = 0, /* the handshake fails without one */
    TORC_CLIENT_CERTIFICATES_OPTIONAL = 1, /* asked for, and verified if one comes */
};

/* TLS of a listener, from texts. */
struct torc_server_tls_options {
    uint64_t size;
    const char *certificate_pem;  /* the server's chain, PEM, leaf first; required */
    const char *private_key_pem;  /* required */
    const char *client_roots_pem; /* trusted roots of clients, PEM; NULL: no certificate is asked of clients */
    int64_t client_certificates;  /* enum torc_client_certificates; must be 0 without client_roots_pem */
    /* The application's own check of each client, after Torc's (torc/tls_peer.h), also of a client without a
     * certificate where none is required. NULL: none. TORC_EINVAL without client_roots_pem: there is nothing to look
     * at. */
    torc_tls_verify_fn verify;
    void (*verify_release)(void *arg); /* as in struct torc_tls_options; NULL: none */
    void *verify_arg;                  /* handed to verify and verify_release; may be NULL */
};

/* TLS of a listener, from files in PEM form. The files are watched as those of struct torc_tls_files: new content
 * counts from the next connection on. */
struct torc_server_tls_files {
    uint64_t size;
    const char *certificate_file;           /* the server's chain; required */
    const char *private_key_file;           /* required */
    const char *client_ca_certificate_file; /* trusted roots of clients; NULL: no certificate is asked of clients */
    int64_t client_certificates; /* enum torc_client_certificates; must be 0 without client_ca_certificate_file */
    /* How often the files are read without a sign of a change. 0: 600000; -1: never. */
    int64_t refresh_interval_ms;
    /* The application's own check of each client, as in struct torc_server_tls_options; NULL: none. TORC_EINVAL without
     * client_ca_certificate_file. */
    torc_tls_verify_fn verify;
    void (*verify_release)(void *arg); /* as in struct torc_tls_options; NULL: none */
    void *verify_arg;                  /* handed to verify and verify_release; may be NULL */
};

/* TLS 1.2 or newer, ALPN h2. The texts are copied. NULL with an error when a text is missing or malformed, the key is
 * not the certificate's, or fields contradict (TORC_EINVAL), OpenSSL is not there (TORC_EUNSUPPORTED), or the process
 * is exiting (TORC_EFORK). */
TORC_API torc_credentials *torc_server_credentials_tls(const struct torc_server_tls_options *options,
                                                       torc_error **error);
/* torc_server_credentials_tls from files. Paths are copied. NULL with an error also when a file cannot be read
 * (TORC_EINVAL). */
TORC_API torc_credentials *torc_server_credentials_tls_files(const struct torc_server_tls_files *files,
                                                             torc_error **error);

/* Adds a reference, which torc_credentials_unref gives back. Returns `credentials`; NULL for NULL. */
TORC_API torc_credentials *torc_credentials_ref(torc_credentials *credentials);
/* Gives back one reference. NULL is allowed. */
TORC_API void torc_credentials_unref(torc_credentials *credentials);

/* --- call credentials ---
 *
 * They add metadata to RPCs, never over plaintext: an RPC whose connection has no transport security fails with
 * UNAUTHENTICATED instead of sending them. They are fetched when an RPC needs them; RPCs wait for a fetch within their
 * deadline and fail with its status when it fails. Control planes never get the call credentials of the application's
 * channels (A27).
 */

/* Call credentials. */
typedef struct torc_call_credentials torc_call_credentials;

/* Adds a reference, which torc_call_credentials_unref gives back. Returns `credentials`; NULL for NULL. */
TORC_API torc_call_credentials *torc_call_credentials_ref(torc_call_credentials *credentials);
/* Gives back one reference. The last one aborts a fetch over HTTP that runs (that of a file ends by itself), and waits
 * for the fetch's thread. NULL is allowed. */
TORC_API void torc_call_credentials_unref(torc_call_credentials *credentials);

/* Channel credentials with call credentials for each RPC; takes references to both. Given a composite, its call
 * credentials apply too, before the new ones. NULL with an error (TORC_EINVAL) when one of them is NULL. */
TORC_API torc_credentials *torc_credentials_composite(torc_credentials *channel, torc_call_credentials *call,
                                                      torc_error **error);
/* Call credentials that add the metadata of `first`, then of `second`; takes references to both. NULL with an error
 * (TORC_EINVAL) when one of them is NULL. */
TORC_API torc_call_credentials *torc_call_credentials_composite(torc_call_credentials *first,
                                                                torc_call_credentials *second, torc_error **error);

/* Call credentials that send "authorization: Bearer" with the JWT in a file (A97). The file is read when an RPC needs
 * the token, and again when the token ends (its "exp") within 90 s. In the last 30 s the token is sent only by RPCs
 * that waited for its reading. RPCs without a valid token fail: with UNAVAILABLE when the file cannot be read or its
 * token has expired, with UNAUTHENTICATED when it holds no JWT with "exp". After a failure the file is read again with
 * connection backoff. NULL with an error (TORC_EINVAL) for a path that is NULL or empty. */
TORC_API torc_call_credentials *torc_call_credentials_jwt_token_file(const char *path, torc_error **error);

/* Google's default credentials. The texts are copied. */
struct torc_google_options {
    uint64_t size;
    const char *roots_pem; /* trusted roots of the channel, PEM; NULL: the file that GRPC_DEFAULT_SSL_ROOTS_FILE_PATH
                              names, or the system's */
    const char *credentials_file; /* instead of what torc_credentials_google_default looks for; NULL: that */
    const char *metadata_host;    /* the metadata server, host[:port]; NULL: GCE_METADATA_HOST or Google's */
};
/* "google_default": TLS, and Google's application default credentials on each RPC, from the first of: the file that
 * GOOGLE_APPLICATION_CREDENTIALS names; application_default_credentials.json in CLOUDSDK_CONFIG or ~/.config/gcloud;
 * the metadata server. A service account signs its own JWT for the RPC's host; an authorized user's refresh token and
 * the metadata server give access tokens, cached and refreshed as with the JWT file; a token_uri in a file must be
 * https or on this machine. RPCs fail UNAVAILABLE or UNAUTHENTICATED without a valid token, as A83 says. NULL options:
 * defaults. NULL with an error when a file is unreadable or malformed (TORC_EINVAL), OpenSSL is not there, or Torc was
 * built without these credentials (TORC_EUNSUPPORTED), or the process is exiting (TORC_EFORK). libcurl is loaded with
 * the first fetch: without it, RPCs that need one fail with UNAVAILABLE. */
TORC_API torc_credentials *torc_credentials_google_default(const struct torc_google_options *options,
                                                           torc_error **error);

/* A request for the metadata of one attempt of an RPC. It belongs to the application until torc_auth_request_complete,
 * and may outlive the RPC, the channel and the runtime. */
typedef struct torc_auth_request torc_auth_request;
/* Called on the loop's thread; must not block. Each request must be completed once, from inside or later, from any
 * thread, also when the RPC has ended. */
typedef void (*torc_auth_fn)(torc_auth_request *request, void *arg);
/* Returns the service that the RPC calls, as the audience of a token: "https://host/package.Service". Borrowed until
 * the request is completed; NULL for NULL. Any thread. */
TORC_API const char *torc_auth_request_service_url(const torc_auth_request *request);
/* Returns the method's name, without its service: "Method". Borrowed until the request is completed; NULL for NULL. Any
 * thread. */
TORC_API const char *torc_auth_request_method(const torc_auth_request *request);
/* The application's own call credentials. fn is called for each attempt of an RPC (retries and hedges too): Torc caches
 * nothing. release (may be NULL) is called with arg when the last reference is gone, also while requests wait to be
 * completed. `type` is a name for messages; copied. NULL with an error (TORC_EINVAL) when type or fn is NULL. */
TORC_API torc_call_credentials *torc_call_credentials_plugin(const char *type, torc_auth_fn fn,
                                                             void (*release)(void *arg), void *arg, torc_error **error);
/* Answers a request, and frees it. NULL is allowed. With TORC_STATUS_OK the metadata (copied, may be NULL) is added to
 * the RPC; with another code the RPC fails with this code and the message (copied, may be NULL). Codes that only
 * servers give (those named at torc_resolver_report_error) become INTERNAL, and numbers that are not a code UNKNOWN.
 * Any thread. */
TORC_API void torc_auth_request_complete(torc_auth_request *request, int code, const char *message,
                                         const torc_metadata *metadata);

#ifdef __cplusplus
}
#endif
#endif
