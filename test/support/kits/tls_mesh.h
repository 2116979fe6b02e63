/* A mesh whose clusters are secured by xDS (A29), over real sockets: a kit_mesh, certificate files in a temporary
 * folder, and channels with xds credentials whose bootstrap has certificate providers for those files. */
#ifndef TC_SUPPORT_KITS_TLS_MESH_H
#define TC_SUPPORT_KITS_TLS_MESH_H

#include "support/kits/cert.h"
#include "support/kits/mesh.h"
#include "support/net/wire_proxy.h"

/* The first bytes of a TLS connection: type and version of the ClientHello's record. */
#define KIT_TLS_MESH_HELLO "\x16\x03\x01"

struct kit_tls_mesh {
    struct kit_mesh *k; /* owned, as are all members */
    torc_channel *ch;   /* to "xds:///svc", made by kit_tls_mesh_open; NULL before. kit_tls_mesh_fini frees it */
    char folder[64];    /* the path of the temporary folder */
    char *bootstrap;    /* JSON */
    struct kit_cert root, other_root, server, client;
};

/* Makes n plaintext backends, certificates, files and a bootstrap. `root` has issued `server`, for DNS:b.mesh.test and
 * URI:spiffe://mesh.test/b, and `client`. Files: root.pem, other.pem (of other_root), cert.pem and key.pem (of
 * `client`). Providers: "mesh" (root.pem, cert.pem, key.pem), "other" (other.pem as roots), "roots" (root.pem alone),
 * "late" (late.pem as roots, a file that does not exist yet), "spiffe" (map.json, which does not exist yet either) and
 * "strange" (an unknown plugin). All but "strange" have this refresh interval ("1s"). */
void kit_tls_mesh_init(struct kit_tls_mesh *w, size_t n, const char *refresh_interval);
/* Frees everything and removes the folder. The test must have removed files with other names than those above. */
void kit_tls_mesh_fini(struct kit_tls_mesh *w);
/* Writes a file of the folder. An existing file is replaced by rename. */
void kit_tls_mesh_write(const struct kit_tls_mesh *w, const char *name, const char *content);

/* Starts backend i again, behind TLS with this certificate. Clients must have a certificate issued by `root`. `verify`
 * (may be NULL) is called with `arg`, on the servers' thread, to check a client's certificate further. */
void kit_tls_mesh_secure(struct kit_tls_mesh *w, size_t i, const struct kit_cert *cert, tc_tls_verify_fn verify,
                         void *arg);
/* Puts a round_robin cluster with one endpoint, at "IPV4:PORT" and with hostname "b.mesh.test". tls: fields of the
 * cluster's UpstreamTlsContext (kit_tls_mesh_context); NULL: no transport_socket. */
void kit_tls_mesh_put_cluster(struct kit_tls_mesh *w, const char *name, const char *address, const char *tls);
/* Returns the fields of an UpstreamTlsContext, the inside of a YAML flow map: the identity of provider "mesh", the
 * roots of provider `roots`, the matchers `sans` for names (a YAML flow list), and more fields ("", ", sni: x"). The
 * caller frees the text with tc_free. */
char *kit_tls_mesh_context(const char *roots, const char *sans, const char *more);
/* Puts a listener "svc" that sends RPCs with the header "to: good" to the cluster "good", all others to "c". */
void kit_tls_mesh_put_listener(struct kit_tls_mesh *w);
/* Makes a channel to "xds:///NAME" with xds credentials whose fallback is insecure. The caller frees it. */
torc_channel *kit_tls_mesh_channel(struct kit_tls_mesh *w, const char *name);
/* Puts the listener "svc" and makes w->ch. */
void kit_tls_mesh_open(struct kit_tls_mesh *w);
/* Asserts that the bytes that the proxy has stored (wire_proxy_saw) are not plaintext: they have no HTTP/2 preface, and
 * no text of a kit_mesh RPC. */
void kit_tls_mesh_expect_nothing_clear(struct wire_proxy *p);

#endif
