/* The manager's events are recorded in the kit; responses are made from JSON and sent by the fake server. */
#include "support/kits/dependency.h"

#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "xds/client/local_client.h"

static void on_config(void *arg, struct tc_xds_config *config)
{
    struct kit_dependency *k = arg;
    k->configs++;
    tc_xds_config_ref(config);
    tc_xds_config_unref(k->config);
    k->config = config;
}

static void on_error(void *arg, const struct tc_status *error)
{
    struct kit_dependency *k = arg;
    k->errors++;
    tc_status_set(&k->error, tc_status_ref(error));
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)type;
    (void)config;
    return true;
}

struct tc_xds_client *kit_dependency_client(struct tc_loop *loop, struct fake_xds *fake, const char *bootstrap)
{
    struct tc_status why = {0};
    struct tc_xds_client_opts opts;
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(bootstrap), supported, NULL, &why);
    if (!b)
        fail_msg("%s", tc_status_text(&why));
    tc_xds_client_opts_init(&opts);
    opts.registries = tc_builtin_validation_context();
    struct tc_xds_client *client = tc_xds_local_client_new(loop, b, fake_xds_factory(fake), &opts);
    tc_xds_bootstrap_unref(b);
    return client;
}

void kit_dependency_open(struct kit_dependency *k, const char *bootstrap, struct tc_resolver_env *dns_env)
{
    static const char one[] = "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": "
                              "\"insecure\"}]}], \"node\": {\"id\": \"n1\"}}";
    const struct tc_dependency_opts opts = {
        .listener = tc_slice_str("l"), .authority = tc_slice_str("svc"), .dns = dns_env};
    *k =
        (struct kit_dependency){.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1})};
    if (dns_env)
        dns_env->loop = k->loop;
    k->fake = fake_xds_new(k->loop);
    k->client = kit_dependency_client(k->loop, k->fake, bootstrap ? bootstrap : one);
    k->server = fake_xds_server(k->fake, tc_xds_client_bootstrap(k->client)->servers[0].uri->data);
    k->manager = tc_dependency_manager_new(k->loop, k->client, &opts, &events, k);
    tc_loop_drain(k->loop);
}

void kit_dependency_close(struct kit_dependency *k)
{
    tc_dependency_manager_free(k->manager);
    tc_xds_client_unref(k->client);
    tc_loop_drain(k->loop);
    fake_xds_free(k->fake);
    tc_loop_free(k->loop);
    tc_xds_config_unref(k->config);
    tc_status_fini(&k->error);
}

void kit_dependency_respond(struct kit_dependency *k, struct fake_xds_server *server, const char *type_url,
                            const char *resources)
{
    k->version++;
    char *json = tc_asprintf("{'versionInfo': '%d', 'nonce': '%d', 'typeUrl': '%s', 'resources': [%s]}", k->version,
                             k->version, type_url, resources);
    struct tc_buf bytes = kit_resource_message("envoy.service.discovery.v3.DiscoveryResponse", json);
    fake_xds_send(server, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    tc_free(json);
    tc_loop_drain(k->loop);
}

void kit_dependency_answer(struct kit_dependency *k, const char *type, const char *resources)
{
    kit_dependency_respond(k, k->server, type, resources);
}

const char *kit_dependency_asked(struct kit_dependency *k, const char *type)
{
    static char names[256];
    struct fake_xds_request *r;
    names[0] = '\0';
    while ((r = fake_xds_take(k->server))) {
        if (strcmp(r->type_url, type) == 0)
            snprintf(names, sizeof(names), "%s", r->names);
        fake_xds_request_free(r);
    }
    return names;
}

struct tc_cluster_config *kit_dependency_cluster(const struct kit_dependency *k, const char *name)
{
    assert_non_null(k->config);
    struct tc_cluster_config *c = tc_xds_config_cluster(k->config, tc_slice_str(name));
    assert_non_null(c);
    return c;
}

void kit_dependency_assert_pending(const struct kit_dependency *k, const char *text)
{
    struct tc_buf b = {0};
    tc_dependency_manager_pending(k->manager, &b);
    assert_string_equal(tc_buf_cstr(&b), text);
    tc_buf_fini(&b);
}
