/* Checks that a server's certificate has a name that the cluster asks for (A29, A101). Any thread; tc_san_check in a
 * foreign section (base/fork.h), since it calls OpenSSL. */
#ifndef TC_XDS_LB_SAN_MATCHER_H
#define TC_XDS_LB_SAN_MATCHER_H

#include "tls/san.h"
#include "xds/resource/matchers.h"

struct tc_buf;

struct tc_san_check {
    size_t n;                                 /* 0: no matchers; any certificate passes, unless it must cover the SNI */
    const struct tc_string_matcher *matchers; /* borrowed */
    bool by_sni; /* A101: if an SNI was sent, the certificate must cover the SNI, and the matchers do not count */
};

/* Returns false, and appends the reason to `why`, if no name passes. sni: the name that was sent; empty: none. */
bool tc_san_check(const struct tc_san_check *c, struct x509_st *leaf, struct tc_slice sni, struct tc_buf *why);
/* Returns whether the name matches; an empty name, or one with a NUL, never does. `steps`: see
 * xds/resource/matchers.h. */
bool tc_san_matches(const struct tc_string_matcher *m, enum tc_san_kind kind, struct tc_slice name, uint64_t *steps);

#endif
