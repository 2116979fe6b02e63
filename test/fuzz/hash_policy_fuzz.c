/* Hash policies with regex rewrites, compared with a plain model of A42. The input: the number of policies, for each
 * its flags and, if they say so, pattern and rewrite; then header fields. The model calls the library for a header's
 * value, its rewrite and its hash, and combines the policies' hashes by itself. */
#include "base/hash.h"
#include "base/mem.h"
#include "fuzz.h"
#include "xds/resource/hash_policy.h"
#include "xds/resource/matchers.h"

#define POLICIES_MAX 4
#define CHANNEL_ID 0x123456789abcdef0u

static const char *const names[] = {"k", "other", "k-bin", "content-type"};

/* Stores the hash of one policy. Returns false if the RPC does not have the policy's header. `steps` is the budget of
 * all policies. */
static bool model_one(const struct tc_hash_policy *p, const struct tc_headers *headers, uint64_t *steps, uint64_t *hash)
{
    struct tc_buf scratch = {0}, rewritten = {0};
    struct tc_slice value = {0};
    bool found = true;
    *hash = CHANNEL_ID;
    if (p->kind == TC_HASH_HEADER) {
        found = tc_route_header_value(headers, p->header, &scratch, &value);
        if (found && p->regex) {
            tc_regex_replace_all(p->regex, value, p->rewrite, steps, &rewritten);
            value = tc_buf_slice(&rewritten);
        }
        *hash = tc_xxh64_slice(value);
    }
    tc_buf_fini(&scratch);
    tc_buf_fini(&rewritten);
    return found;
}

/* Stores the hash of the RPC, 0 without a result. Returns false if no policy has a result. */
static bool model(const struct tc_hash_policy *policies, size_t n, const struct tc_headers *headers, uint64_t *hash)
{
    uint64_t results[POLICIES_MAX], combined = 0, steps = TC_REGEX_REPLACE_STEPS;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found += model_one(&policies[i], headers, &steps, &results[found]);
        if (policies[i].terminal && found)
            break;
    }
    for (size_t i = 0; i < found; i++)
        combined = i ? (combined * 2 + (combined >> 63)) ^ results[i] : results[i];
    *hash = combined;
    return found > 0;
}

/* Reads a policy. A policy whose regex or rewrite is invalid gets no regex: the decoder of routes would reject the
 * policy. */
static void read_policy(struct tc_fuzz_input *in, struct tc_hash_policy *p)
{
    uint8_t flags = tc_fuzz_u8(in);
    char *why = NULL;
    p->kind = flags & 1 ? TC_HASH_CHANNEL_ID : TC_HASH_HEADER;
    p->terminal = flags & 2;
    p->header = tc_slice_str(names[(flags >> 3) % TC_ARRAY_LEN(names)]);
    if (!(flags & 4))
        return;
    struct tc_slice pattern = tc_fuzz_short(in);
    p->rewrite = tc_fuzz_short(in);
    p->regex = tc_regex_new(pattern, NULL, &why);
    TC_FUZZ_CHECK((p->regex != NULL) == (why == NULL));
    if (p->regex && !tc_regex_check_rewrite(p->regex, p->rewrite, &why)) {
        TC_FUZZ_CHECK(why);
        tc_regex_free(p->regex);
        p->regex = NULL;
    }
    tc_free(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_hash_policy policies[POLICIES_MAX] = {0};
    struct tc_arena arena;
    struct tc_headers headers;
    uint64_t hash = 1, expected = 0;
    size_t n = tc_fuzz_u8(&in) % (POLICIES_MAX + 1);
    for (size_t i = 0; i < n; i++)
        read_policy(&in, &policies[i]);
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&headers, &arena);
    while (in.len) {
        struct tc_slice name = tc_slice_str(names[tc_fuzz_u8(&in) % TC_ARRAY_LEN(names)]);
        tc_headers_add(&headers, name, tc_fuzz_short(&in));
    }
    bool has = tc_hash_policies_compute(policies, n, &headers, CHANNEL_ID, &hash);
    TC_FUZZ_CHECK(has == model(policies, n, &headers, &expected));
    TC_FUZZ_CHECK(has ? hash == expected : hash == 1);
    for (size_t i = 0; i < n; i++)
        tc_regex_free(policies[i].regex);
    tc_arena_fini(&arena);
    return 0;
}
