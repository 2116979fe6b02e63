/* Policies and resolvers on real sockets: the application's own, ring_hash without xDS (A76), dns targets, and
 * wait-for-ready by service config and by call.
 *
 * All tests share four echo servers (kits/backends.h). One runtime serves all tests but one, which makes its own. The
 * test's thread drives the runtime, so callbacks of policies and resolvers run on this thread. One test also reports
 * endpoints from another thread, which it joins. Tests of failed connections use 127.0.0.1:1.
 *
 * The resolver `names` reports the first n servers. Its state (struct names) is the test's, and outlives the channel.
 * `chooser` and `mirror` are policies of the application. Torc owns their children; a chooser is freed by
 * chooser_destroy. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "ring/ring.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

static int setup(void **state)
{
    (void)state;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    kit = kit_backends_new(4, NULL);
    rt = torc_runtime_new(&o, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

/* A resolver whose results the test sets, and counts of the calls of its functions. */
struct names {
    torc_resolver_listener *listener; /* borrowed; NULL before the start */
    size_t n;                         /* servers to report; 0: names_start reports nothing */
    bool keyed;                       /* endpoint i has the hash key "k<i>" */
    const char *service_config;       /* to report; NULL: none */
    int starts, stops, releases;
    char rest[64]; /* the part of the target that names_start got, cut to fit */
};

/* Returns what torc_resolver_report returns. */
static int report(struct names *names)
{
    struct torc_endpoint endpoints[KIT_BACKENDS_MAX];
    const char *addresses[KIT_BACKENDS_MAX];
    char keys[KIT_BACKENDS_MAX][24];
    for (size_t i = 0; i < names->n; i++) {
        addresses[i] = kit_backends_address(kit, i);
        snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        endpoints[i] = (struct torc_endpoint){TORC_SIZE(torc_endpoint), .addresses = &addresses[i], .n_addresses = 1,
                                              .weight = 1, .hash_key = names->keyed ? keys[i] : NULL};
    }
    return torc_resolver_report(names->listener, endpoints, names->n, names->service_config);
}

static void *names_start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    struct names *names = arg;
    names->listener = listener;
    names->starts++;
    snprintf(names->rest, sizeof(names->rest), "%s", rest);
    if (names->n)
        report(names);
    return names;
}

static void names_stop(void *state)
{
    ((struct names *)state)->stops++;
}

static void names_release(void *arg)
{
    ((struct names *)arg)->releases++;
}

/* Returns a factory for the scheme with the resolver `names`; both are borrowed. */
static struct torc_resolver_factory names_factory(struct names *names, const char *scheme)
{
    return (struct torc_resolver_factory){
        TORC_SIZE(torc_resolver_factory), .scheme = scheme, .start = names_start, .stop = names_stop,
        .release = names_release,         .arg = names};
}

/* Makes a channel whose resolver is `names`. Fills in *factory, which the channel copies. `service_config` and
 * `policies` may be NULL. */
static torc_channel *open_names(struct names *names, struct torc_resolver_factory *factory, const char *service_config,
                                const struct torc_lb_factory *const *policies)
{
    *factory = names_factory(names, "names");
    const struct torc_resolver_factory *list[] = {factory, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = list, .lb_policies = policies, .service_config_json = service_config};
    torc_channel *ch = torc_channel_new(rt, "names:///shop", &o, NULL);
    assert_non_null(ch);
    return ch;
}

/* Makes a call, which must succeed. Returns the server's address, which the caller frees with tc_free. `md` may be
 * NULL. */
static char *call_peer(torc_channel *ch, const torc_metadata *md)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = md};
    torc_result *r = torc_unary(ch, "a/b", "", 0, &o);
    assert_string_equal(torc_result_text(r), "");
    char *peer = tc_strdup(torc_result_peer(r));
    torc_result_free(r);
    return peer;
}

