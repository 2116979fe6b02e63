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

/* Returns true to end the search. `name` is borrowed for the call; IP addresses come as text, as inet_ntop writes it;
 * empty if the bytes are not an address. */
typedef bool (*tc_san_fn)(void *arg, enum tc_san_kind kind, struct tc_slice name);

/* Hands each name of these kinds to fn until fn returns true, and returns whether fn did. Names may be empty or have a
 * NUL inside. Stores in *n (may be NULL) how many names were handed over. */
bool tc_san_find(struct x509_st *cert, tc_san_fn fn, void *arg, size_t *n);

/* Returns false for a host that no certificate can be for: it is empty, or has an empty label (so the dot of the root
 * must be off), a '*' or a NUL. Without this check OpenSSL would take ".test" for every name below it. */
bool tc_san_is_host(struct tc_slice host);

/* Returns whether the DNS name of a certificate covers the host: the two are equal in any case of letters, without the
 * dot of the root that each may end with; or "*" is the whole leftmost label of `pattern` and stands for exactly one
 * label of a host that is not an IPv4 address (RFC 6125 6.4.3, RFC 9525, A29). A name with an empty label or a NUL
 * covers nothing, and nothing covers it. */
bool tc_san_covers(struct tc_slice pattern, struct tc_slice host);

#endif
