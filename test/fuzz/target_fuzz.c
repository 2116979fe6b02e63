/* Target URIs: their parts, the data plane authority, the result of resolvers whose targets are addresses, and the name
 * of an xds target's Listener. */
#include "base/mem.h"
#include "fuzz.h"
#include "resolver/builtin.h"
#include "xds/client/name.h"
#include "xds/resolver/listener_name.h"
#include "xds/resource/listener.h"

static const char bootstrap_text[] =
    "{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],\"authorities\":{\"a\":{},"
    "\"b\":{\"client_listener_resource_name_template\":\"xdstp://b/envoy.config.listener.v3.Listener/x/%s?k=%s\"}},"
    "\"client_default_listener_resource_name_template\":\"d/%s/%s%\"}";

static const struct tc_resolver_class *const classes[] = {&tc_resolver_ipv4, &tc_resolver_ipv6, &tc_resolver_unix,
                                                          &tc_resolver_unix_abstract, &tc_resolver_dns};

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    for (size_t i = 0; i < TC_ARRAY_LEN(classes); i++)
        if (tc_slice_eq_str(scheme, classes[i]->scheme))
            return true;
    return tc_slice_eq_str(scheme, "xds");
}

static bool on_result(void *arg, struct tc_resolver_result *result)
{
    size_t *results = arg;
    TC_FUZZ_CHECK((result->endpoints != NULL) == tc_status_ok(&result->status));
    tc_resolver_result_fini(result);
    ++*results;
    return true;
}

static void resolve(const struct tc_resolver_class *cls, const struct tc_target *t)
{
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    size_t results = 0;
    struct tc_resolver_env env = {.loop = loop, .on_result = on_result, .arg = &results};
    struct tc_resolver *r = cls->create(cls, t, &env);
    TC_FUZZ_CHECK(r);
    r->ops->start(r);
    tc_loop_drain(loop);
    TC_FUZZ_CHECK(results == 1);
    r->ops->shutdown(r);
    tc_loop_drain(loop);
    tc_loop_free(loop);
}

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(type, "insecure") == 0;
}

/* Checks that an xds target gives the name of a Listener exactly if its authority is empty or in the bootstrap. With an
 * authority the name is an xdstp name. The data plane authority is never empty. */
static void check_listener_name(const struct tc_target *t)
{
    static struct tc_xds_bootstrap *bootstrap; /* made once; lives until the process ends */
    struct tc_status error = {0};
    struct tc_buf name = {0}, authority = {0};
    if (!bootstrap)
        bootstrap = tc_xds_bootstrap_parse(tc_slice_str(bootstrap_text), supported, NULL, &error);
    TC_FUZZ_CHECK(bootstrap);
    int rc = tc_listener_name(bootstrap, t, &name);
    TC_FUZZ_CHECK(
        rc ==
        (tc_xds_bootstrap_authority(bootstrap, tc_slice_str(t->authority)) || !t->authority[0] ? 0 : TORC_ENOTFOUND));
    TC_FUZZ_CHECK((rc == 0) == (name.len > 0));
    if (rc == 0 && t->authority[0]) {
        struct tc_xds_name parsed = {0};
        char *why = NULL;
        TC_FUZZ_CHECK(tc_xds_name_parse(&tc_listener_type, tc_buf_slice(&name), &parsed, &why) && parsed.federated);
        tc_xds_name_fini(&parsed);
    }
    tc_data_plane_authority(t, &authority);
    TC_FUZZ_CHECK(authority.len > 0);
    tc_buf_fini(&authority);
    tc_buf_fini(&name);
}

static void check_target(const struct tc_target *t)
{
    TC_FUZZ_CHECK(t->text && t->scheme && t->authority && t->path && t->path[0]);
    TC_FUZZ_CHECK(known(NULL, tc_slice_str(t->scheme)));
    TC_FUZZ_CHECK(t->has_authority || t->authority[0] == '\0');
    if (strcmp(t->scheme, "xds") == 0)
        check_listener_name(t);
    for (size_t i = 0; i < TC_ARRAY_LEN(classes); i++) {
        struct tc_buf authority = {0};
        char *why = NULL;
        if (strcmp(classes[i]->scheme, t->scheme) != 0)
            continue;
        bool good = classes[i]->authority(classes[i], t, &authority, &why);
        TC_FUZZ_CHECK(good == (why == NULL));
        tc_free(why);
        tc_buf_fini(&authority);
        if (good && classes[i] != &tc_resolver_dns)
            resolve(classes[i], t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tc_strndup((const char *)data, size), *why = NULL;
    struct tc_target t;
    if (tc_target_parse(&t, text, known, NULL, &why) == 0) {
        check_target(&t);
        tc_target_fini(&t);
    } else {
        TC_FUZZ_CHECK(why && why[0]);
        tc_free(why);
    }
    tc_free(text);
    return 0;
}