/* Frees the channel, and runs the loop until nothing is due. */
static void settle(torc_channel *ch)
{
    torc_channel_free(ch);
    while (torc_runtime_poll(rt, 0) > 0)
        ;
}

/* Returns which of the first two backends answers a call. */
static size_t call_backend(torc_channel *ch)
{
    char *peer = call_peer(ch, NULL);
    size_t at = strcmp(peer, kit_backends_address(kit, 0)) == 0 ? 0 : 1;
    assert_string_equal(peer, kit_backends_address(kit, at));
    tc_free(peer);
    return at;
}

static char line[256]; /* the last line of the log, cut to fit */

static void keep_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level, (void)module, (void)arg;
    snprintf(line, sizeof(line), "%s", message);
}

/* Asserts that the report of this one endpoint is rejected, and that the log's line contains `logged`. */
static void expect_refused(const struct names *names, const struct torc_endpoint *e, const char *logged)
{
    assert_int_equal(torc_resolver_report(names->listener, e, 1, NULL), TORC_EINVAL);
    assert_non_null(strstr(line, logged));
}

static void test_app_resolver(void **state)
{
    (void)state;
    struct names names = {.n = 2, .service_config = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory, NULL, NULL);
    /* Calls go to connected backends, so the first calls may miss a backend. */
    bool reached[2] = {false};
    for (int i = 0; i < 100000 && !(reached[0] && reached[1]); i++)
        reached[call_backend(ch)] = true;
    assert_true(reached[0] && reached[1]);
    int seen[2] = {0};
    for (int i = 0; i < 40; i++)
        seen[call_backend(ch)]++;
    assert_int_equal(seen[0], 20);
    assert_int_equal(seen[1], 20);
    assert_int_equal(names.starts, 1);
    assert_string_equal(names.rest, "///shop");

    /* A list with an invalid endpoint is rejected, and nothing changes. The log says what is invalid. */
    const char *bad = "not an address", *good = "127.0.0.1:1";
    struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &bad, .n_addresses = 1};
    torc_log_set_sink(keep_line, NULL);
    assert_int_equal(torc_log_set_levels("resolver=warn"), 0);
    expect_refused(&names, &e, "endpoints[0]: address: \"not an address\" is refused");
    e.addresses = &good;
    e.n_addresses = 0;
    expect_refused(&names, &e, "endpoints[0]: n_addresses: \"0\" is refused");
    e.n_addresses = 1;
    e.weight = UINT64_C(1) << 32;
    expect_refused(&names, &e, "endpoints[0]: weight: \"4294967296\" is refused");
    torc_log_set_sink(NULL, NULL);
    assert_int_equal(torc_resolver_report(NULL, NULL, 0, NULL), TORC_EINVAL);
    /* An error after a good result does not fail RPCs. */
    assert_int_equal(torc_resolver_report_error(names.listener, TORC_STATUS_UNAVAILABLE, "gone"), 0);
    tc_free(call_peer(ch, NULL));
    assert_int_equal(names.releases, 0);
    settle(ch);
    assert_int_equal(names.stops, 1);
    assert_int_equal(names.releases, 1);

    /* A channel that was never used releases the factory. One that could not be made does not. */
    names.releases = names.starts = 0;
    settle(open_names(&names, &factory, NULL, NULL));
    assert_int_equal(names.starts, 0);
    assert_int_equal(names.releases, 1);
    const struct torc_resolver_factory *list[] = {&factory, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = list, .service_config_json = "{"};
    assert_null(torc_channel_new(rt, "names:///shop", &o, NULL));
    assert_int_equal(names.releases, 1);
}

/* The resolver gets what follows "scheme:". A target without a known scheme is a target of "dns", whose resolver gets
 * all of it. */
