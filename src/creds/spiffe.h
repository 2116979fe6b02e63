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

/* Parses {"trust_domains": {"example.org": {"spiffe_sequence": 1, "keys": [{"kty": "RSA", "use": "x509-svid", "x5c":
 * ["DER in base64"]}]}}}. Returns the map with one reference. Returns NULL after adding validation errors if any entry
 * is bad, the text is not JSON of this form, OpenSSL is not available, or the process is exiting. "trust_domains" may
 * be empty. */
struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json, struct tc_validation_errors *errors);
struct tc_spiffe_map *tc_spiffe_map_ref(struct tc_spiffe_map *m);
void tc_spiffe_map_unref(struct tc_spiffe_map *m); /* NULL is allowed */

/* Stores the trust domain of an id "spiffe://DOMAIN[/path]" in *domain, borrowed from `id`. Returns NULL, or, with
 * *domain unchanged, the reason why `id` is not a SPIFFE id (section 2 of SPIFFE-ID), a static text. */
const char *tc_spiffe_id_parse(struct tc_slice id, struct tc_slice *domain);
/* Returns the roots for a peer, borrowed from the map. The leaf must have exactly one URI among its names, a SPIFFE id
 * whose trust domain is in the map; else returns NULL after appending the reason to `why`. Called in a foreign section,
 * from OpenSSL's verification. */
struct stack_st_X509 *tc_spiffe_map_roots(const struct tc_spiffe_map *m, struct x509_st *leaf, struct tc_buf *why);

#endif
