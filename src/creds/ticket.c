/* Requests that wait, and the metadata that answers them. The ticket joins a request of one loop and an answer that may
 * come from any thread, at any time: each end lets go of it by itself. */
#include <pthread.h>

#include "base/headers.h"
#include "base/mem.h"
#include "creds/call.h"

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

struct tc_auth_ticket {
    struct tc_ref ref; /* who answers, and the loop's side */
    pthread_mutex_t mutex;
    struct tc_loop *loop;            /* alive as long as a request waits */
    struct tc_auth_request *request; /* under the mutex; NULL: nobody waits any more */
    bool posted;                     /* under the mutex: the loop's side is the task's */
    struct tc_task task;
    struct tc_auth_metadata *metadata;
    struct tc_status error;
};

static void unref(struct tc_auth_ticket *t)
{
    if (!tc_ref_dec(&t->ref))
        return;
    tc_auth_metadata_unref(t->metadata);
    tc_status_fini(&t->error);
    pthread_mutex_destroy(&t->mutex);
    tc_free(t);
}

static void on_task(struct tc_task *task)
{
    struct tc_auth_ticket *t = TC_CONTAINER_OF(task, struct tc_auth_ticket, task);
    pthread_mutex_lock(&t->mutex);
    struct tc_auth_request *r = t->request;
    t->request = NULL;
    pthread_mutex_unlock(&t->mutex);
    if (r) {
        r->ticket = NULL;
        r->fn(r, t->metadata, &t->error);
    }
    unref(t);
}

struct tc_auth_ticket *tc_auth_ticket_new(struct tc_loop *loop, struct tc_auth_request *r)
{
    struct tc_auth_ticket *t = TC_NEW(struct tc_auth_ticket);
    tc_ref_init(&t->ref);
    tc_ref_inc(&t->ref);
    pthread_mutex_init(&t->mutex, NULL);
    t->loop = loop;
    t->request = r;
    tc_task_init(&t->task, on_task);
    r->ticket = t;
    return t;
}

void tc_auth_ticket_complete(struct tc_auth_ticket *t, struct tc_auth_metadata *metadata, const struct tc_status *error)
{
    t->metadata = metadata;
    if (!metadata)
        t->error = tc_status_ref(error);
    pthread_mutex_lock(&t->mutex);
    /* Under the mutex: who waits keeps the loop alive until it has cancelled, and cancelling waits for us here. */
    if (t->request) {
        t->posted = true;
        tc_loop_post(t->loop, &t->task);
    }
    pthread_mutex_unlock(&t->mutex);
    unref(t);
}

void tc_auth_request_cancel(struct tc_auth_request *r)
{
    struct tc_auth_ticket *t = r->ticket;
    if (!t)
        return;
    r->ticket = NULL;
    pthread_mutex_lock(&t->mutex);
    t->request = NULL;
    bool posted = t->posted;
    pthread_mutex_unlock(&t->mutex);
    if (!posted)
        unref(t);
}