static void test_the_rest_of_a_target(void **state)
{
    (void)state;
    static const char *const rests[][2] = {
        {"host:443", "host:443"}, {"host", "host"}, {"dns:host:443", "host:443"}, {"DNS:///host%3a1", "///host%3a1"}};
    for (size_t i = 0; i < TC_ARRAY_LEN(rests); i++) {
        struct names names = {.n = 1};
        struct torc_resolver_factory factory = names_factory(&names, "dns");
        const struct torc_resolver_factory *list[] = {&factory, NULL};
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                         .resolvers = list};
        torc_channel *ch = torc_channel_new(rt, rests[i][0], &o, NULL);
        assert_non_null(ch);
        tc_free(call_peer(ch, NULL));
        assert_string_equal(names.rest, rests[i][1]);
        settle(ch);
    }
}

static void *report_first(void *arg)
{
    const char *address = kit_backends_address(kit, 0);
    const struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    CHECK(torc_resolver_report(((struct names *)arg)->listener, &e, 1, NULL) == 0);
    return NULL;
}

/* Reports the first server from another thread, then the second server from inside of the turn. */
static void report_twice(void *arg)
{
    pthread_t thread;
    const char *address = kit_backends_address(kit, 1);
    const struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    assert_int_equal(pthread_create(&thread, NULL, report_first, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(torc_resolver_report(((struct names *)arg)->listener, &e, 1, NULL), 0);
}

/* The newest report counts, also if it is made inside of a turn while another thread's report is on its way. */
static void test_reports_keep_their_order(void **state)
{
    (void)state;
    struct names names = {.n = 1};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory, NULL, NULL);
    assert_int_equal(call_backend(ch), 0);
    assert_int_equal(torc_runtime_post(rt, report_twice, &names), 0);
    while (torc_runtime_poll(rt, 0) > 0)
        ;
    assert_int_equal(call_backend(ch), 1);
    settle(ch);
}

/* A listener that the application holds outlives its channel and its runtime. Then the listener refuses reports. */
static void test_a_listener_outlives_its_runtime(void **state)
{
    (void)state;
    torc_runtime *of_others = rt;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    struct names names = {.n = 1};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory, NULL, NULL);
    tc_free(call_peer(ch, NULL));
    torc_resolver_listener_ref(names.listener);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    rt = of_others;
    assert_int_equal(names.stops, 1);
    assert_int_equal(report(&names), TORC_ECLOSED);
    assert_int_equal(torc_resolver_report_error(names.listener, TORC_STATUS_UNAVAILABLE, "late"), TORC_ECLOSED);
    torc_resolver_listener_unref(names.listener);
}

static void test_resolver_error(void **state)
{
    (void)state;
    struct names names = {0};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory, NULL, NULL);
    assert_int_equal(torc_channel_state(ch, true), TORC_CONNECTIVITY_IDLE);
    while (!names.listener)
        torc_runtime_poll(rt, 100);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_CONNECTING);
    torc_resolver_report_error(names.listener, TORC_STATUS_NOT_FOUND, "no such shop");
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    /* A54: a resolver may not report NOT_FOUND. */
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    assert_non_null(strstr(torc_result_text(r), "Illegal status code from resolver;"));
    assert_non_null(strstr(torc_result_text(r), "no such shop"));
    torc_result_free(r);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_TRANSIENT_FAILURE);

    /* Numbers that are not the code of a failure become UNKNOWN. */
    static const int no_failures[] = {TORC_STATUS_OK, TORC_STATUS_UNAUTHENTICATED + 1, -1};
    for (size_t i = 0; i < TC_ARRAY_LEN(no_failures); i++) {
        torc_resolver_report_error(names.listener, (enum torc_status_code)no_failures[i], "no such shop");
        r = torc_unary(ch, "a/b", "", 0, NULL);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNKNOWN);
        torc_result_free(r);
    }

    /* An invalid first service config fails RPCs too (A21); a good result ends that. */
    names.n = 1;
    names.service_config = "{\"loadBalancingConfig\":[{\"unheard_of\":{}}]}";
    assert_int_equal(report(&names), 0);
    r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "service config"));
    torc_result_free(r);
    names.service_config = NULL;
    assert_int_equal(report(&names), 0);
    tc_free(call_peer(ch, NULL));
    settle(ch);
}

