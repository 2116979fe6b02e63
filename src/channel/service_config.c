#include "channel/service_config.h"

#include <uthash.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"

struct name_entry {
    char *name; /* "service/method", "service/", or "" */
    struct tc_method_config *config;
    UT_hash_handle hh;
};

struct tc_service_config {
    struct tc_ref ref;
    struct tc_lb_config *lb;
    struct name_entry *names;
    TC_VEC(struct tc_method_config *) methods;
    struct tc_retry_throttle throttle;
};

bool tc_service_config_duration(const json_t *obj, const char *key, uint64_t *ns, struct tc_faults *f)
{
    const char *text;
    if (!tc_json_get_str(obj, key, &text, f))
        return false;
    struct tc_slice s = tc_slice_str(text);
    bool seconds = s.len >= 2 && s.data[s.len - 1] == 's' && s.data[s.len - 2] >= '0' && s.data[s.len - 2] <= '9';
    if (seconds && tc_parse_duration_ns(s, ns) == 0)
        return true;
    tc_faults_push(f, ".%s", key);
    tc_faults_add(f, "\"%s\" is no duration in seconds, as \"1.5s\"", text);
    tc_faults_pop(f);
    return false;
}

static void parse_limit(const json_t *obj, const char *key, bool *has, uint64_t *value, struct tc_faults *f)
{
    *has = tc_json_get_u64(obj, key, UINT64_MAX, value, f);
}

