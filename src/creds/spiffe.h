/* SPIFFE (A87): identities in certificates, and trust bundle maps, which say whose roots count for which trust domain.
 */
#ifndef TC_CREDS_SPIFFE_H
#define TC_CREDS_SPIFFE_H

#include "base/faults.h"
#include "base/ref.h"
#include "base/slice.h"

struct x509_st;
struct stack_st_X509;

/* Immutable and shared; any thread. */
struct tc_spiffe_map;

/* {"trust_domains": {"example.org": {"spiffe_sequence": 1, "keys": [{"kty": "RSA", "use": "x509-svid", "x5c": ["DER in
 * base64"]}]}}}. One bad entry refuses the whole: NULL with faults. A map without domains is a map. */
struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json, struct tc_faults *faults);
struct tc_spiffe_map *tc_spiffe_map_ref(struct tc_spiffe_map *m);
void tc_spiffe_map_unref(struct tc_spiffe_map *m); /* NULL is allowed */

/* The trust domain in an id "spiffe://DOMAIN[/path]", borrowed from it. NULL, or the reason for which it is no id
 * (SPIFFE ID 2). */
const char *tc_spiffe_id_parse(struct tc_slice id, struct tc_slice *domain);
/* The roots for a peer: it must have one URI among its names, a SPIFFE id of a trust domain in the map. Lives as long
 * as the map; NULL with the reason appended to `why`. */
struct stack_st_X509 *tc_spiffe_map_roots(const struct tc_spiffe_map *m, struct x509_st *leaf, struct tc_buf *why);

#endif