static void test_ring_hash_request_header(void **state)
{
    (void)state;
    struct names names = {.n = 4, .keyed = true};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory,
                                  "{\"loadBalancingConfig\":[{\"ring_hash_experimental\":{\"minRingSize\":64,"
                                  "\"maxRingSize\":64,\"requestHashHeader\":\"x-user\"}}]}",
                                  NULL);
    /* A ring of the same endpoints says which endpoint each value of x-user must reach. */
    struct tc_ring_item items[4];
    char keys[4][24];
    for (size_t i = 0; i < 4; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        items[i] = (struct tc_ring_item){.key = tc_slice_str(keys[i]), .weight = 1};
    }
    struct tc_ring *ring = tc_ring_new(items, 4, 64, 64, 4096);
    for (int i = 0; i < 40; i++) {
        char user[24];
        snprintf(user, sizeof(user), "user-%d", i);
        torc_metadata *md = torc_metadata_new();
        torc_metadata_add_string(md, "x-user", user);
        uint32_t at = tc_ring_find(ring, tc_xxh64(user, strlen(user)));
        char *peer = call_peer(ch, md);
        assert_string_equal(peer, kit_backends_address(kit, tc_ring_item_at(ring, at)));
        tc_free(peer);
        torc_metadata_free(md);
    }
    tc_ring_unref(ring);
    settle(ch);
}

/* A policy of the application with a child for each endpoint: the header "pick" gives the number of the child, from 0;
 * without the header it is 0. RPCs wait until `ready` is n. */
struct chooser {
    torc_lb_helper *helper;
    torc_lb_child *children[KIT_BACKENDS_MAX]; /* Torc's */
    size_t n;
    int ready;       /* how many times a child became READY */
    char config[64]; /* of the last update, cut to fit */
};

static struct chooser *last_chooser; /* valid until its chooser_destroy */

static void *chooser_create(torc_lb_helper *helper, void *arg)
{
    (void)arg;
    struct chooser *c = calloc(1, sizeof(*c));
    c->helper = helper;
    last_chooser = c;
    return c;
}

static void chooser_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct chooser *c = state;
    snprintf(c->config, sizeof(c->config), "%s", config_json);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(torc_lb_endpoint_address_count(endpoints[i]), 1);
        assert_string_equal(torc_lb_endpoint_address(endpoints[i], 0), kit_backends_address(kit, i));
        assert_null(torc_lb_endpoint_address(endpoints[i], 1));
        assert_int_equal(torc_lb_endpoint_weight(endpoints[i]), 1);
        c->children[i] = torc_lb_child_create(c->helper, "pick_first", (void *)(uintptr_t)(i + 1));
        torc_lb_child_set_endpoints(c->children[i], &endpoints[i], 1);
        torc_lb_child_connect(c->children[i]);
    }
    assert_null(torc_lb_child_create(c->helper, "no_such_policy", NULL));
    assert_null(torc_lb_child_create(c->helper, "chooser", NULL)); /* a chooser below a chooser would never end */
    c->n = n;
    torc_lb_update_state(c->helper, TORC_CONNECTIVITY_CONNECTING, NULL);
}

static void chooser_on_child(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state)
{
    struct chooser *c = state;
    assert_ptr_equal(c->children[(uintptr_t)child_arg - 1], child);
    c->ready += child_state == TORC_CONNECTIVITY_READY;
    if (c->ready == (int)c->n)
        torc_lb_update_state(c->helper, TORC_CONNECTIVITY_READY, NULL);
}

static int picks;
static bool holds; /* no pick chooses a child: RPCs wait */

