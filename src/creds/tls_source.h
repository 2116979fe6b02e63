/* A TLS context whose roots, certificate and key come from files: replaced when their content has changed. Any thread,
 * except init and fini. */
#ifndef TC_CREDS_TLS_SOURCE_H
#define TC_CREDS_TLS_SOURCE_H

#include "base/fork.h"
#include "creds/cert_files.h"
#include "tls/tls.h"

struct tc_tls_source_opts {
    struct tc_cert_files *roots;    /* NULL: the system's roots */
    struct tc_cert_files *identity; /* NULL: no client certificate; servers need one. May be the same files. */
    bool server;
    enum tc_tls_verify verify;
    bool one_name;              /* as in struct tc_tls_opts */
    tc_tls_verify_fn verify_fn; /* may be NULL */
    void *verify_arg;           /* must outlive every context of the source, and so every handshake */
};

struct tc_tls_source {
    struct tc_tls_source_opts opts;
    struct tc_lock lock;
    /* Under the lock. */
    struct tc_tls_context *context;         /* NULL: none yet */
    struct tc_cert_roots *from_roots;       /* the content that `context` was made of; NULL: none */
    struct tc_cert_identity *from_identity; /* the content that `context` was made of; NULL: none */
    uint64_t epoch;                         /* the ids of the two contents; 0: none yet, or no files */
};

/* Takes references to the files. Makes no context yet. */
void tc_tls_source_init(struct tc_tls_source *s, const struct tc_tls_source_opts *opts);
void tc_tls_source_fini(struct tc_tls_source *s);
/* Returns the context of the files' content (tc_cert_files_roots, tc_cert_files_identity) with one reference, or NULL
 * with the reason in *why (tc_free; may be NULL).
 *
 * *epoch (may be NULL) becomes a number that changes when the content does. Sources of the same struct tc_cert_files
 * have the same numbers, so that their users may share connections. When NULL is returned, *epoch is that of the last
 * context that could be made (0: none). No lock must be held. */
struct tc_tls_context *tc_tls_source_context(struct tc_tls_source *s, uint64_t *epoch, char **why);
/* Returns the shortest refresh interval of the files, in nanoseconds; 0: there are no files, or no interval. */
uint64_t tc_tls_source_refresh_ns(const struct tc_tls_source *s);

#endif
