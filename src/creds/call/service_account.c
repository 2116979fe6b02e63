/* Call credentials that sign JWTs with a service account's key (AIP-4111).
 *
 * One token for each host, valid for LIFETIME_S. A token serves until MARGIN_S before its end. An RPC whose host has no
 * token, or a token in its last RENEW_S, starts a signing on the background thread, at most one for each host. RPCs
 * without a token that serves wait for the signing (auth requests). MAX_TOKENS hosts keep their token; the oldest token
 * makes room.
 *
 * account_get runs on the loops' threads, signing_run on the background thread or, where the system refuses a thread,
 * inside of account_get. A signing holds a reference to its account. A forked child starts its own signings (`pid`):
 * the parent's signings go on in the parent alone. */
#include "creds/call/service_account.h"

#include <unistd.h>

#include "base/fork.h"
#include "base/mem.h"
#include "base/vec.h"
#include "creds/call/jwt_sign.h"
#include "io/background_thread.h"

enum { LIFETIME_S = 3600, RENEW_S = 90, MARGIN_S = 30, MAX_TOKENS = 8 };

struct token {
    char *audience;   /* NULL: free */
    int64_t issued_s; /* since 1970 */
    struct tc_auth_metadata *metadata;
};

struct service_account {
    torc_call_credentials base;
    char *email, *key_id;
    EVP_PKEY *key;
    const struct tc_clock *clock;
    struct tc_lock lock; /* guards the members below */
    struct token tokens[MAX_TOKENS];
    struct tc_link signings;
};

/* A token that is being signed. Signing takes milliseconds, so the background thread does it. */
struct signing {
    struct tc_job job;
    struct tc_link link;             /* in the account's `signings`; under the lock, as `waiting` is while linked */
    struct service_account *account; /* a reference */
    char *audience;
    int64_t issued_s;
    pid_t pid; /* the process whose background thread signs */
    TC_VEC(struct tc_auth_request *) waiting;
};

/* Returns "https://host/" of "https://host/package.Service", borrowed from it. A service's name may have slashes. */
static struct tc_slice audience_of(const char *service_url)
{
    const char *host = strstr(service_url, "://") + 3;
    return tc_slice_of(service_url, (size_t)(strchr(host, '/') - service_url) + 1);
}

/* Returns the metadata of a new token, with one reference; NULL if the token cannot be signed (tc_jwt_sign). */
static struct tc_auth_metadata *account_sign(const struct service_account *a, const char *audience, int64_t now_s)
{
    struct tc_jwt_claims claims = {.key_id = a->key_id,
                                   .issuer = a->email,
                                   .audience = audience,
                                   .issued_s = now_s,
                                   .expires_s = now_s + LIFETIME_S};
    struct tc_buf jwt = {0};
    struct tc_auth_metadata *m =
        tc_jwt_sign(&jwt, a->key, &claims) == 0 ? tc_auth_metadata_token("Bearer", tc_buf_slice(&jwt)) : NULL;
    tc_buf_wipe(&jwt);
    return m;
}

static void token_forget(struct token *t)
{
    tc_free(t->audience);
    tc_auth_metadata_unref(t->metadata);
    *t = (struct token){0};
}

/* Returns the token of an audience, or NULL. Called with the lock. */
static struct token *token_of(struct service_account *a, struct tc_slice audience)
{
    for (size_t i = 0; i < MAX_TOKENS; i++)
        if (a->tokens[i].audience && tc_slice_eq_str(audience, a->tokens[i].audience))
            return &a->tokens[i];
    return NULL;
}

/* Returns a free place, or the place of the oldest token. Called with the lock. */
static struct token *token_place(struct service_account *a)
{
    struct token *oldest = &a->tokens[0];
    for (size_t i = 0; i < MAX_TOKENS; i++) {
        struct token *t = &a->tokens[i];
        if (!t->audience)
            return t;
        if (t->issued_s < oldest->issued_s)
            oldest = t;
    }
    return oldest;
}

/* Stores the token that a signing made, and forgets the audience's older token. Called with the lock. */
static void token_store(struct service_account *a, const struct signing *s, struct tc_auth_metadata *metadata)
{
    struct token *t = token_of(a, tc_slice_str(s->audience));
    if (!t)
        t = token_place(a);
    token_forget(t);
    *t = (struct token){
        .audience = tc_strdup(s->audience), .issued_s = s->issued_s, .metadata = tc_auth_metadata_ref(metadata)};
}