static torc_lb_child *chooser_pick(void *state, torc_lb_pick *pick)
{
    struct chooser *c = state;
    picks++;
    if (holds)
        return NULL;
    assert_string_equal(torc_lb_pick_method(pick), "/a/b");
    assert_int_equal(torc_lb_pick_random(pick), torc_lb_pick_random(pick));
    assert_null(torc_lb_pick_header(pick, "absent"));
    if (c->ready < (int)c->n)
        return NULL;
    const char *which = torc_lb_pick_header(pick, "pick");
    return which ? c->children[which[0] - '0'] : c->children[0];
}

static int destroyed, factory_releases;

/* The factory is released after its policies. A test clears factory_releases before it frees the channel. */
static void chooser_destroy(void *state)
{
    struct chooser *c = state;
    assert_int_equal(factory_releases, 0);
    torc_lb_child_destroy(c->children[0]); /* Torc destroys the others */
    destroyed++;
    free(c);
}

static void chooser_release(void *arg)
{
    (void)arg;
    factory_releases++;
}

static const struct torc_lb_factory chooser = {.size = sizeof(chooser),
                                               .name = "chooser",
                                               .create = chooser_create,
                                               .update = chooser_update,
                                               .on_child_state = chooser_on_child,
                                               .pick = chooser_pick,
                                               .destroy = chooser_destroy,
                                               .release = chooser_release};

static void test_app_policy(void **state)
{
    (void)state;
    const struct torc_lb_factory *policies[] = {&chooser, NULL};
    struct names names = {.n = 3};
    struct torc_resolver_factory factory;
    torc_channel *ch =
        open_names(&names, &factory, "{\"loadBalancingConfig\":[{\"chooser\":{\"colour\":\"red\"}}]}", policies);
    for (int i = 0; i < 9; i++) {
        torc_metadata *md = torc_metadata_new();
        char which[] = {(char)('0' + i % 3), '\0'};
        torc_metadata_add_string(md, "pick", which);
        char *peer = call_peer(ch, md);
        assert_string_equal(peer, kit_backends_address(kit, (size_t)(i % 3)));
        tc_free(peer);
        torc_metadata_free(md);
    }
    assert_non_null(strstr(last_chooser->config, "red"));
    /* `pick` is called once for a waiting RPC, and not again to make the text of the RPC's status. */
    torc_result *r;
    struct torc_call_options waiting = {TORC_SIZE(torc_call_options), .timeout_ms = 1000};
    holds = true;
    picks = 0;
    r = torc_unary(ch, "/a/b", "", 0, &waiting);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "a connected endpoint of "));
    assert_int_equal(picks, 1);
    holds = false;
    torc_result_free(r);
    destroyed = factory_releases = 0;
    settle(ch);
    assert_int_equal(destroyed, 1);
    assert_int_equal(factory_releases, 1);

    /* Torc rejects a factory with the name of one of Torc's policies, and a factory without `pick`. Torc releases
     * neither. */
    struct torc_lb_factory bad = chooser;
    bad.name = "pick_first";
    policies[0] = &bad;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = policies};
    torc_error *error = NULL;
    assert_null(torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, &error));
    assert_non_null(strstr(torc_error_text(error), "pick_first"));
    torc_error_clear(&error);
    bad.name = "other";
    bad.pick = NULL;
    assert_null(torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, NULL));
    assert_int_equal(factory_releases, 1);
}

/* A policy with one child, whose state and text of failure it reports as its own. */
static void *mirror_create(torc_lb_helper *helper, void *arg)
{
    (void)arg;
    return helper;
}

static torc_lb_child *mirror_child; /* Torc's */

static void mirror_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    (void)config_json;
    mirror_child = torc_lb_child_create(state, "pick_first", NULL);
    assert_string_equal(torc_lb_child_text(mirror_child), "");
    torc_lb_child_set_endpoints(mirror_child, endpoints, n);
}

