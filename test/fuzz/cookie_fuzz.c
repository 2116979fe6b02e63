/* Cookies of stateful sessions (A55, A60). The first byte says whether the rest is a whole cookie field, or the value
 * of the session's cookie before base64. The addresses that a cookie gives are IP addresses. If the session follows no
 * address, the response sets a cookie. If a cookie was set, a second RPC follows that cookie, and its response
 * sets none. */
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "lb/session_affinity.h"
#include "xds/filter/http_filters.h"
#include "xds/filter/session_filter.h"
#include "xds/resource/session_filter.h"

static struct tc_xds_config *config; /* made once */

/* Returns the filter chain of a route to cluster "c", with one reference. The cookie's name is "s". */
static struct tc_filter_chain *chain_new(void)
{
    static struct tc_session_config settings = {.on = true, .name = {"s", 1}, .path = {"/", 1}};
    static struct tc_http_filter filter = {.name = {"f", 1}, .type = &tc_http_filter_session, .config = &settings};
    static struct tc_listener listener = {.n_filters = 1, .filters = &filter};
    static struct tc_route route = {.kind = TC_ROUTE_CLUSTER};
    static struct tc_virtual_host vhost = {.n_routes = 1, .routes = &route};
    if (!config) {
        route.cluster = tc_rstr_str("c");
        config = TC_NEW(struct tc_xds_config);
        tc_ref_init(&config->ref);
        config->listener = &listener;
        config->vhost = &vhost;
    }
    return tc_http_filters_chain(config, &route, NULL);
}

/* Runs an RPC with this cookie field. The pick chooses the addresses that the session follows or, if it follows none,
 * `picked`. Returns the set-cookie of the response, in the arena; empty: none. Stores in *n how many addresses the
 * session follows. */
static struct tc_slice run(struct tc_arena *arena, struct tc_slice field, struct tc_slice picked, size_t *n)
{
    struct tc_filter_chain *chain = chain_new();
    const struct tc_call_filter *f = &chain->filters[0];
    struct tc_headers headers, response;
    void *state = NULL;
    tc_headers_init(&headers, arena);
    tc_headers_init(&response, arena);
    tc_headers_add(&headers, tc_slice_str("cookie"), field);
    struct tc_call_config chosen = {.cluster = tc_slice_str("c"), .filters = chain};
    struct tc_filter_call call = {
        .arena = arena, .path = tc_slice_str("/a.B/C"), .metadata = &headers, .config = &chosen};
    TC_FUZZ_CHECK(f->ops->start(f, &call, &state) == TC_FILTER_NEXT);
    struct tc_session *s = chosen.session;
    TC_FUZZ_CHECK(tc_slice_eq_str(chosen.cluster, "c"));
    TC_FUZZ_CHECK(s->n == 0 || !s->passed_over);
    TC_FUZZ_CHECK(!s->has_cookie || s->n || s->passed_over);
    *n = s->n;
    struct tc_buf text = {0};
    for (size_t i = 0; i < s->n; i++) {
        TC_FUZZ_CHECK(tc_addr_family(&s->addrs[i]) == AF_INET || tc_addr_family(&s->addrs[i]) == AF_INET6);
        tc_buf_append_str(&text, i ? "," : "");
        tc_addr_format(&s->addrs[i], &text);
    }
    s->picked = text.len ? tc_slice_of(tc_arena_dup(arena, tc_buf_slice(&text)), text.len) : picked;
    tc_buf_fini(&text);
    const struct tc_headers *seen = f->ops->response(f, &call, &state, &response);
    const struct tc_header *set = tc_headers_find(seen, tc_slice_str("set-cookie"));
    tc_filter_chain_unref(chain);
    return set ? set->value : tc_slice_of(NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_buf field = {0};
    struct tc_arena arena;
    size_t n;
    tc_arena_init(&arena, 0, 0);
    bool plain = tc_fuzz_u8(&in) & 1;
    if (plain) {
        tc_buf_append_str(&field, "a=b; s=");
        tc_base64_encode(&field, in.data, in.len, true);
    } else {
        tc_buf_append(&field, in.data, in.len);
    }
    struct tc_slice set = run(&arena, tc_buf_slice(&field), tc_slice_str("1.1.1.1:1"), &n);
    if (set.len) {
        bool more = true;
        struct tc_slice pair;
        tc_slice_split(&set, &more, ';', &pair);
        TC_FUZZ_CHECK(run(&arena, pair, tc_slice_str("2.2.2.2:2"), &n).len == 0);
        TC_FUZZ_CHECK(n > 0);
    } else {
        TC_FUZZ_CHECK(n > 0);
    }
    tc_buf_fini(&field);
    tc_arena_fini(&arena);
    return 0;
}
