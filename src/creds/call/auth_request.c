/* Auth requests: an RPC asks for call credentials, and the credentials answer on any thread.
 *
 * A request has two references: one of the credentials, which answer, one of the loop's side. The loop's side gives its
 * reference up when the task has delivered, or in tc_auth_waiter_cancel when no task was posted: there was no answer,
 * or the loop has ended and refused the task. The mutex decides between an answer and a cancel that meet: after a
 * cancel has returned, the waiter is not called and the loop is not touched. */
#include "creds/call/auth_request.h"

#include <pthread.h>

#include "base/headers.h"
#include "base/mem.h"

struct tc_auth_metadata *tc_auth_metadata_new(const struct tc_auth_field *fields, size_t n)
{
    struct tc_auth_metadata *m = tc_calloc(1, sizeof(*m) + n * sizeof(*fields));
    tc_ref_init(&m->ref);
    m->n = n;
    if (n)
        memcpy(m->fields, fields, n * sizeof(*fields));
    return m;
}

struct tc_auth_metadata *tc_auth_metadata_token(const char *type, struct tc_slice token)
{
    struct tc_buf text = {0};
    tc_buf_reserve(&text, strlen(type) + 1 + token.len);
    tc_buf_append_str(&text, type);
    tc_buf_append_char(&text, ' ');
    tc_buf_append_slice(&text, token);
    bool valid = token.len > 0 && tc_header_value_valid(tc_buf_slice(&text));
    struct tc_rstr *value = valid ? tc_rstr_new(text.data, text.len) : NULL;
    tc_buf_wipe(&text);
    if (!valid)
        return NULL;
    struct tc_auth_field field = {.name = tc_rstr_str("authorization"), .value = value};
    return tc_auth_metadata_new(&field, 1);
}

struct tc_auth_metadata *tc_auth_metadata_ref(struct tc_auth_metadata *m)
{
    if (m)
        tc_ref_inc(&m->ref);
    return m;
}

void tc_auth_metadata_unref(struct tc_auth_metadata *m)
{
    if (!m || !tc_ref_dec(&m->ref))
        return;
    for (size_t i = 0; i < m->n; i++) {
        tc_rstr_unref(m->fields[i].name);
        tc_rstr_unref_secret(m->fields[i].value);
    }
    tc_free(m);
}

struct tc_auth_request {
    struct tc_ref ref; /* one of the credentials, one of the loop's side */
    pthread_mutex_t mutex;
    struct tc_loop *loop;          /* its memory stays as long as a waiter waits */
    struct tc_auth_waiter *waiter; /* under the mutex; NULL: no RPC waits any longer */
    bool posted;                   /* under the mutex: the loop took the task, which has the loop's reference */
    struct tc_task task;
    struct tc_auth_metadata *metadata;
    struct tc_status error;
};

static void auth_request_unref(struct tc_auth_request *r)
{
    if (!tc_ref_dec(&r->ref))
        return;
    tc_auth_metadata_unref(r->metadata);
    tc_status_fini(&r->error);
    pthread_mutex_destroy(&r->mutex);
    tc_free(r);
}

static void auth_request_deliver(struct tc_task *task)
{
    struct tc_auth_request *r = TC_CONTAINER_OF(task, struct tc_auth_request, task);
    pthread_mutex_lock(&r->mutex);
    struct tc_auth_waiter *w = r->waiter;
    r->waiter = NULL;
    pthread_mutex_unlock(&r->mutex);
    if (w) {
        w->request = NULL;
        w->fn(w, r->metadata, &r->error);
    }
    auth_request_unref(r);
}

struct tc_auth_request *tc_auth_request_new(struct tc_loop *loop, struct tc_auth_waiter *w)
{
    struct tc_auth_request *r = TC_NEW(struct tc_auth_request);
    tc_ref_init(&r->ref);
    tc_ref_inc(&r->ref);
    pthread_mutex_init(&r->mutex, NULL);
    r->loop = loop;
    r->waiter = w;
    tc_task_init(&r->task, auth_request_deliver);
    w->request = r;
    return r;
}

void tc_auth_request_complete(struct tc_auth_request *r, struct tc_auth_metadata *metadata,
                              const struct tc_status *error)
{
    r->metadata = metadata;
    if (!metadata)
        r->error = tc_status_ref(error);
    pthread_mutex_lock(&r->mutex);
    /* Under the mutex: the waiter keeps the loop's memory until it has cancelled, and cancelling waits for it. */
    if (r->waiter)
        r->posted = tc_loop_post(r->loop, &r->task);
    pthread_mutex_unlock(&r->mutex);
    auth_request_unref(r);
}

void tc_auth_waiter_cancel(struct tc_auth_waiter *w)
{
    struct tc_auth_request *r = w->request;
    if (!r)
        return;
    w->request = NULL;
    pthread_mutex_lock(&r->mutex);
    r->waiter = NULL;
    bool posted = r->posted;
    pthread_mutex_unlock(&r->mutex);
    if (!posted)
        auth_request_unref(r);
}
