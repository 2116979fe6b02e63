/* The credentials of one cluster's connections (A29), made of what its UpstreamTlsContext says and the certificate
 * providers of the bootstrap. Loop thread only. */
#ifndef TC_MESH_CLUSTER_TLS_H
#define TC_MESH_CLUSTER_TLS_H

#include "lb/endpoint.h"
#include "mesh/domain.h"
#include "resource/cluster.h"
#include "xds/bootstrap.h"

struct tc_cluster_tls;

/* NULL with UNAVAILABLE in *why when a provider cannot be had. Providers need not have certificates yet: handshakes
 * fail with the reason until they do. */
struct tc_cluster_tls *tc_cluster_tls_new(struct tc_mesh_domain *d, const struct tc_xds_bootstrap *b,
                                          const struct tc_cluster *cluster, struct tc_status *why);
void tc_cluster_tls_free(struct tc_cluster_tls *t); /* NULL is allowed; connections keep what they need */
/* Connections made with the one are as good as those made with the other. */
bool tc_cluster_tls_eq(const struct tc_cluster_tls *a, const struct tc_cluster_tls *b);
/* The endpoint with this security on it, and the SNI that goes with its hostname (A101); a reference. */
struct tc_endpoint *tc_cluster_tls_endpoint(const struct tc_cluster_tls *t, const struct tc_endpoint *e,
                                            struct tc_slice authority);

#endif
