/* An application may destroy the children of its LB policy also in its resolver's request_reresolution and in the
 * channel's observer. So Torc calls both callbacks by the loop's serial queue, never from inside a function that uses a
 * policy's state afterwards.
 *
 * The policy makes two children, which Torc owns. The children share a connection attempt, on a real socket, that is
 * refused. In each test one of the two callbacks then destroys both children. The test's thread drives the client, and
 * all callbacks run on this thread. */
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"

enum { CHILDREN = 2 };

static torc_lb_helper *policy;
static torc_lb_child *children[CHILDREN]; /* of the same endpoint */
/* lb_update is making the children: the observer must not be called. */
static bool below;
/* Calls of names_request, events "connect", and events "connect_failed". */
static int requests, connects, failures;
static bool destroy_in_request, destroy_in_observer;

static void destroy_children(void)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        torc_lb_child_destroy(children[i]);
        children[i] = NULL;
    }
    torc_lb_update_state(policy, TORC_CONNECTIVITY_TRANSIENT_FAILURE, "gone");
}

static void *lb_create(torc_lb_helper *helper, void *arg)
{
    (void)arg;
    policy = helper;
    return helper;
}

static void lb_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    (void)state;
    (void)config_json;
    below = true;
    for (size_t i = 0; i < CHILDREN; i++) {
        children[i] = torc_lb_child_create(policy, "pick_first", NULL);
        torc_lb_child_set_endpoints(children[i], endpoints, n);
        torc_lb_child_connect(children[i]);
    }
    below = false;
    torc_lb_update_state(policy, TORC_CONNECTIVITY_CONNECTING, NULL);
}

static void lb_on_child(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state)
{
    (void)state;
    (void)child;
    (void)child_arg;
    (void)child_state;
}

static torc_lb_child *lb_pick(void *state, torc_lb_pick *pick)
{
    (void)state;
    (void)pick;
    return NULL;
}

static void lb_destroy(void *state)
{
    (void)state;
    memset(children, 0, sizeof(children));
}

static const struct torc_lb_factory lb = {.size = sizeof(lb),
                                          .name = "mine",
                                          .create = lb_create,
                                          .update = lb_update,
                                          .on_child_state = lb_on_child,
                                          .pick = lb_pick,
                                          .destroy = lb_destroy};

static void *names_start(const char *rest, torc_resolver_listener *l, void *arg)
{
    static const char *const address = "127.0.0.1:1";
    struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    (void)rest;
    (void)arg;
    torc_resolver_report(l, &e, 1, "{\"loadBalancingConfig\":[{\"mine\":{}}]}");
    return l;
}

static void names_request(void *state)
{
    (void)state;
    requests++;
    if (destroy_in_request && children[0])
        destroy_children();
}

static void names_stop(void *state)
{
    (void)state;
}

static const struct torc_resolver_factory names = {.size = sizeof(names),
                                                   .scheme = "mine",
                                                   .start = names_start,
                                                   .request_reresolution = names_request,
                                                   .stop = names_stop};

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)arg;
    assert_false(below);
    connects += strcmp(kind, "connect") == 0;
    if (strcmp(kind, "connect_failed") != 0)
        return;
    failures++;
    assert_string_equal(detail, "127.0.0.1:1");
    assert_string_not_equal(reason, "");
    if (destroy_in_observer && children[0])
        destroy_children();
}

/* Makes an RPC, which must fail with the text that destroy_children has published. */
static void run(void)
{
    const struct torc_lb_factory *const policies[] = {&lb, NULL};
    const struct torc_resolver_factory *const resolvers[] = {&names, NULL};
    torc_result *r;
    requests = connects = failures = 0;
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = policies, .resolvers = resolvers};
    torc_runtime *rt = torc_runtime_new(&ro, NULL);
    torc_channel *ch = torc_channel_new(rt, "mine:x", &o, NULL);
    assert_non_null(ch);
    assert_int_equal(torc_channel_observe(ch, on_event, NULL), 0);
    r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "LB policy mine: gone"));
    torc_result_free(r);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void asked_for_newer_endpoints(void **state)
{
    (void)state;
    destroy_in_request = true;
    run();
    destroy_in_request = false;
    assert_int_equal(requests, 1);
}

static void told_of_a_connection(void **state)
{
    (void)state;
    destroy_in_observer = true;
    run();
    destroy_in_observer = false;
    assert_int_equal(connects, 1); /* the children share one attempt */
    assert_int_equal(failures, CHILDREN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_for_newer_endpoints),
        cmocka_unit_test(told_of_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
