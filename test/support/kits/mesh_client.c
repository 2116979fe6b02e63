/* kits/mesh: the client's side.
 *
 * Channels get short backoffs, and the mesh's bootstrap where the test's options have none. A push takes its time to
 * reach a client, so tests wait: kit_mesh_wait_backend and kit_mesh_wait_failure repeat an RPC until it has the
 * expected outcome; the other wait functions look at what the control plane has received. Each fails the test after
 * 60 s. kit_mesh_expect_shares first waits until every backend with a share has answered, then counts.
 *
 * All of this runs on the test's threads, but for view_acceptance and its two callbacks, which run on the servers'
 * thread. Channels belong to the test; runtime and bootstrap belong to the mesh. A kit_mesh_world owns its mesh and its
 * channel until kit_mesh_world_close. */
#include <math.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/mesh_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#define WAIT_NS (60 * TC_NS_PER_S)

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

torc_runtime *kit_mesh_runtime(struct kit_mesh *k)
{
    return k->runtime;
}

const char *kit_mesh_bootstrap(const struct kit_mesh *k)
{
    return k->bootstrap;
}

torc_channel *kit_mesh_channel(struct kit_mesh *k, const char *name, const struct torc_channel_options *options)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (options)
        o = *options;
    if (!o.xds_bootstrap_json)
        o.xds_bootstrap_json = k->bootstrap;
    o.backoff_initial_ms = 50;
    o.backoff_max_ms = 200;
    if (!o.xds_resource_timeout_ms)
        o.xds_resource_timeout_ms = 60000; /* on a machine that stalls, a late resource must not count as missing */
    char *target = tc_asprintf("xds:///%s", name);
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(k->runtime, target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    tc_free(target);
    return ch;
}

/* Parses "name: value" by lines; skips lines without a colon. The caller frees the result. */
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

torc_result *kit_mesh_call(torc_channel *ch, const char *headers, bool wait_for_ready, int64_t timeout_ms)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = headers ? parse_headers(headers) : NULL;
    o.metadata = md;
    o.wait_for_ready = wait_for_ready;
    o.timeout_ms = timeout_ms;
    r = torc_unary(ch, "/test.Service/Method", "hello", 5, &o);
    torc_metadata_free(md);
    return r;
}

void kit_mesh_calls(torc_channel *ch, const char *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        torc_result *r = kit_mesh_call(ch, headers, false, 60000);
        if (torc_result_code(r) != TORC_STATUS_OK)
            fail_msg("call %zu: %s: %s", i, torc_status_code_name(torc_result_code(r)), torc_result_text(r));
        torc_result_free(r);
    }
}

void kit_mesh_wait_backend(struct kit_mesh *k, torc_channel *ch, const char *headers, size_t i)
{
    uint64_t until = now_ns() + WAIT_NS;
    bool there = false;
    char *last = tc_strdup("");
    while (!there && now_ns() < until) {
        torc_result *r = kit_mesh_call(ch, headers, true, 5000);
        there = torc_result_code(r) == TORC_STATUS_OK && strcmp(torc_result_peer(r), kit_mesh_address(k, i)) == 0;
        tc_free(last);
        last = tc_asprintf("%s %s %s", torc_status_code_name(torc_result_code(r)), torc_result_peer(r),
                           torc_result_text(r));
        torc_result_free(r);
    }
    if (!there)
        fail_msg("no RPC reached backend %zu; the last: %s", i, last);
    tc_free(last);
}

