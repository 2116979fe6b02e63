/* Late answers wait in a list. One thread takes them in their order, and sleeps for the delay of each before it
 * completes the request. */
#include "support/teardown/answers.h"

#include <poll.h>
#include <pthread.h>

#include "support/cmocka.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/random.h"

/* The list owns it, then the thread that took it from there, which frees it. */
struct late {
    struct tc_link link;
    torc_auth_request *request; /* to be completed once */
    unsigned delay_ms;
    bool refuse;
};

struct answers {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct tc_link late; /* under the lock, with the members below */
    struct tc_rng rng;
    unsigned open;        /* late requests that are unanswered */
    unsigned made, ended; /* credentials created and destroyed */
    bool stop;
};

/* Completes the request, which must not be used after that. */
static void answer(torc_auth_request *request, bool refuse)
{
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add_string(m, "x-who", "somebody");
    if (refuse)
        torc_auth_request_complete(request, TORC_STATUS_UNAVAILABLE, "not now", NULL);
    else
        torc_auth_request_complete(request, TORC_STATUS_OK, NULL, m);
    torc_metadata_free(m);
}

static void *run(void *arg)
{
    struct answers *a = arg;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        struct tc_link *link = tc_list_pop(&a->late);
        if (!link && a->stop)
            break;
        if (!link) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        struct late *l = TC_CONTAINER_OF(link, struct late, link);
        (void)poll(NULL, 0, (int)l->delay_ms); /* a random delay, not a wait for anything */
        answer(l->request, l->refuse);
        tc_free(l);
        pthread_mutex_lock(&a->lock);
        a->open--;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Called on the loop's thread of a channel. */
static void on_ask(torc_auth_request *request, void *arg)
{
    struct answers *a = arg;
    pthread_mutex_lock(&a->lock);
    unsigned how = (unsigned)tc_rng_below(&a->rng, 8);
    bool later = how > 2, refuse = how == 0 || how == 7;
    if (later) {
        struct late *l = TC_NEW(struct late);
        l->request = request;
        l->refuse = refuse;
        l->delay_ms = (unsigned)tc_rng_below(&a->rng, 4);
        tc_list_init(&l->link);
        tc_list_append(&a->late, &l->link);
        a->open++;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    if (!later)
        answer(request, refuse);
}

/* Called on the thread that drops the last reference to credentials. */
static void on_release(void *arg)
{
    struct answers *a = arg;
    pthread_mutex_lock(&a->lock);
    a->ended++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

torc_call_credentials *answers_credentials(struct answers *a)
{
    pthread_mutex_lock(&a->lock);
    a->made++;
    pthread_mutex_unlock(&a->lock);
    torc_call_credentials *c = torc_call_credentials_plugin("answers", on_ask, on_release, a, NULL);
    assert_non_null(c);
    return c;
}

void answers_settle(struct answers *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->open > 0 || a->ended < a->made)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

struct answers *answers_new(void)
{
    struct answers *a = TC_NEW(struct answers);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    tc_list_init(&a->late);
    tc_rng_init_seed(&a->rng, 7);
    assert_int_equal(pthread_create(&a->thread, NULL, run, a), 0);
    return a;
}

void answers_free(struct answers *a)
{
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    tc_free(a);
}
