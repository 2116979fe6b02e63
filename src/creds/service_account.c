#include "creds/service_account.h"

#include <pthread.h>

#include "base/mem.h"
#include "creds/jwt.h"

#define LIFETIME_S 3600
#define RENEW_S 90
/* As many hosts have their token kept. */
#define MAX_TOKENS 8

struct token {
    char *audience; /* NULL: free */
    int64_t issued_s;
    struct tc_auth_metadata *metadata;
};

struct service_account {
    torc_call_credentials base;
    char *email, *key_id;
    EVP_PKEY *key;
    const struct tc_clock *clock;
    pthread_mutex_t mutex; /* guards the tokens */
    struct token tokens[MAX_TOKENS];
};

/* "https://host/" of "https://host/package.Service". */
static struct tc_slice audience_of(const char *service_url)
{
    const char *slash = strrchr(service_url, '/');
    return tc_slice_of(service_url, (size_t)(slash - service_url) + 1);
}

static struct tc_auth_metadata *sign(const struct service_account *a, const char *audience, int64_t now_s)
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

static void forget(struct token *t)
{
    tc_free(t->audience);
    tc_auth_metadata_unref(t->metadata);
    *t = (struct token){0};
}

/* That of the audience, else the place of the oldest. */
static struct token *place_of(struct service_account *a, struct tc_slice audience)
{
    struct token *oldest = &a->tokens[0];
    for (size_t i = 0; i < MAX_TOKENS; i++) {
        struct token *t = &a->tokens[i];
        if (t->audience && tc_slice_eq_str(audience, t->audience))
            return t;
        if (!t->audience || (oldest->audience && t->issued_s < oldest->issued_s))
            oldest = t;
    }
    return oldest;
}

static int get(torc_call_credentials *base, struct tc_loop *loop, const struct tc_auth_context *context,
               struct tc_auth_request *r, struct tc_auth_metadata **out, struct tc_status *error)
{
    struct service_account *a = TC_CONTAINER_OF(base, struct service_account, base);
    struct tc_slice audience = audience_of(context->service_url);
    int64_t now_s = a->clock->realtime_ns(a->clock->arg) / (int64_t)TC_NS_PER_S;
    (void)loop;
    (void)r;
    pthread_mutex_lock(&a->mutex);
    struct token *t = place_of(a, audience);
    if (!t->audience || !tc_slice_eq_str(audience, t->audience) || now_s < t->issued_s ||
        now_s >= t->issued_s + LIFETIME_S - RENEW_S) {
        forget(t);
        t->audience = tc_slice_dup(audience);
        t->issued_s = now_s;
        t->metadata = sign(a, t->audience, now_s);
        if (!t->metadata)
            forget(t);
    }
    *out = tc_auth_metadata_ref(t->metadata);
    pthread_mutex_unlock(&a->mutex);
    if (*out)
        return 0;
    *error = tc_status_make(TORC_STATUS_UNAUTHENTICATED, "the key of service account %s cannot sign", a->email);
    return TORC_EIO;
}

static void free_account(torc_call_credentials *base)
{
    struct service_account *a = TC_CONTAINER_OF(base, struct service_account, base);
    for (size_t i = 0; i < MAX_TOKENS; i++)
        forget(&a->tokens[i]);
    EVP_PKEY_free(a->key);
    pthread_mutex_destroy(&a->mutex);
    tc_free(a->email);
    tc_free(a->key_id);
    tc_free(a);
}

torc_call_credentials *tc_service_account_creds(const struct tc_service_account *account, const struct tc_clock *clock)
{
    static const struct tc_call_creds_ops ops = {.type = "google_default", .get = get, .free = free_account};
    struct service_account *a = TC_NEW(struct service_account);
    tc_call_creds_init(&a->base, &ops);
    a->email = tc_strdup(account->email);
    a->key_id = tc_strdup(account->key_id);
    EVP_PKEY_up_ref(account->key);
    a->key = account->key;
    a->clock = clock;
    pthread_mutex_init(&a->mutex, NULL);
    return &a->base;
}
