/* The three handshakes of channel credentials.
 *
 *   none   The outcome, the byte stream itself, is known at the start.
 *   fail   The outcome, an error, is known at the start.
 *   TLS    A struct tc_tls_handshake runs and calls back (handshake_on_tls).
 *
 * A known outcome is reported by a task, so that the callback never comes from inside of start. The function that
 * reports the outcome frees the handshake first: the callback may end its owner. A cancel closes the byte stream, frees
 * the handshake, and no callback follows. Loop thread only. */
#include "creds/handshake.h"

#include "base/mem.h"

struct tc_creds_handshake {
    struct tc_tls_handshake *tls; /* NULL: the task tells the outcome */
    struct tc_task task;
    struct tc_bytestream *bs; /* NULL: the handshake fails with `error` */
    struct tc_status error;
    tc_creds_fn fn;
    void *arg;
};

static struct tc_creds_handshake *handshake_new(tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = TC_NEW(struct tc_creds_handshake);
    h->fn = fn;
    h->arg = arg;
    return h;
}

static void handshake_on_task(struct tc_task *task)
{
    struct tc_creds_handshake h = *TC_CONTAINER_OF(task, struct tc_creds_handshake, task);
    tc_free(TC_CONTAINER_OF(task, struct tc_creds_handshake, task));
    h.fn(h.arg, h.bs, h.bs ? NULL : &h.error);
    tc_status_fini(&h.error);
}

struct tc_creds_handshake *tc_creds_handshake_none(struct tc_loop *loop, struct tc_bytestream *bs, tc_creds_fn fn,
                                                   void *arg)
{
    struct tc_creds_handshake *h = handshake_new(fn, arg);
    h->bs = bs;
    tc_task_init(&h->task, handshake_on_task);
    tc_loop_defer(loop, &h->task);
    return h;
}

/* Closes the byte stream and fails with UNAVAILABLE and this text. */
static struct tc_creds_handshake *handshake_fail(struct tc_loop *loop, struct tc_bytestream *bs, const char *why,
                                                 tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = handshake_new(fn, arg);
    bs->ops->close(bs);
    h->error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS, "%s", why);
    tc_task_init(&h->task, handshake_on_task);
    tc_loop_defer(loop, &h->task);
    return h;
}

static void handshake_on_tls(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_creds_handshake h = *(struct tc_creds_handshake *)arg;
    tc_free(arg);
    h.fn(h.arg, bs, error);
}

struct tc_creds_handshake *tc_creds_handshake_tls(struct tc_loop *loop, struct tc_tls_context *context,
                                                  struct tc_bytestream *bs, const struct tc_creds_peer *peer,
                                                  tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = handshake_new(fn, arg);
    h->tls = tc_tls_handshake(loop, context, bs, peer->server_name, peer->timeout_ms, handshake_on_tls, h);
    return h;
}

struct tc_creds_handshake *tc_creds_handshake_source(struct tc_loop *loop, struct tc_tls_source *source,
                                                     const char *about, struct tc_bytestream *bs,
                                                     const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    char *why = NULL;
    struct tc_tls_context *context = tc_tls_source_context(source, NULL, &why);
    if (context) {
        struct tc_creds_handshake *h = tc_creds_handshake_tls(loop, context, bs, peer, fn, arg);
        tc_tls_context_unref(context);
        return h;
    }
    char *text = tc_asprintf("%s%s%s", about ? about : "", about ? ": " : "", why);
    struct tc_creds_handshake *h = handshake_fail(loop, bs, text, fn, arg);
    tc_free(text);
    tc_free(why);
    return h;
}

void tc_creds_handshake_cancel(struct tc_creds_handshake *h)
{
    if (h->tls) {
        tc_tls_handshake_cancel(h->tls);
    } else {
        tc_task_cancel(&h->task);
        if (h->bs)
            h->bs->ops->close(h->bs);
        tc_status_fini(&h->error);
    }
    tc_free(h);
}
