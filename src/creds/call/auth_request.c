/* Auth requests: an RPC asks for call credentials, and the credentials answer on any thread (io/question.h). */
#include "creds/call/auth_request.h"

#include "base/headers.h"
#include "base/mem.h"
#include "io/question.h"

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
    struct tc_question question;
    struct tc_auth_metadata *metadata;
    struct tc_status error;
};

static struct tc_auth_request *auth_request_of(struct tc_question *q)
{
    return TC_CONTAINER_OF(q, struct tc_auth_request, question);
}

static void auth_request_deliver(struct tc_question *q, void *waiter)
{
    struct tc_auth_request *r = auth_request_of(q);
    struct tc_auth_waiter *w = waiter;
    w->request = NULL;
    w->fn(w, r->metadata, &r->error);
}

static void auth_request_free(struct tc_question *q)
{
    struct tc_auth_request *r = auth_request_of(q);
    tc_auth_metadata_unref(r->metadata);
    tc_status_fini(&r->error);
    tc_free(r);
}

static const struct tc_question_ops question_ops = {.deliver = auth_request_deliver, .free = auth_request_free};

struct tc_auth_request *tc_auth_request_new(struct tc_loop *loop, struct tc_auth_waiter *w)
{
    struct tc_auth_request *r = TC_NEW(struct tc_auth_request);
    tc_question_init(&r->question, &question_ops, loop, w);
    w->request = r;
    return r;
}

void tc_auth_request_complete(struct tc_auth_request *r, struct tc_auth_metadata *metadata,
                              const struct tc_status *error)
{
    r->metadata = metadata;
    if (!metadata)
        r->error = tc_status_ref(error);
    tc_question_answer(&r->question);
}

void tc_auth_waiter_cancel(struct tc_auth_waiter *w)
{
    struct tc_auth_request *r = w->request;
    w->request = NULL;
    if (r)
        tc_question_cancel(&r->question);
}
