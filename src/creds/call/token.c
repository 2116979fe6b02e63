/* Call credentials out of a source of tokens: at most one fetch runs, on a thread of its own, and the RPCs that wait
 * for it are in `waiting`. token_cache decides what to do with an RPC. The fetch's thread does not hold the lock while
 * it fetches, nor while it answers requests. A forked child forgets the fetch and the RPCs of its parent (`pid`). */
#include "creds/call/token.h"

#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strerror.h"
#include "base/thread.h"
#include "base/vec.h"
#include "creds/call/call.h"
#include "io/socket.h"

struct token_creds {
    torc_call_credentials base;
    struct tc_call_creds_ops ops; /* with the source's `type` and `from` */
    struct tc_token_source *source;
    struct tc_lock lock; /* guards the members below */
    struct tc_token_cache cache;
    TC_VEC(struct tc_auth_request *) waiting;
    bool started; /* `thread` is to be joined */
    struct tc_thread *thread;
    pid_t pid; /* the process whose thread `thread` is */
};

static void token_fetch(void *arg)
{
    struct token_creds *c = arg;
    struct tc_token token = {0};
    c->source->ops->fetch(c->source, &token);
    tc_token_refuse_expired(&token, c->source->from, c->cache.clock);
    if (!token.metadata)
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "call credentials %s: %s", c->source->ops->type,
               tc_status_text(&token.error));
    tc_lock_take(&c->lock);
    struct tc_auth_metadata *metadata = tc_auth_metadata_ref(token.metadata);
    struct tc_status error = tc_status_ref(&token.error);
    struct tc_auth_request **waiting = c->waiting.data;
    size_t n = c->waiting.len;
    c->waiting.data = NULL;
    c->waiting.len = c->waiting.cap = 0;
    tc_token_cache_store(&c->cache, &token);
    tc_lock_give(&c->lock);
    for (size_t i = 0; i < n; i++)
        tc_auth_request_complete(waiting[i], tc_auth_metadata_ref(metadata), &error);
    tc_free(waiting);
    tc_auth_metadata_unref(metadata);
    tc_status_fini(&error);
}

/* Joins the thread of the last fetch. Before another fetch, under the lock, this hardly waits: the last fetch has
 * stored its outcome by then, and at most answers its RPCs, which takes no lock of the credentials. */
static void token_join(struct token_creds *c)
{
    if (c->started && c->pid == getpid())
        tc_thread_join(c->thread);
    c->started = false;
}

/* Starts a fetch. Returns 0 or an errno. Called with the lock. */
static int token_start(struct token_creds *c)
{
    token_join(c);
    int rc = tc_thread_start(&c->thread, token_fetch, c);
    c->started = rc == 0;
    c->pid = getpid();
    return rc;
}

/* Asks the cache, and starts a fetch if the cache wants one. Called with the lock. */
static enum tc_token_answer token_ask(struct token_creds *c)
{
    char scratch[128];
    bool fetch;
    if (c->cache.fetching && c->pid != getpid()) {
        /* The fetch is the parent's: its thread is not in this process, and neither are the RPCs that wait for it. */
        c->cache.fetching = false;
        c->waiting.len = 0;
    }
    enum tc_token_answer answer = tc_token_cache_ask(&c->cache, &fetch);
    int rc = fetch ? token_start(c) : 0;
    if (rc == 0)
        return answer;
    struct tc_token failed = {.error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CREDENTIALS,
                                                      "no token from %s: no thread for the fetch: %s", c->source->from,
                                                      tc_strerror(rc, scratch))};
    tc_token_cache_store(&c->cache, &failed);
    return answer == TC_TOKEN_USE ? TC_TOKEN_USE : TC_TOKEN_FAIL;
}

static int token_get(torc_call_credentials *base, struct tc_loop *loop, const struct tc_auth_context *context TC_UNUSED,
                     struct tc_auth_waiter *w, struct tc_auth_metadata **out, struct tc_status *error)
{
    struct token_creds *c = TC_CONTAINER_OF(base, struct token_creds, base);
    int rc = 0;
    tc_lock_take(&c->lock);
    switch (token_ask(c)) {
    case TC_TOKEN_USE:
        *out = tc_auth_metadata_ref(c->cache.metadata);
        break;
    case TC_TOKEN_WAIT:
        *tc_vec_push(&c->waiting) = tc_auth_request_new(loop, w);
        rc = TORC_EAGAIN;
        break;
    case TC_TOKEN_FAIL:
        *error = tc_status_ref(&c->cache.error);
        rc = TORC_EIO;
        break;
    }
    tc_lock_give(&c->lock);
    return rc;
}

static void token_free(torc_call_credentials *base)
{
    struct token_creds *c = TC_CONTAINER_OF(base, struct token_creds, base);
    if (c->started && c->source->ops->abort)
        c->source->ops->abort(c->source);
    token_join(c);
    tc_token_cache_fini(&c->cache);
    tc_vec_fini(&c->waiting);
    tc_lock_fini(&c->lock);
    c->source->ops->free(c->source);
    tc_free(c);
}

torc_call_credentials *tc_token_creds_new(struct tc_token_source *source, const struct tc_clock *clock)
{
    struct token_creds *c = TC_NEW(struct token_creds);
    c->ops = (struct tc_call_creds_ops){
        .type = source->ops->type, .from = source->from, .get = token_get, .free = token_free};
    tc_call_creds_init(&c->base, &c->ops);
    c->source = source;
    tc_lock_init(&c->lock, TC_RANK_TOKEN);
    tc_token_cache_init(&c->cache, clock);
    return &c->base;
}
