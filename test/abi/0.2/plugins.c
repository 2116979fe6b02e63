/* The plugins of a channel: a resolver, an LB policy, interceptors, a dialer, call credentials; and TLS. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torc/torc.h>

#include "poisoned.h"

static const char *backend;

/* --- a resolver, and an LB policy of one child --- */

static void *resolver_start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    struct torc_endpoint *endpoint = POISONED(torc_endpoint);
    endpoint->size = sizeof(*endpoint);
    endpoint->addresses = &backend;
    endpoint->n_addresses = 1;
    endpoint->weight = 3;
    printf("resolve \"%s\": %d\n", rest,
           torc_resolver_report(listener, endpoint, 1, "{\"loadBalancingConfig\":[{\"only_child\":{}}]}"));
    return arg;
}

struct policy {
    torc_lb_helper *helper;
    torc_lb_child *child;
    int picks, destroyed;
};

static void *policy_create(torc_lb_helper *helper, void *arg)
{
    struct policy *policy = arg;
    policy->helper = helper;
    return policy;
}

static void policy_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct policy *policy = state;
    printf("update %zu %s, addresses %zu, weight %u, \"%s\"\n", n, config_json,
           torc_lb_endpoint_address_count(endpoints[0]), (unsigned)torc_lb_endpoint_weight(endpoints[0]),
           torc_lb_endpoint_hash_key(endpoints[0]));
    policy->child = torc_lb_child_create(policy->helper, "pick_first", policy);
    torc_lb_child_set_endpoints(policy->child, endpoints, n);
    torc_lb_child_connect(policy->child);
}

static void policy_on_child(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state)
{
    struct policy *policy = state;
    if (child != policy->child || child_arg != policy)
        printf("another child\n");
    torc_lb_update_state(policy->helper, child_state, NULL);
}

static torc_lb_child *policy_pick(void *state, torc_lb_pick *pick)
{
    const char *header = torc_lb_pick_header(pick, "x-key");
    struct policy *policy = state;
    if (policy->picks++ == 0) /* an RPC may be picked for again */
        printf("pick for %s, x-key %s\n", torc_lb_pick_method(pick), header ? header : "(none)");
    return policy->child;
}

static void policy_destroy(void *state)
{
    ((struct policy *)state)->destroyed++;
}

/* --- an interceptor --- */

static int on_start(torc_rpc *rpc, void *state, void *arg)
{
    *(int *)state = 1;
    (void)arg;
    return torc_rpc_add_metadata(rpc, "x-key", "k", 1);
}

static int on_message(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)rpc, (void)state, (void)arg;
    if (sent)
        *message = torc_message_new("replaced", 8);
    return 0;
}

static int on_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)state, (void)arg;
    if (code == TORC_STATUS_OK)
        return 0;
    torc_rpc_set_text(rpc, "changed");
    return TORC_STATUS_DATA_LOSS;
}

static void on_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)arg;
    printf("end of %s: %s, state %d, attempts %u\n", torc_rpc_method(rpc), torc_status_code_name(code), *(int *)state,
           (unsigned)torc_rpc_attempts(rpc));
}

static void on_release(void *arg)
{
    ++*(int *)arg;
}

/* --- a dialer --- */

static void on_dial(torc_dial *dial, const char *address, void *arg)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)arg;
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
        printf("dialled\n");
        torc_dial_done(dial, fd, NULL);
        return;
    }
    torc_error *error = torc_error_new(TORC_EIO, TORC_LAYER_CONNECT, "no connection");
    torc_dial_done(dial, -1, error);
    torc_error_free(error);
}

static void call(torc_channel *channel, const char *method)
{
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_result *result = torc_unary(channel, method, "1", 1, &options);
    const torc_message *response = torc_result_response(result);
    printf("%s: %s \"%.*s\" %s\n", method, torc_status_code_name(torc_result_code(result)),
           response ? (int)torc_message_size(response) : 0, response ? (const char *)torc_message_data(response) : "",
           torc_result_text(result));
    torc_result_free(result);
}