void kit_mesh_wait_failure(torc_channel *ch, int code, const char *text)
{
    uint64_t until = now_ns() + WAIT_NS;
    bool there = false;
    char *last = tc_strdup("");
    while (!there && now_ns() < until) {
        torc_result *r = kit_mesh_call(ch, NULL, false, 5000);
        there = torc_result_code(r) == code && strstr(torc_result_text(r), text);
        tc_free(last);
        last = tc_asprintf("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
        torc_result_free(r);
    }
    if (!there)
        fail_msg("expected %s with \"%s\"; the last: %s", torc_status_code_name(code), text, last);
    tc_free(last);
}

/* Calls until each of the first n backends that has a share above 0 has answered: a policy sends calls to connected
 * endpoints and does not wait for the rest to connect. Backends whose share is 0 must not get any of these calls. */
static void reach_all(struct kit_mesh *k, torc_channel *ch, const char *headers, const double *shares, size_t n)
{
    for (size_t i = 0; i < k->n; i++)
        kit_mesh_take(k, i);
    bool *reached = tc_calloc(n, sizeof(bool));
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += shares[i] > 0;
    for (uint64_t until = now_ns() + WAIT_NS; missing > 0;) {
        if (now_ns() >= until)
            fail_msg("%zu backends got none of the calls", missing);
        kit_mesh_calls(ch, headers, 1);
        for (size_t i = 0; i < n; i++) {
            if (kit_mesh_take(k, i) == 0 || reached[i])
                continue;
            if (shares[i] <= 0)
                fail_msg("backend %zu got a call", i);
            reached[i] = true;
            missing--;
        }
    }
    tc_free(reached);
}

void kit_mesh_expect_shares(struct kit_mesh *k, torc_channel *ch, const char *headers, size_t n, const double *shares,
                            size_t n_shares)
{
    size_t n_judged = TC_MIN(n_shares, k->n);
    reach_all(k, ch, headers, shares, n_judged);
    kit_mesh_calls(ch, headers, n);
    for (size_t i = 0; i < n_judged; i++) {
        double got = (double)kit_mesh_take(k, i) / (double)n;
        if (fabs(got - shares[i]) > (shares[i] > 0 && shares[i] < 1 ? 0.06 : 0))
            fail_msg("backend %zu got %.3f of the calls, not %.3f", i, got, shares[i]);
    }
}

char *kit_mesh_requests_until(struct kit_mesh *k, const char *text)
{
    uint64_t until = now_ns() + WAIT_NS;
    struct tc_buf seen = {0};
    bool there = false;
    while (!there && now_ns() < until) {
        char *requests = kit_mesh_requests(k);
        tc_buf_append_str(&seen, requests);
        tc_free(requests);
        there = strstr(tc_buf_cstr(&seen), text) != NULL;
    }
    if (!there)
        fail_msg("no request with \"%s\" among:\n%s", text, tc_buf_cstr(&seen));
    return tc_buf_take(&seen);
}

void kit_mesh_wait_request(struct kit_mesh *k, const char *text)
{
    tc_free(kit_mesh_requests_until(k, text));
}

/* Arguments and result of kit_mesh_wait_accepted. */
struct acceptance {
    const char *type, *name, *text;
    bool there; /* a client has accepted such a resource */
};

static void look_for_acceptance(void *arg, const struct tc_served *served)
{
    struct acceptance *a = arg;
    struct tc_slice url = served->type_url;
    size_t length = strlen(a->type);
    bool of_type = url.len > length && memcmp(url.data + url.len - length, a->type, length) == 0;
    if (of_type && tc_slice_eq_str(served->name, a->name) && served->state == TC_SERVED_ACKED)
        a->there |= tc_slice_find(tc_rstr_slice(served->value), tc_slice_str(a->text)) >= 0;
}

static void ignore_client(void *arg, struct tc_slice node)
{
    (void)arg;
    (void)node;
}

static void view_acceptance(struct tc_control_plane *cp, void *arg)
{
    static const struct tc_control_plane_view view = {ignore_client, look_for_acceptance};
    tc_control_plane_view(cp, &view, arg);
}

void kit_mesh_wait_accepted(struct kit_mesh *k, const char *type, const char *name, const char *text)
{
    struct acceptance a = {type, name, text, false};
    for (uint64_t until = now_ns() + WAIT_NS; !a.there && now_ns() < until;)
        kit_mesh_do(k, view_acceptance, &a);
    if (!a.there)
        fail_msg("no client accepted %s \"%s\" with \"%s\"", type, name, text);
}

struct kit_mesh_world kit_mesh_world_open(size_t backends, const char *endpoints, const char *cluster,
                                          const char *hash_policies)
{
    struct kit_mesh_world w = {.k = kit_mesh_new(backends)};
    kit_mesh_put_endpoints(w.k, "c", endpoints, NULL);
    kit_mesh_put_cluster(w.k, "c", cluster);
    kit_mesh_put_listener(w.k, "svc", "c", hash_policies);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    return w;
}

struct kit_mesh_world kit_mesh_world_open_clusters(size_t clusters)
{
    struct kit_mesh_world w = {.k = kit_mesh_new(clusters)};
    for (size_t i = 0; i < clusters; i++) {
        char name[3] = {'c', (char)('0' + i), '\0'}, *localities = tc_asprintf("0/a: %zu", i);
        kit_mesh_put_endpoints(w.k, name, localities, NULL);
        kit_mesh_put_cluster(w.k, name, "lb_policy: ROUND_ROBIN");
        tc_free(localities);
    }
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    return w;
}

void kit_mesh_world_close(struct kit_mesh_world *w)
{
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
}
