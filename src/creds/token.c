#include "creds/token.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/socket.h"

struct token_creds {
    torc_call_credentials base;
    struct tc_call_creds_ops ops; /* with the source's type and place */
    struct tc_token_source *source;
    pthread_mutex_t mutex; /* guards what follows */
    struct tc_token_cache cache;
    TC_VEC(struct tc_auth_ticket *) waiting;
    bool started; /* `thread` is to be joined */
    pthread_t thread;
    pid_t pid; /* whose thread it is */
};

static void *run_fetch(void *arg)
{
    struct token_creds *c = arg;
    struct tc_token token = {0};
    c->source->ops->fetch(c->source, &token);
    tc_token_refuse_expired(&token, c->source->from, c->cache.clock);
    if (!token.metadata)
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "call credentials %s: %s", c->source->ops->type,
               tc_status_text(&token.error));
    pthread_mutex_lock(&c->mutex);
    struct tc_auth_metadata *metadata = tc_auth_metadata_ref(token.metadata);
    struct tc_status error = tc_status_ref(&token.error);
    struct tc_auth_ticket **waiting = c->waiting.data;
    size_t n = c->waiting.len;
    c->waiting.data = NULL;
    c->waiting.len = c->waiting.cap = 0;
    tc_token_cache_store(&c->cache, &token);
    pthread_mutex_unlock(&c->mutex);
    for (size_t i = 0; i < n; i++)
        tc_auth_ticket_complete(waiting[i], tc_auth_metadata_ref(metadata), &error);
    tc_free(waiting);
    tc_auth_metadata_unref(metadata);
    tc_status_fini(&error);
    return NULL;
}

/* The thread before has done its work when another may start, so this does not wait. */
static void join(struct token_creds *c)
{
    if (c->started && c->pid == getpid())
        pthread_join(c->thread, NULL);
    c->started = false;
}

static int start(struct token_creds *c)
{
    sigset_t all, before;
    join(c);
    /* Signals are the application's; and a peer that goes away must raise none here. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, run_fetch, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->started = rc == 0;
    c->pid = getpid();
    return rc;
}

static enum tc_token_answer ask(struct token_creds *c)
{
    char scratch[128];
    bool fetch;
    enum tc_token_answer answer = tc_token_cache_ask(&c->cache, &fetch);
    if (answer == TC_TOKEN_WAIT && !fetch && c->pid != getpid()) {
        /* A fetch of the process from which this one was forked; its thread is not here, nor is who waited for it. */
        c->cache.fetching = false;
        c->waiting.len = 0;
        answer = tc_token_cache_ask(&c->cache, &fetch);
    }
    int rc = fetch ? start(c) : 0;
    if (rc == 0)
        return answer;
    struct tc_token failed = {
        .error = tc_status_make(TORC_STATUS_UNAVAILABLE, "no thread for it: %s", tc_errno_text(rc, scratch))};
    tc_token_cache_store(&c->cache, &failed);
    return answer == TC_TOKEN_USE ? TC_TOKEN_USE : TC_TOKEN_FAIL;
}

static int token_get(torc_call_credentials *base, struct tc_loop *loop, const struct tc_auth_context *context,
                     struct tc_auth_request *r, struct tc_auth_metadata **out, struct tc_status *error)
{
    struct token_creds *c = TC_CONTAINER_OF(base, struct token_creds, base);
    int rc = 0;
    (void)context;
    pthread_mutex_lock(&c->mutex);
    switch (ask(c)) {
    case TC_TOKEN_USE:
        *out = tc_auth_metadata_ref(c->cache.metadata);
        break;
    case TC_TOKEN_WAIT:
        *tc_vec_push(&c->waiting) = tc_auth_ticket_new(loop, r);
        rc = TORC_EAGAIN;
        break;
    case TC_TOKEN_FAIL:
        *error = tc_status_ref(&c->cache.error);
        rc = TORC_EIO;
        break;
    }
    pthread_mutex_unlock(&c->mutex);
    return rc;
}

static void token_free(torc_call_credentials *base)
{
    struct token_creds *c = TC_CONTAINER_OF(base, struct token_creds, base);
    if (c->started && c->source->ops->abort)
        c->source->ops->abort(c->source);
    join(c);
    tc_token_cache_fini(&c->cache);
    tc_vec_fini(&c->waiting);
    pthread_mutex_destroy(&c->mutex);
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
    pthread_mutex_init(&c->mutex, NULL);
    tc_token_cache_init(&c->cache, clock);
    return &c->base;
}
