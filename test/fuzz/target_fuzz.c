/* Target URIs, and what the resolvers of addresses make of them. */
#include "base/mem.h"
#include "fuzz.h"
#include "resolver/builtin.h"

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

static void check_target(const struct tc_target *t)
{
    TC_FUZZ_CHECK(t->text && t->scheme && t->authority && t->path && t->path[0]);
    TC_FUZZ_CHECK(known(NULL, tc_slice_str(t->scheme)));
    TC_FUZZ_CHECK(t->has_authority || t->authority[0] == '\0');
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
