#include "tls/peer.h"

#include "base/mem.h"
#include "tls/openssl.h"

static bool name_add(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    struct tc_tls_peer *peer = arg;
    if (name.len && !memchr(name.data, 0, name.len))
        *tc_vec_push(&peer->names) = (struct tc_tls_peer_name){kind, tc_slice_dup(name)};
    return false;
}

struct tc_tls_peer *tc_tls_peer_new(struct x509_st *leaf)
{
    struct tc_tls_peer *peer = TC_NEW(struct tc_tls_peer);
    tc_ref_init(&peer->ref);
    int len = i2d_X509(leaf, NULL);
    if (len > 0) {
        peer->der = tc_rstr_room(NULL, (size_t)len);
        unsigned char *at = (unsigned char *)peer->der->data;
        i2d_X509(leaf, &at);
        peer->der->len = (size_t)len;
        peer->der->data[len] = '\0';
    }
    tc_san_find(leaf, name_add, peer, NULL);
    return peer;
}

struct tc_tls_peer *tc_tls_peer_ref(struct tc_tls_peer *peer)
{
    if (peer)
        tc_ref_inc(&peer->ref);
    return peer;
}

void tc_tls_peer_unref(struct tc_tls_peer *peer)
{
    if (!peer || !tc_ref_dec(&peer->ref))
        return;
    for (size_t i = 0; i < peer->names.len; i++)
        tc_free(peer->names.data[i].text);
    tc_vec_fini(&peer->names);
    tc_rstr_unref(peer->der);
    tc_free(peer);
}
