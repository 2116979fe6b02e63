/* The three handshakes of credentials.
 *
 *   none   The outcome, the byte stream itself, is known at the start.
 *   fail   The outcome, an error, is known at the start.
 *   TLS    A struct tc_tls_handshake runs and calls back (handshake_on_tls). If the credentials have a hook, the byte
 *          stream then stays unread until the application's verdict (handshake_on_verdict).
 *
 * A known outcome is reported by a task, so that the callback never comes from inside of start. The function that
 * reports the outcome frees the handshake first: the callback may free the handshake's owner. A cancel closes the byte
 * stream and frees the handshake; no callback follows. Loop thread only. */
#include "creds/handshake.h"

#include "base/mem.h"

struct tc_creds_handshake {
    struct tc_loop *loop;
    struct tc_tls_handshake *tls; /* while TLS runs, else NULL */
    struct tc_tls_hook *hook;     /* NULL: none */
    struct torc_tls_peer *asked;  /* while the application's verdict on `bs` is awaited, else NULL */
    struct tc_task task;          /* none and fail: reports the known outcome */
    struct tc_bytestream *bs;     /* none: the outcome; TLS: while `asked` is set; else NULL */
    struct tc_status error;       /* fail: the outcome */
    tc_creds_fn fn;
    void *arg;
};

static struct tc_creds_handshake *handshake_new(struct tc_loop *loop, tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = TC_NEW(struct tc_creds_handshake);
    h->loop = loop;
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
    struct tc_creds_handshake *h = handshake_new(loop, fn, arg);
    h->bs = bs;
    tc_task_init(&h->task, handshake_on_task);
    tc_loop_defer(loop, &h->task);
    return h;
}

/* Closes the byte stream. The handshake that is returned fails with UNAVAILABLE and a copy of `why`. */
static struct tc_creds_handshake *handshake_fail(struct tc_loop *loop, struct tc_bytestream *bs, const char *why,
                                                 tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = handshake_new(loop, fn, arg);
    bs->ops->close(bs);
    h->error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS, "%s", why);
    tc_task_init(&h->task, handshake_on_task);
    tc_loop_defer(loop, &h->task);
    return h;
}

/* Frees a TLS handshake and reports the byte stream, or NULL and an error. */
static void handshake_end(struct tc_creds_handshake *h, struct tc_bytestream *bs, const struct tc_status *error)
{
    tc_creds_fn fn = h->fn;
    void *arg = h->arg;
    tc_free(h);
    fn(arg, bs, error);
}

/* Closes the byte stream, frees the handshake, and reports a failure with `what` and `reason`. */
static void handshake_refuse(struct tc_creds_handshake *h, const char *what, const char *reason)
{
    char *peer = tc_addr_text(&h->bs->peer);
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS,
                                            "TLS handshake with %s failed: %s: %s", peer, what, reason);
    tc_free(peer);
    h->bs->ops->close(h->bs);
    handshake_end(h, NULL, &error);
    tc_status_fini(&error);
}

static void handshake_on_verdict(void *arg, const char *refusal)
{
    struct tc_creds_handshake *h = arg;
    h->asked = NULL;
    if (refusal) {
        handshake_refuse(h,
                         h->hook->owner->for_servers ? "the application's check refused the client"
                                                     : "the application's check refused the server",
                         refusal);
        return;
    }
    h->bs->ops->set_reading(h->bs, true);
    handshake_end(h, h->bs, NULL);
}

static void handshake_ask(struct tc_creds_handshake *h, struct tc_bytestream *bs)
{
    struct tc_buf why = {0};
    h->bs = bs;
    bs->ops->set_reading(bs, false);
    h->asked = tc_tls_peer_ask(h->loop, h->hook, bs, handshake_on_verdict, h, &why);
    if (!h->asked)
        handshake_refuse(h, "it cannot be shown to the application's check", tc_buf_cstr(&why));
    tc_buf_fini(&why);
}

static void handshake_on_tls(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_creds_handshake *h = arg;
    h->tls = NULL;
    if (bs && h->hook)
        handshake_ask(h, bs);
    else
        handshake_end(h, bs, error);
}

struct tc_creds_handshake *tc_creds_handshake_tls(struct tc_loop *loop, struct tc_tls_context *context,
                                                  struct tc_tls_hook *hook, struct tc_bytestream *bs,
                                                  const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = handshake_new(loop, fn, arg);
    h->hook = hook && hook->fn ? hook : NULL;
    h->tls = tc_tls_handshake(loop, context, bs, peer->server_name, peer->timeout_ms, handshake_on_tls, h);
    return h;
}

struct tc_creds_handshake *tc_creds_handshake_source(struct tc_loop *loop, struct tc_tls_source *source,
                                                     struct tc_tls_hook *hook, const char *about,
                                                     struct tc_bytestream *bs, const struct tc_creds_peer *peer,
                                                     tc_creds_fn fn, void *arg)
{
    char *why = NULL;
    struct tc_tls_context *context = tc_tls_source_context(source, NULL, &why);
    if (context) {
        struct tc_creds_handshake *h = tc_creds_handshake_tls(loop, context, hook, bs, peer, fn, arg);
        tc_tls_context_unref(context);
        return h;
    }
    char *text = tc_asprintf("%s%s%s", about ? about : "", about ? ": " : "", why);
    struct tc_creds_handshake *h = handshake_fail(loop, bs, text, fn, arg);
    tc_free(text);
    tc_free(why);
    return h;
}

const char *tc_creds_handshake_stage(const struct tc_creds_handshake *h)
{
    if (h->asked)
        return "the application's check of the peer (torc_tls_verify_fn)";
    return h->tls ? "the TLS handshake" : "the next turn of the loop";
}

void tc_creds_handshake_cancel(struct tc_creds_handshake *h)
{
    if (h->tls) {
        tc_tls_handshake_cancel(h->tls);
    } else if (h->asked) {
        tc_tls_peer_cancel(h->asked);
        h->bs->ops->close(h->bs);
    } else {
        tc_task_cancel(&h->task);
        if (h->bs)
            h->bs->ops->close(h->bs);
        tc_status_fini(&h->error);
    }
    tc_free(h);
}
