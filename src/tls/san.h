/* The names in a certificate: its subject alternative names, and how a DNS name among them covers a host. Pure
 * functions, any thread; tc_san_find is called in a foreign section (base/fork.h), since it calls OpenSSL. */
#ifndef TC_TLS_SAN_H
#define TC_TLS_SAN_H

#include <torc/tls_peer.h>

#include "base/buf.h"

struct x509_st; /* OpenSSL's X509 */

/* The numbers of enum torc_tls_name_kind. */
enum tc_san_kind {
    TC_SAN_DNS = TORC_TLS_NAME_DNS,
    TC_SAN_URI = TORC_TLS_NAME_URI,
    TC_SAN_EMAIL = TORC_TLS_NAME_EMAIL,
    TC_SAN_IP = TORC_TLS_NAME_IP,
};

/* Returns true to end the search. `name` is borrowed for the call. An IP address is text, as inet_ntop writes it, and
 * empty if its bytes are not an address. */
typedef bool (*tc_san_fn)(void *arg, enum tc_san_kind kind, struct tc_slice name);

/* Calls fn for each name of these kinds until fn returns true. Returns whether fn returned true. Names may be empty or
 * have a NUL inside. Stores in *n (may be NULL) how many names fn was called for. */
bool tc_san_find(struct x509_st *cert, tc_san_fn fn, void *arg, size_t *n);

/* Returns false for a host that no certificate can be for: it is empty, or has an empty label, a '*' or a NUL. A dot at
 * the end makes an empty label. Without this check OpenSSL would accept a certificate of any name below "test" for the
 * host ".test". */
bool tc_san_is_host(struct tc_slice host);

/* Returns whether `pattern`, the DNS name of a certificate, covers the host (RFC 6125 6.4.3, RFC 9525, A29). Ignores
 * case, and one dot at the end of each. A "*" that is the whole leftmost label of `pattern`, with a label behind it,
 * stands for exactly one label of a host that is not an IPv4 address; a pattern with a '*' elsewhere covers nothing.
 * Returns false if either has an empty label or a NUL. */
bool tc_san_covers(struct tc_slice pattern, struct tc_slice host);

#endif
