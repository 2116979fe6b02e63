/* A mesh whose clusters are secured by xDS (A29), for tests on real sockets: mesh_kit, certificate files in a folder of
 * the test's, and channels with xds credentials whose bootstrap has providers of those files. */
#ifndef TC_SUPPORT_TLS_WORLD_H
#define TC_SUPPORT_TLS_WORLD_H

#include "support/certs.h"
#include "support/mesh_kit.h"
#include "support/wire_proxy.h"

/* How a connection begins that speaks TLS: the record of a ClientHello. */
#define TLS_WORLD_HELLO "\x16\x03\x01"

struct tls_world {
    struct mesh_kit *k;
    torc_channel *ch; /* tls_world_open; to "xds:///svc" */
    char folder[64];
    char *bootstrap;
    struct tc_cert root, other_root, server, client;
};

/* n backends in the clear. Files root.pem, cert.pem and key.pem (of `client`), other.pem; providers "mesh" (all three),
 * "other" (other.pem as roots), "roots" (root.pem alone), "late" (late.pem as roots, which is not there), "spiffe"
 * (map.json, likewise) and "strange" (an unknown plugin), all of them with this refresh interval ("1s"). The server's
 * certificate is for DNS:b.mesh.test and URI:spiffe://mesh.test/b. */
void tls_world_init(struct tls_world *w, size_t n, const char *refresh_interval);
void tls_world_fini(struct tls_world *w);
/* Replaces a file of the folder by rename. */
void tls_world_write(const struct tls_world *w, const char *name, const char *content);

/* Puts backend i behind TLS with this certificate; clients must have one of `root`, `verify` (may be NULL) sees it. */
void tls_world_secure(struct tls_world *w, size_t i, const struct tc_cert *cert, tc_tls_verify_fn verify, void *arg);
/* A cluster, round_robin, of the endpoint "HOST:PORT", with hostname "b.mesh.test"; tls: fields of its
 * UpstreamTlsContext (a YAML flow map's inside; NULL: no transport_socket). */
void tls_world_put_cluster(struct tls_world *w, const char *name, const char *address, const char *tls);
/* UpstreamTlsContext of identity "mesh" and these roots, with matchers for names (a YAML flow list) and more of the
 * outer message ("", ", sni: x"). The caller frees it with tc_free. */
char *tls_world_context(const char *roots, const char *sans, const char *more);
/* A listener "svc" whose RPCs go to the cluster "good" with the header "to: good", else to "c". */
void tls_world_put_listener(struct tls_world *w);
/* A channel with xds credentials over insecure ones. */
torc_channel *tls_world_channel(struct tls_world *w, const char *name);
void tls_world_open(struct tls_world *w);
/* Of all that went through the proxy nothing is HTTP/2, or a part of an RPC of mesh_kit. */
void tls_world_expect_nothing_clear(struct wire_proxy *p);

#endif
