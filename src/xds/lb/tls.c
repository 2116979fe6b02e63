/* Credentials of the connections to one cluster (A29), and the SNI that goes with them (A101).
 *
 * A cluster's UpstreamTlsContext names instances of certificate providers (roots, identity) and says which names the
 * server's certificate must have. The credentials hold the providers and the Cluster resource, whose matchers they
 * read. The key of the credentials is made of the providers' files and the demands on names. Clusters, or snapshots of
 * one cluster, whose keys are equal share connections in the pool where the SNI is the same.
 *
 * The SNI may differ from endpoint to endpoint, so it goes with the endpoint (tc_cluster_tls_endpoint) and not with the
 * credentials.
 *
 * Ownership: cds owns the struct tc_cluster_tls. That struct and every endpoint from tc_cluster_tls_endpoint hold a
 * reference of the credentials. Loop thread only; OpenSSL calls creds_verify in a foreign section (base/fork.h). */
#include "xds/lb/tls.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/mem.h"
#include "creds/handshake.h"
#include "io/addr.h"
#include "subchannel/endpoint_security.h"
#include "xds/domain/cert_providers.h"
#include "xds/lb/san_matcher.h"

/* The credentials. Connections may be shared where base.key and the SNI are equal. */
struct cluster_creds {
    torc_credentials base;
    struct tc_cert_provider *roots;    /* NULL: the system's */
    struct tc_cert_provider *identity; /* NULL: none */
    struct tc_xds_resource *resource;  /* holds the matchers */
    struct tc_san_check sans;
    struct tc_tls_source source;
    char *about; /* for texts: cluster "NAME": TLS */
};

struct tc_cluster_tls {
    torc_credentials *creds;
    const struct tc_cluster *cluster; /* borrowed: the credentials hold a reference */
};

static struct cluster_creds *creds_of(torc_credentials *base)
{
    return TC_CONTAINER_OF(base, struct cluster_creds, base);
}

static struct tc_creds_handshake *creds_start(torc_credentials *base, struct tc_loop *loop, struct tc_bytestream *bs,
                                              const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    return tc_creds_handshake_source(loop, &creds_of(base)->source, NULL, creds_of(base)->about, bs, peer, fn, arg);
}

/* Returns a number that changes when the content of the certificate files does. */
static uint64_t creds_epoch(torc_credentials *base)
{
    uint64_t number;
    tc_tls_context_unref(tc_tls_source_context(&creds_of(base)->source, &number, NULL));
    return number;
}

static void creds_free(torc_credentials *base)
{
    struct cluster_creds *c = creds_of(base);
    tc_tls_source_fini(&c->source);
    tc_cert_provider_unref(c->roots);
    tc_cert_provider_unref(c->identity);
    tc_xds_resource_unref(c->resource);
    tc_rstr_unref(c->base.key);
    tc_free(c->about);
    tc_free(c);
}

static const struct tc_creds_ops creds_ops = {.type = "xds_cluster",
                                              .start = creds_start,
                                              .cancel = tc_creds_handshake_cancel,
                                              .epoch = creds_epoch,
                                              .free = creds_free};

/* A29: checks the names of the certificate instead of the host's name. */
static bool creds_verify(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    const struct cluster_creds *c = arg;
    return tc_san_check(&c->sans, leaf, tc_slice_str(name), why);
}

/* Appends the text behind its length, so that two different lists of texts never give the same key. */
static void key_add_text(struct tc_buf *b, struct tc_slice s)
{
    tc_buf_printf(b, "%zu:", s.len);
    tc_buf_append_slice(b, s);
}

/* Returns a key that is equal for clusters with the same files and the same demands on names. */
static struct tc_rstr *creds_key(const struct cluster_creds *c)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "xds_cluster:");
    key_add_text(&b, c->roots ? tc_rstr_slice(tc_cert_files_key(c->roots->files)) : tc_slice_str(""));
    key_add_text(&b, c->identity ? tc_rstr_slice(tc_cert_files_key(c->identity->files)) : tc_slice_str(""));
    tc_buf_printf(&b, "%d", c->sans.by_sni);
    for (size_t i = 0; i < c->sans.n; i++) {
        const struct tc_string_matcher *m = &c->sans.matchers[i];
        tc_buf_printf(&b, ";%d%d", (int)m->kind, m->ignore_case);
        key_add_text(&b, m->text);
    }
    return tc_rstr_of_buf(&b);
}

/* Gets the provider of an instance (NULL: none is asked for, and *out stays as it is). Returns false, with the reason
 * in *why (tc_free), if the provider cannot be made or lacks the kind of file that is needed: roots, or else an
 * identity. The caller gives *out back in either case. */
static bool tls_get_provider(struct tc_xds_client_pool *d, const struct tc_xds_bootstrap *b,
                             const struct tc_rstr *instance, bool roots, struct tc_cert_provider **out, char **why)
{
    if (!instance)
        return true;
    *out = tc_cert_provider_get(d ? tc_xds_client_pool_cert_providers(d) : NULL, b, instance->data, why);
    if (!*out)
        return false;
    const struct tc_cert_files *files = (*out)->files;
    if (roots ? tc_cert_files_have_roots(files) : tc_cert_files_have_identity(files))
        return true;
    *why = tc_asprintf("certificate provider instance \"%s\" has no %s", instance->data,
                       roots ? "ca_certificate_file" : "certificate_file");
    return false;
}

