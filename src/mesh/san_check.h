/* Whether a server's certificate has a name that the cluster asks for (A29, A101). */
#ifndef TC_MESH_SAN_CHECK_H
#define TC_MESH_SAN_CHECK_H

#include "resource/matchers.h"
#include "tls/san.h"

struct tc_buf;

struct tc_san_check {
    size_t n; /* 0: any certificate will do */
    const struct tc_string_matcher *matchers;
    bool by_sni; /* A101: when there is an SNI, it in place of the matchers, as a DNS name */
};

/* Reason to `why` when false. sni: what was sent; empty: none. */
bool tc_san_check(const struct tc_san_check *c, struct x509_st *leaf, struct tc_slice sni, struct tc_buf *why);
/* One name against one matcher; `steps` as in resource/matchers.h. */
bool tc_san_matches(const struct tc_string_matcher *m, enum tc_san_kind kind, struct tc_slice name, uint64_t *steps);

#endif
