/* The client's side of mesh_kit. */
#include <math.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/mesh_kit_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#define WAIT_NS (30 * TC_NS_PER_S)

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

torc_runtime *mesh_kit_runtime(struct mesh_kit *k)
{
    return k->runtime;
}

const char *mesh_kit_bootstrap(const struct mesh_kit *k)
{
    return k->bootstrap;
}

torc_channel *mesh_kit_channel(struct mesh_kit *k, const char *name, const struct torc_channel_options *options)
{
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    if (options)
        o = *options;
    if (!o.xds_bootstrap_json)
        o.xds_bootstrap_json = k->bootstrap;
    o.backoff_initial_ms = 50;
    o.backoff_max_ms = 200;
    char *target = tc_asprintf("xds:///%s", name), *why = NULL;
    torc_channel *ch = torc_channel_new(k->runtime, target, &o, &why);
    if (!ch)
        fail_msg("%s", why);
    tc_free(target);
    return ch;
}

/* "name: value" by lines. */
static torc_metadata *parse_headers(const char *headers)
{
    struct tc_slice rest = tc_slice_str(headers), line;
    torc_metadata *md = torc_metadata_new();
    bool more = true;
    while (tc_slice_split(&rest, &more, '\n', &line)) {
        ptrdiff_t colon = tc_slice_find(line, tc_slice_str(":"));
        if (colon < 0)
            continue;
        char *name = tc_strndup(line.data, (size_t)colon);
        struct tc_slice value = tc_slice_trim(tc_slice_of(line.data + colon + 1, line.len - (size_t)colon - 1));
        assert_int_equal(torc_metadata_add(md, name, value.data, value.len), 0);
        tc_free(name);
    }
    return md;
}

struct torc_result mesh_kit_call(torc_channel *ch, const char *headers, bool wait_for_ready, int64_t timeout_ms)
{
    struct torc_call_options o;
    struct torc_result r;
    torc_call_options_init(&o);
    torc_metadata *md = headers ? parse_headers(headers) : NULL;
    o.metadata = md;
    o.wait_for_ready = wait_for_ready;
    o.timeout_ms = timeout_ms;
    assert_int_equal(torc_call_unary(ch, "/test.Service/Method", "hello", 5, &o, &r), 0);
    torc_metadata_free(md);
    return r;
}

void mesh_kit_calls(torc_channel *ch, const char *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct torc_result r = mesh_kit_call(ch, headers, false, 10000);
        if (r.code != TORC_STATUS_OK)
            fail_msg("call %zu: %s: %s", i, torc_status_code_name(r.code), r.message);
        torc_result_fini(&r);
    }
}

void mesh_kit_wait_backend(struct mesh_kit *k, torc_channel *ch, const char *headers, size_t i)
{
    uint64_t until = now_ns() + WAIT_NS;
    bool there = false;
    char *last = tc_strdup("");
    while (!there && now_ns() < until) {
        struct torc_result r = mesh_kit_call(ch, headers, true, 5000);
        there = r.code == TORC_STATUS_OK && strcmp(r.peer, mesh_kit_address(k, i)) == 0;
        tc_free(last);
        last = tc_asprintf("%s %s %s", torc_status_code_name(r.code), r.peer, r.message);
        torc_result_fini(&r);
    }
    if (!there)
        fail_msg("no RPC reached backend %zu; the last: %s", i, last);
    tc_free(last);
}

void mesh_kit_wait_failure(torc_channel *ch, int code, const char *text)
{
    uint64_t until = now_ns() + WAIT_NS;
    bool there = false;
    char *last = tc_strdup("");
    while (!there && now_ns() < until) {
        struct torc_result r = mesh_kit_call(ch, NULL, false, 5000);
        there = r.code == code && strstr(r.message, text);
        tc_free(last);
        last = tc_asprintf("%s: %s", torc_status_code_name(r.code), r.message);
        torc_result_fini(&r);
    }
    if (!there)
        fail_msg("expected %s with \"%s\"; the last: %s", torc_status_code_name(code), text, last);
    tc_free(last);
}

void mesh_kit_expect_shares(struct mesh_kit *k, torc_channel *ch, const char *headers, size_t n, const double *shares,
                            size_t n_shares)
{
    for (size_t i = 0; i < k->n; i++)
        mesh_kit_take(k, i);
    mesh_kit_calls(ch, headers, n);
    for (size_t i = 0; i < TC_MIN(n_shares, k->n); i++) {
        double got = (double)mesh_kit_take(k, i) / (double)n;
        if (fabs(got - shares[i]) > (shares[i] > 0 && shares[i] < 1 ? 0.05 : 0))
            fail_msg("backend %zu got %.3f of the calls, not %.3f", i, got, shares[i]);
    }
}

void mesh_kit_wait_request(struct mesh_kit *k, const char *text)
{
    uint64_t until = now_ns() + WAIT_NS;
    struct tc_buf seen = {0};
    bool there = false;
    while (!there && now_ns() < until) {
        char *requests = mesh_kit_requests(k);
        tc_buf_append_str(&seen, requests);
        tc_free(requests);
        there = strstr(tc_buf_cstr(&seen), text) != NULL;
    }
    if (!there)
        fail_msg("no request with \"%s\" among:\n%s", text, tc_buf_cstr(&seen));
    tc_buf_fini(&seen);
}