/* --- credentials --- */

static void on_auth(torc_auth_request *request, void *arg)
{
    (void)arg;
    torc_auth_request_complete(request, TORC_STATUS_OK, NULL, NULL);
}

static void credentials(void)
{
    int released = 0;
    torc_error *error = NULL;
    struct torc_tls_options *tls = POISONED(torc_tls_options);
    struct torc_tls_files *files = POISONED(torc_tls_files);
    tls->size = sizeof(*tls);
    tls->roots_pem = "no PEM";
    printf("tls %d", torc_credentials_tls(tls, &error) != NULL);
    printf(" %d\n", torc_error_code(error));
    torc_error_clear(&error);
    files->size = sizeof(*files);
    files->certificate_file = "/nothing";
    printf("files %d", torc_credentials_tls_files(files, &error) != NULL);
    printf(" %d\n", torc_error_code(error));
    torc_error_clear(&error);
    tls->roots_pem = NULL;
    torc_credentials *system = torc_credentials_tls(tls, NULL);
    torc_call_credentials *plugin = torc_call_credentials_plugin("own", on_auth, on_release, &released, NULL);
    torc_credentials *both = torc_credentials_composite(system, plugin, NULL);
    torc_credentials *xds = torc_credentials_xds(system, NULL);
    printf("composite %d, xds %d\n", both != NULL, xds != NULL);
    torc_credentials_unref(both);
    torc_credentials_unref(xds);
    torc_credentials_unref(system);
    torc_call_credentials_unref(plugin);
    printf("released %d\n", released);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    backend = argv[1];
    struct policy policy = {0};
    int released[2] = {0};
    struct torc_resolver_factory *names = POISONED(torc_resolver_factory);
    struct torc_lb_factory *policies = POISONED(torc_lb_factory);
    struct torc_interceptor *interceptor = POISONED(torc_interceptor);
    struct torc_dialer *dialer = POISONED(torc_dialer);
    struct torc_runtime_options *runtime_options = POISONED(torc_runtime_options);
    struct torc_channel_options *options = POISONED(torc_channel_options);
    const struct torc_resolver_factory *const resolvers[] = {names, NULL};
    const struct torc_lb_factory *const lb_policies[] = {policies, NULL};
    const struct torc_interceptor *const interceptors[] = {interceptor, NULL};
    torc_error *error = NULL;

    names->size = sizeof(*names);
    names->scheme = "own";
    names->start = resolver_start;
    *policies = (struct torc_lb_factory){
        TORC_SIZE(torc_lb_factory),        .name = "only_child", .create = policy_create,   .update = policy_update,
        .on_child_state = policy_on_child, .pick = policy_pick,  .destroy = policy_destroy, .arg = &policy};
    *interceptor = (struct torc_interceptor){
        TORC_SIZE(torc_interceptor), .state_size = sizeof(int), .on_start = on_start,  .on_message = on_message,
        .on_status = on_status,      .on_end = on_end,          .release = on_release, .arg = &released[0]};
    *dialer = (struct torc_dialer){TORC_SIZE(torc_dialer), .dial = on_dial, .release = on_release, .arg = &released[1]};
    *options =
        (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .resolvers = resolvers,          .lb_policies = lb_policies,
                                      .interceptors = interceptors,    .dialer = dialer};
    runtime_options->size = sizeof(*runtime_options);
    runtime_options->mode = TORC_RUNTIME_CALLER;
    torc_runtime *runtime = torc_runtime_new(runtime_options, &error);
    torc_channel *channel = torc_channel_new(runtime, "own:rest", options, &error);
    printf("channel %d\n", torc_error_code(error));
    call(channel, "echo.Echo/Say");
    interceptor->on_message = NULL;
    call(channel, "torc.test.Backend/Fail");
    torc_channel_free(channel);
    printf("runtime %d\n", torc_runtime_free(runtime));
    printf("destroyed %d, released %d %d\n", policy.destroyed, released[0], released[1]);
    credentials();
    return poisoned_end();
}