struct tc_cluster_tls *tc_cluster_tls_new(struct tc_xds_client_pool *d, const struct tc_xds_bootstrap *b,
                                          const struct tc_cluster *cluster, struct tc_status *why)
{
    const struct tc_upstream_tls *tls = cluster->tls;
    struct tc_cert_provider *roots = NULL, *identity = NULL;
    char *reason = NULL;
    if (!tls_get_provider(d, b, tls->ca_instance, true, &roots, &reason) ||
        !tls_get_provider(d, b, tls->identity_instance, false, &identity, &reason)) {
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "cluster \"" TC_SHOWN "\": TLS: %s",
                              TC_SHOW(cluster->name->data), reason);
        tc_cert_provider_unref(roots);
        tc_cert_provider_unref(identity);
        tc_free(reason);
        return NULL;
    }
    struct cluster_creds *c = TC_NEW(struct cluster_creds);
    tc_ref_init(&c->base.ref);
    c->base.ops = &creds_ops;
    c->base.scheme = "https";
    c->roots = roots;
    c->identity = identity;
    c->resource = tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&cluster->base.head);
    c->sans = (struct tc_san_check){tls->n_san_matchers, tls->san_matchers, tls->auto_sni_san_validation};
    c->base.key = creds_key(c);
    c->about = tc_asprintf("cluster \"" TC_SHOWN "\": TLS", TC_SHOW(cluster->name->data));
    struct tc_tls_source_opts opts = {
        .roots = roots ? roots->files : NULL,
        .identity = identity ? identity->files : NULL,
        .verify = TC_TLS_VERIFY_CHAIN,
        .verify_fn = creds_verify,
        .verify_arg = c,
    };
    tc_tls_source_init(&c->source, &opts);
    c->base.refresh_ns = tc_tls_source_refresh_ns(&c->source);
    struct tc_cluster_tls *t = TC_NEW(struct tc_cluster_tls);
    t->creds = &c->base;
    t->cluster = cluster;
    return t;
}

void tc_cluster_tls_free(struct tc_cluster_tls *t)
{
    if (!t)
        return;
    torc_credentials_unref(t->creds);
    tc_free(t);
}

/* SNI is not a part of the credentials' key. */
static bool tls_same_sni(const struct tc_upstream_tls *a, const struct tc_upstream_tls *b)
{
    return a->auto_host_sni == b->auto_host_sni && tc_slice_eq(a->sni, b->sni);
}

bool tc_cluster_tls_eq(const struct tc_cluster_tls *a, const struct tc_cluster_tls *b)
{
    return a == b ||
           (a && b && tc_rstr_eq(a->creds->key, b->creds->key) && tls_same_sni(a->cluster->tls, b->cluster->tls));
}

/* --- SNI --- */

/* Returns whether the host is an IP address, which must not be an SNI (RFC 6066 section 3), or is empty. */
static bool sni_is_literal(struct tc_slice host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN];
    if (host.len == 0 || host.data[0] == '[' || memchr(host.data, ':', host.len))
        return true;
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1;
}

/* A101: returns the endpoint's hostname if auto_host_sni is set and the hostname is a DNS name; else the configured
 * SNI; else, if GRPC_USE_CHANNEL_AUTHORITY_IF_NO_SNI_APPLICABLE is "true" and auto_sni_san_validation is not set, the
 * channel's authority. Hostname and authority lose their port. Borrowed from the argument that has it. Empty: no SNI.
 * An IP address is never an SNI. */
static struct tc_slice tls_sni_of(const struct tc_cluster *c, const struct tc_endpoint *e, struct tc_slice authority)
{
    struct tc_slice host = tc_slice_of(NULL, 0);
    if (c->tls->auto_host_sni)
        host = tc_addr_host_of(tc_rstr_slice(e->hostname));
    if (sni_is_literal(host))
        host = c->tls->sni;
    const char *before = getenv("GRPC_USE_CHANNEL_AUTHORITY_IF_NO_SNI_APPLICABLE");
    /* The authority must not decide which names of a certificate pass, as it would with auto_sni_san_validation. */
    if (sni_is_literal(host) && before && strcmp(before, "true") == 0 && !c->tls->auto_sni_san_validation)
        host = tc_addr_host_of(authority);
    return sni_is_literal(host) ? tc_slice_of(NULL, 0) : host;
}

struct tc_endpoint *tc_cluster_tls_endpoint(const struct tc_cluster_tls *t, const struct tc_endpoint *e,
                                            struct tc_slice authority)
{
    struct tc_slice sni = tls_sni_of(t->cluster, e, authority);
    struct tc_rstr *name = tc_rstr_new(sni.data, sni.len);
    struct tc_endpoint *out = tc_endpoint_secured(e, tc_security_new(t->creds, name));
    tc_rstr_unref(name);
    return out;
}
