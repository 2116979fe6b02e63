/* The credentials of one cluster's connections (A29), from its UpstreamTlsContext and the certificate providers of the
 * bootstrap. Loop thread only. */
#ifndef TC_XDS_LB_TLS_H
#define TC_XDS_LB_TLS_H

#include "lb/endpoint.h"
#include "xds/bootstrap/bootstrap.h"
#include "xds/domain/client_pool.h"
#include "xds/resource/cluster.h"

struct tc_cluster_tls;

/* The text of failures and explanations where the Cluster asks for TLS and the channel's credentials are not xds. */
#define TC_TLS_IGNORED "the Cluster has a transport_socket, which the channel's credentials ignore: they are not xds"

/* Returns the TLS of a cluster, for tc_cluster_tls_free; NULL, and UNAVAILABLE in *why, if a provider cannot be made or
 * is not configured with the kind of file that the cluster needs. A provider may still lack certificates: until it has
 * them, handshakes fail with the reason. `d` shares providers (NULL: nothing is shared). `b`: the bootstrap that names
 * the providers, or NULL. cluster->tls must not be NULL. */
struct tc_cluster_tls *tc_cluster_tls_new(struct tc_xds_client_pool *d, const struct tc_xds_bootstrap *b,
                                          const struct tc_cluster *cluster, struct tc_status *why);
/* NULL is allowed. Endpoints and connections hold references of the credentials. */
void tc_cluster_tls_free(struct tc_cluster_tls *t);
/* Returns whether connections made with one can serve the other. NULL: the cluster has no TLS. */
bool tc_cluster_tls_eq(const struct tc_cluster_tls *a, const struct tc_cluster_tls *b);
/* Returns a copy of the endpoint with these credentials and the endpoint's SNI (A101), with one reference.
 * `authority`: the channel's. */
struct tc_endpoint *tc_cluster_tls_endpoint(const struct tc_cluster_tls *t, const struct tc_endpoint *e,
                                            struct tc_slice authority);

#endif