static void add_name(struct tc_service_config *c, struct tc_method_config *m, const json_t *name, struct tc_faults *f)
{
    const char *service = "", *method = "";
    if (!json_is_object(name)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    tc_json_get_str(name, "service", &service, f);
    tc_json_get_str(name, "method", &method, f);
    if (!service[0] && method[0]) {
        tc_faults_add(f, "a method without its service");
        return;
    }
    char *text = service[0] ? tc_asprintf("%s/%s", service, method) : tc_strdup("");
    struct name_entry *e;
    HASH_FIND_STR(c->names, text, e);
    if (e) {
        tc_faults_add(f, "\"%s\" is named twice", text);
        tc_free(text);
        return;
    }
    e = TC_NEW(struct name_entry);
    e->name = text;
    e->config = m;
    HASH_ADD_KEYPTR(hh, c->names, e->name, strlen(e->name), e);
}

static void parse_method(struct tc_service_config *c, const json_t *obj, struct tc_faults *f)
{
    struct tc_method_config *m = TC_NEW(struct tc_method_config);
    *tc_vec_push(&c->methods) = m;
    m->wait_for_ready = -1;
    if (!json_is_object(obj)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    if (tc_service_config_duration(obj, "timeout", &m->timeout_ns, f) && m->timeout_ns == 0)
        m->timeout_ns = 1;
    const json_t *retry, *hedging;
    if (tc_json_get_obj(obj, "retryPolicy", &retry, f)) {
        tc_faults_push(f, ".retryPolicy");
        tc_retry_policy_parse(&m->retry, retry, f);
        tc_faults_pop(f);
        if (json_object_get(obj, "hedgingPolicy"))
            tc_faults_add(f, "retryPolicy and hedgingPolicy exclude each other");
    } else if (tc_json_get_obj(obj, "hedgingPolicy", &hedging, f)) {
        tc_faults_push(f, ".hedgingPolicy");
        tc_hedging_policy_parse(&m->retry, hedging, f);
        tc_faults_pop(f);
    }
    bool wait;
    if (tc_json_get_bool(obj, "waitForReady", &wait, f))
        m->wait_for_ready = wait;
    parse_limit(obj, "maxRequestMessageBytes", &m->has_max_request_bytes, &m->max_request_bytes, f);
    parse_limit(obj, "maxResponseMessageBytes", &m->has_max_response_bytes, &m->max_response_bytes, f);
    const json_t *names;
    if (!tc_json_get_arr(obj, "name", &names, f))
        return;
    for (size_t i = 0; i < json_array_size(names); i++) {
        tc_faults_push(f, ".name[%zu]", i);
        add_name(c, m, json_array_get(names, i), f);
        tc_faults_pop(f);
    }
}

static void parse_lb(struct tc_service_config *c, const struct tc_lb_registry *registry, const json_t *root,
                     struct tc_faults *f)
{
    const json_t *list;
    const char *name;
    if (tc_json_get_arr(root, "loadBalancingConfig", &list, f)) {
        tc_faults_push(f, ".loadBalancingConfig");
        c->lb = tc_lb_parse_list(registry, list, 0, f);
        tc_faults_pop(f);
        return;
    }
    if (!tc_json_get_str(root, "loadBalancingPolicy", &name, f) || !name[0])
        return;
    /* The deprecated field: an enum once, so case does not count. */
    char *lower = tc_strdup(name);
    for (char *p = lower; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    c->lb = tc_lb_default_config(registry, lower);
    if (!c->lb)
        tc_faults_add_at(f, ".loadBalancingPolicy", "unknown policy \"%s\", or one that demands settings", name);
    tc_free(lower);
}

struct tc_service_config *tc_service_config_parse(const struct tc_lb_registry *registry, struct tc_slice text,
                                                  char **why)
{
    char *reason = NULL;
    json_t *root = tc_json_parse(text, &reason);
    if (!root) {
        if (why)
            *why = tc_asprintf("service config: %s", reason);
        tc_free(reason);
        return NULL;
    }
    struct tc_faults f;
    tc_faults_init(&f);
    struct tc_service_config *c = TC_NEW(struct tc_service_config);
    tc_ref_init(&c->ref);
    const json_t *methods, *throttling;
    if (!json_is_object(root)) {
        tc_faults_add(&f, "must be an object");
    } else {
        parse_lb(c, registry, root, &f);
        if (tc_json_get_obj(root, "retryThrottling", &throttling, &f)) {
            tc_faults_push(&f, ".retryThrottling");
            tc_retry_throttle_parse(&c->throttle, throttling, &f);
            tc_faults_pop(&f);
        }
        if (tc_json_get_arr(root, "methodConfig", &methods, &f)) {
            for (size_t i = 0; i < json_array_size(methods); i++) {
                tc_faults_push(&f, ".methodConfig[%zu]", i);
                parse_method(c, json_array_get(methods, i), &f);
                tc_faults_pop(&f);
            }
        }
    }
    if (tc_faults_any(&f)) {
        if (why)
            *why = tc_asprintf("service config: %s", tc_faults_text(&f));
        tc_service_config_unref(c);
        c = NULL;
    }
    tc_faults_fini(&f);
    json_decref(root);
    return c;
}

struct tc_service_config *tc_service_config_ref(struct tc_service_config *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void tc_service_config_unref(struct tc_service_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    struct name_entry *e, *next;
    HASH_ITER(hh, c->names, e, next)
    {
        HASH_DELETE(hh, c->names, e);
        tc_free(e->name);
        tc_free(e);
    }
    for (size_t i = 0; i < c->methods.len; i++)
        tc_free(c->methods.data[i]);
    tc_vec_fini(&c->methods);
    if (c->lb)
        tc_lb_config_unref(c->lb);
    tc_free(c);
}

struct tc_lb_config *tc_service_config_lb(const struct tc_service_config *c)
{
    return c->lb;
}

const struct tc_retry_throttle *tc_service_config_throttle(const struct tc_service_config *c)
{
    return &c->throttle;
}

const struct tc_method_config *tc_service_config_method(const struct tc_service_config *c, struct tc_slice path)
{
    struct name_entry *e = NULL;
    if (!c->names)
        return NULL;
    if (path.len && path.data[0] == '/')
        path = tc_slice_of(path.data + 1, path.len - 1);
    HASH_FIND(hh, c->names, path.data, path.len, e);
    const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
    if (!e && slash)
        HASH_FIND(hh, c->names, path.data, (size_t)(slash - path.data) + 1, e);
    if (!e)
        HASH_FIND(hh, c->names, "", 0, e);
    return e ? e->config : NULL;
}