static void mirror_on_child(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    (void)child_arg;
    torc_lb_update_state(state, now, torc_lb_child_text(child));
}

static torc_lb_child *mirror_pick(void *state, torc_lb_pick *pick)
{
    (void)state, (void)pick;
    return NULL;
}

static void mirror_destroy(void *state)
{
    (void)state;
}

static void test_why_a_child_fails(void **state)
{
    (void)state;
    static const struct torc_lb_factory mirror = {.size = sizeof(mirror),
                                                  .name = "mirror",
                                                  .create = mirror_create,
                                                  .update = mirror_update,
                                                  .on_child_state = mirror_on_child,
                                                  .pick = mirror_pick,
                                                  .destroy = mirror_destroy};
    const struct torc_lb_factory *policies[] = {&mirror, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = policies,
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"mirror\":{}}]}"};
    torc_channel *ch = torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, NULL);
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "LB policy mirror: "));
    assert_non_null(strstr(torc_result_text(r), "127.0.0.1:1: Connection refused"));
    torc_result_free(r);
    settle(ch);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* The policy's `destroy` runs in a later turn than the shutdown of the channel, because a turn runs at most 10,000
 * tasks. The turn of the shutdown does not release the factory either. */
static void test_app_policy_ends_in_a_long_turn(void **state)
{
    (void)state;
    const struct torc_lb_factory *policies[] = {&chooser, NULL};
    struct names names = {.n = 1};
    struct torc_resolver_factory factory;
    torc_channel *ch = open_names(&names, &factory, "{\"loadBalancingConfig\":[{\"chooser\":{}}]}", policies);
    tc_free(call_peer(ch, NULL));
    destroyed = factory_releases = 0;
    torc_channel_free(ch);
    for (int i = 0; i < 10001; i++)
        assert_int_equal(torc_runtime_post(rt, nothing, NULL), 0);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
    assert_int_equal(destroyed, 0);
    assert_int_equal(factory_releases, 0);
    while (torc_runtime_poll(rt, 0) > 0)
        ;
    assert_int_equal(destroyed, 1);
    assert_int_equal(factory_releases, 1);
}

/* TORC_OFF in the call's options overrides waitForReady of the service config. An unset option does not. */
static void test_wait_for_ready_of_config_and_call(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json =
                                         "{\"methodConfig\":[{\"name\":[{}],\"waitForReady\":true}]}"};
    torc_channel *ch = torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, NULL);
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 2000, .wait_for_ready = TORC_OFF};
    torc_result *r = torc_unary(ch, "a/b", "", 0, &call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    call.wait_for_ready = 0;
    r = torc_unary(ch, "a/b", "", 0, &call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    settle(ch);
}

static void test_dns_targets(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"dns:///127.0.0.1", "127.0.0.1", "dns:///localhost", "localhost"};
    const char *address = kit_backends_address(kit, 0);
    for (size_t i = 0; i < 4; i++) {
        char target[80];
        snprintf(target, sizeof(target), "%s%s", prefixes[i], strchr(address, ':'));
        torc_channel *ch = torc_channel_new(rt, target, NULL, NULL);
        assert_non_null(ch);
        char *peer = call_peer(ch, NULL);
        assert_string_equal(peer, address);
        tc_free(peer);
        settle(ch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_app_resolver),
        cmocka_unit_test(test_a_listener_outlives_its_runtime),
        cmocka_unit_test(test_resolver_error),
        cmocka_unit_test(test_ring_hash_request_header),
        cmocka_unit_test(test_app_policy),
        cmocka_unit_test(test_app_policy_ends_in_a_long_turn),
        cmocka_unit_test(test_why_a_child_fails),
        cmocka_unit_test(test_wait_for_ready_of_config_and_call),
        cmocka_unit_test(test_dns_targets),
        cmocka_unit_test(test_the_rest_of_a_target),
        cmocka_unit_test(test_reports_keep_their_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