static void signing_run(struct tc_job *job)
{
    struct signing *s = TC_CONTAINER_OF(job, struct signing, job);
    struct service_account *a = s->account;
    struct tc_status error = {0};
    struct tc_auth_metadata *m = account_sign(a, s->audience, s->issued_s);
    if (!m)
        error = tc_status_make(TORC_STATUS_UNAUTHENTICATED, TORC_LAYER_CREDENTIALS,
                               "the key of service account %s cannot sign", a->email);
    tc_lock_take(&a->lock);
    if (m)
        token_store(a, s, m);
    tc_list_remove(&s->link);
    tc_lock_give(&a->lock);
    for (size_t i = 0; i < s->waiting.len; i++)
        tc_auth_request_complete(s->waiting.data[i], tc_auth_metadata_ref(m), &error);
    tc_auth_metadata_unref(m);
    tc_status_fini(&error);
    tc_vec_fini(&s->waiting);
    tc_free(s->audience);
    tc_free(s);
    torc_call_credentials_unref(&a->base);
}

/* Returns this process's signing for an audience, or NULL. Called with the lock. */
static struct signing *signing_of(struct service_account *a, struct tc_slice audience)
{
    TC_LIST_FOREACH(it, &a->signings)
    {
        struct signing *s = TC_CONTAINER_OF(it, struct signing, link);
        if (tc_slice_eq_str(audience, s->audience) && s->pid == getpid())
            return s;
    }
    return NULL;
}

/* Makes a signing, which signing_run frees, and enters it into the list. Called with the lock. */
static struct signing *signing_new(struct service_account *a, struct tc_slice audience, int64_t now_s)
{
    struct signing *s = TC_NEW(struct signing);
    s->job.run = signing_run;
    torc_call_credentials_ref(&a->base);
    s->account = a;
    s->audience = tc_slice_dup(audience);
    s->issued_s = now_s;
    s->pid = getpid();
    tc_list_append(&a->signings, &s->link);
    return s;
}

static int account_get(torc_call_credentials *base, struct tc_loop *loop, const struct tc_auth_context *context,
                       struct tc_auth_waiter *w, struct tc_auth_metadata **out, struct tc_status *error TC_UNUSED)
{
    struct service_account *a = TC_CONTAINER_OF(base, struct service_account, base);
    struct tc_slice audience = audience_of(context->service_url);
    int64_t now_s = a->clock->realtime_ns(a->clock->arg) / (int64_t)TC_NS_PER_S;
    struct signing *begun = NULL;
    tc_lock_take(&a->lock);
    const struct token *t = token_of(a, audience);
    int64_t age_s = t && now_s >= t->issued_s ? now_s - t->issued_s : LIFETIME_S;
    bool serves = age_s < LIFETIME_S - MARGIN_S;
    if (serves)
        *out = tc_auth_metadata_ref(t->metadata);
    if (age_s >= LIFETIME_S - RENEW_S) {
        struct signing *s = signing_of(a, audience);
        if (!s)
            s = begun = signing_new(a, audience, now_s);
        if (!serves)
            *tc_vec_push(&s->waiting) = tc_auth_request_new(loop, w);
    }
    tc_lock_give(&a->lock);
    /* Without the lock, which the job takes: the job runs at once where the system refuses a thread. */
    if (begun)
        tc_background_run(&begun->job);
    return serves ? 0 : TORC_EAGAIN;
}

static void account_free(torc_call_credentials *base)
{
    struct service_account *a = TC_CONTAINER_OF(base, struct service_account, base);
    for (size_t i = 0; i < MAX_TOKENS; i++)
        token_forget(&a->tokens[i]);
    if (tc_foreign_enter()) {
        EVP_PKEY_free(a->key);
        tc_foreign_leave();
    }
    tc_lock_fini(&a->lock);
    tc_free(a->email);
    tc_free(a->key_id);
    tc_free(a);
}

torc_call_credentials *tc_service_account_creds(const struct tc_service_account *account, const struct tc_clock *clock)
{
    static const struct tc_call_creds_ops ops = {.type = "google_default", .get = account_get, .free = account_free};
    struct service_account *a = TC_NEW(struct service_account);
    tc_call_creds_init(&a->base, &ops);
    a->email = tc_strdup(account->email);
    a->key_id = tc_strdup(account->key_id);
    EVP_PKEY_up_ref(account->key);
    a->key = account->key;
    a->clock = clock;
    tc_list_init(&a->signings);
    tc_lock_init(&a->lock, TC_RANK_SERVICE_ACCOUNT);
    return &a->base;
}
