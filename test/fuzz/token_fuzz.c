/* Sources of tokens: a JWT file (A97), and the answer of a token endpoint, whose HTTP status the first byte chooses.
 * Every token and every error text is a valid header value. An error text has fewer than 256 bytes. */
#include "base/headers.h"
#include "creds/call/jwt.h"
#include "creds/call/jwt_file.h"
#include "creds/call/oauth.h"
#include "fuzz.h"

#define NOW (INT64_C(1700000000) * (int64_t)TC_NS_PER_S)

static int64_t realtime_ns(void *arg)
{
    (void)arg;
    return NOW;
}

static const struct tc_clock now_clock = {.realtime_ns = realtime_ns};

static void check(struct tc_token *t)
{
    TC_FUZZ_CHECK((t->metadata != NULL) == tc_status_ok(&t->error));
    if (t->metadata) {
        TC_FUZZ_CHECK(t->metadata->n == 1 && t->expires_ns > 0);
        TC_FUZZ_CHECK(strcmp(t->metadata->fields[0].name->data, "authorization") == 0);
        TC_FUZZ_CHECK(tc_header_value_valid(tc_rstr_slice(t->metadata->fields[0].value)));
    } else {
        TC_FUZZ_CHECK(t->error.code == TORC_STATUS_UNAUTHENTICATED || t->error.code == TORC_STATUS_UNAVAILABLE);
        TC_FUZZ_CHECK(t->error.text->len < 256 && tc_header_value_valid(tc_rstr_slice(t->error.text)));
    }
    tc_auth_metadata_unref(t->metadata);
    tc_status_fini(&t->error);
}

static void check_jwt(struct tc_slice s)
{
    const char *why = NULL;
    int64_t exp = 0;
    if (tc_jwt_expiry(s, &exp, &why) == 0)
        TC_FUZZ_CHECK(exp >= 1 && exp <= INT64_C(253402300799));
    else
        TC_FUZZ_CHECK(why && exp == 0);
    struct tc_token t = {0};
    tc_jwt_file_token("file", s, &t);
    check(&t);
}

static void check_answer(struct tc_slice s, uint8_t chosen)
{
    static const int statuses[] = {200, 400, 401, 429, 500, 503, 0, -1};
    int status = statuses[chosen % TC_ARRAY_LEN(statuses)];
    struct tc_token t = {0};
    tc_oauth_token("http://m/", status, s, NOW, &t);
    TC_FUZZ_CHECK(!t.metadata || status == 200);
    tc_token_refuse_expired(&t, "http://m/", &now_clock);
    TC_FUZZ_CHECK(!t.metadata || t.expires_ns > NOW);
    check(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    uint8_t chosen = tc_fuzz_u8(&in);
    struct tc_slice s = tc_slice_of(in.data, in.len);
    check_jwt(s);
    check_answer(s, chosen);
    return 0;
}
