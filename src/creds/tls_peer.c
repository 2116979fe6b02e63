/* A TLS peer that waits for the application's verdict. The object is a question (io/question.h): it outlives the
 * handshake if the application answers late, and then the answer changes nothing. Only the application can accept a
 * peer: if the wait ends in another way, so does the connection. */
#include "creds/tls_peer.h"

#include "base/mem.h"
#include "io/question.h"
#include "tls/identity.h"

/* A connection that ends leaves its peer behind until the application answers. A client that connects again and again
 * must not pile up peers. */
enum { MAX_PEERS = 4096 };

struct torc_tls_peer {
    struct tc_question question;
    struct tc_tls_hook *hook; /* lives with its owner, of which the peer has a reference */
    struct tc_tls_identity *identity;
    char *address;
    tc_tls_verdict_fn fn;
    bool accepted;
    char *refusal; /* NULL: no reason was given */
};

static torc_tls_peer *peer_of(struct tc_question *q)
{
    return TC_CONTAINER_OF(q, torc_tls_peer, question);
}

static void peer_ask(struct tc_question *q)
{
    torc_tls_peer *p = peer_of(q);
    p->hook->fn(p, p->hook->arg);
}

static void peer_deliver(struct tc_question *q, void *waiter)
{
    torc_tls_peer *p = peer_of(q);
    p->fn(waiter, p->accepted ? NULL : p->refusal ? p->refusal : "no reason was given");
}

static void peer_free(struct tc_question *q)
{
    torc_tls_peer *p = peer_of(q);
    tc_tls_identity_unref(p->identity);
    tc_free(p->address);
    tc_free(p->refusal);
    atomic_fetch_sub(&p->hook->n_peers, 1);
    torc_credentials_unref(p->hook->owner);
    tc_free(p);
}

static const struct tc_question_ops peer_ops = {.ask = peer_ask, .deliver = peer_deliver, .free = peer_free};

struct torc_tls_peer *tc_tls_peer_ask(struct tc_loop *loop, struct tc_tls_hook *hook, struct tc_bytestream *bs,
                                      tc_tls_verdict_fn fn, void *arg, struct tc_buf *why)
{
    if (atomic_fetch_add(&hook->n_peers, 1) >= MAX_PEERS) {
        atomic_fetch_sub(&hook->n_peers, 1);
        tc_buf_printf(why, "%d peers wait for its answer already", MAX_PEERS);
        return NULL;
    }
    struct tc_tls_identity *identity = bs->tls_peer ? tc_tls_identity_ref(bs->tls_peer) : tc_tls_identify(bs, why);
    if (!identity) {
        atomic_fetch_sub(&hook->n_peers, 1);
        return NULL;
    }
    torc_tls_peer *p = TC_NEW(torc_tls_peer);
    p->hook = hook;
    torc_credentials_ref(hook->owner);
    p->identity = identity;
    p->address = tc_addr_text(&bs->peer);
    p->fn = fn;
    tc_question_init(&p->question, &peer_ops, loop, arg);
    tc_question_ask(&p->question);
    return p;
}

void tc_tls_peer_cancel(struct torc_tls_peer *p)
{
    tc_question_cancel(&p->question);
}

/* --- the application's --- */

const char *torc_tls_peer_server_name(const torc_tls_peer *p)
{
    return p ? p->identity->server_name : NULL;
}

const char *torc_tls_peer_address(const torc_tls_peer *p)
{
    return p ? p->address : NULL;
}

int torc_tls_peer_certificate(const torc_tls_peer *p, size_t i, const void **der, size_t *size)
{
    return p ? tc_tls_identity_certificate(p->identity, i, der, size) : TORC_EINVAL;
}

int torc_tls_peer_name(const torc_tls_peer *p, size_t i, int32_t *kind, const char **name, size_t *size)
{
    if (!p)
        return TORC_EINVAL;
    if (i >= p->identity->names.len)
        return TORC_ENOTFOUND;
    const struct tc_tls_name *n = &p->identity->names.data[i];
    if (kind)
        *kind = (int32_t)n->kind;
    if (name)
        *name = n->text->data;
    if (size)
        *size = n->text->len;
    return 0;
}

void torc_tls_peer_accept(torc_tls_peer *p)
{
    if (!p)
        return;
    p->accepted = true;
    tc_question_answer(&p->question);
}

void torc_tls_peer_refuse(torc_tls_peer *p, const char *reason)
{
    if (!p)
        return;
    p->refusal = reason ? tc_strdup(reason) : NULL;
    tc_question_answer(&p->question);
}
