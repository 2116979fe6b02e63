#include "base/mem.h"
#include "creds/creds.h"

/* No handshake but a turn of the queue. */
struct tc_creds_handshake {
    struct tc_task task;
    struct tc_bytestream *bs;
    tc_creds_fn fn;
    void *arg;
};

static void on_task(struct tc_task *task)
{
    struct tc_creds_handshake h = *TC_CONTAINER_OF(task, struct tc_creds_handshake, task);
    tc_free(TC_CONTAINER_OF(task, struct tc_creds_handshake, task));
    h.fn(h.arg, h.bs, NULL);
}

static struct tc_creds_handshake *insecure_start(torc_credentials *c, struct tc_loop *loop, struct tc_bytestream *bs,
                                                 const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    (void)c;
    (void)peer;
    struct tc_creds_handshake *h = TC_NEW(struct tc_creds_handshake);
    h->bs = bs;
    h->fn = fn;
    h->arg = arg;
    tc_task_init(&h->task, on_task);
    tc_loop_defer(loop, &h->task);
    return h;
}

static void insecure_cancel(struct tc_creds_handshake *h)
{
    tc_task_cancel(&h->task);
    h->bs->ops->close(h->bs);
    tc_free(h);
}

static void insecure_free(torc_credentials *c)
{
    tc_rstr_unref(c->key);
    tc_free(c);
}

static const struct tc_creds_ops insecure_ops = {
    .type = "insecure",
    .start = insecure_start,
    .cancel = insecure_cancel,
    .free = insecure_free,
};

torc_credentials *torc_credentials_insecure(void)
{
    torc_credentials *c = TC_NEW(torc_credentials);
    tc_ref_init(&c->ref);
    c->ops = &insecure_ops;
    c->scheme = "http";
    c->key = tc_rstr_str("insecure");
    return c;
}
