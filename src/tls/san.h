/* The names in a certificate: its subject alternative names, and how a DNS name among them covers a host. */
#ifndef TC_TLS_SAN_H
#define TC_TLS_SAN_H

#include "base/buf.h"

struct x509_st; /* OpenSSL's X509 */

enum tc_san_kind { TC_SAN_DNS, TC_SAN_URI, TC_SAN_EMAIL, TC_SAN_IP };

/* True ends the search. `name` is borrowed for the call; IP addresses come in their canonical text (RFC 5952). */
typedef bool (*tc_san_fn)(void *arg, enum tc_san_kind kind, struct tc_slice name);

/* Hands each name of these kinds to fn until it returns true; whether it did. Names may be empty or have a NUL inside.
 * *n (may be NULL): how many names there were until then. */
bool tc_san_find(struct x509_st *cert, tc_san_fn fn, void *arg, size_t *n);

/* Whether the DNS name of a certificate covers the host: equal in any case of letters, a dot of the root at either end
 * ignored; "*" alone as the leftmost label covers exactly one label (RFC 6125 6.4.3, A29). */
bool tc_san_covers(struct tc_slice pattern, struct tc_slice host);

/* The certificate's serial number in hexadecimal, as OpenSSL's commands print it. */
void tc_cert_serial(struct x509_st *cert, struct tc_buf *out);

#endif
