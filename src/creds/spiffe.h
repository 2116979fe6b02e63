/* SPIFFE (A87): identities in certificates, and trust bundle maps, which hold the roots of each trust domain. Any
 * thread. */
#ifndef TC_CREDS_SPIFFE_H
#define TC_CREDS_SPIFFE_H

#include "base/ref.h"
#include "base/slice.h"
#include "base/validation_errors.h"

struct x509_st;
struct stack_st_X509;

/* Immutable and shared; any thread. */
struct tc_spiffe_map;

/* {"trust_domains": {"example.org": {"spiffe_sequence": 1, "keys": [{"kty": "RSA", "use": "x509-svid", "x5c": ["DER in
 * base64"]}]}}}. One bad entry refuses the whole map: returns NULL and adds validation errors. A map may have no
 * domains. */
struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json, struct tc_validation_errors *errors);
struct tc_spiffe_map *tc_spiffe_map_ref(struct tc_spiffe_map *m);
void tc_spiffe_map_unref(struct tc_spiffe_map *m); /* NULL is allowed */

/* Finds the trust domain in an id "spiffe://DOMAIN[/path]", borrowed from it. Returns NULL, or the reason why `id` is
 * not a SPIFFE id (SPIFFE ID 2). */
const char *tc_spiffe_id_parse(struct tc_slice id, struct tc_slice *domain);
/* Returns the roots for a peer, which must have one URI among its names, a SPIFFE id of a trust domain in the map. The
 * roots live as long as the map. Returns NULL after appending the reason to `why`. Called in a foreign section, from
 * OpenSSL's verification. */
struct stack_st_X509 *tc_spiffe_map_roots(const struct tc_spiffe_map *m, struct x509_st *leaf, struct tc_buf *why);

#endif
