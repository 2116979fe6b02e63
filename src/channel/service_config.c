/* Service configs (gRPC's doc/service_config.md), parsed from JSON (A21): the LB policy, retryThrottling,
 * healthCheckConfig (A17), connectionScaling (A105), and the settings of methods: timeout, wait-for-ready, message
 * limits, and a retry or hedging policy (A6).
 *
 * Errors are collected with the path of their field, and a config with any error is refused as a whole. Nothing changes
 * once tc_service_config_parse has returned, so threads share a config by its count. A method's config is found by
 * "service/method", else "service/", else the default "": one hash table has all three kinds of names. */
#include "channel/service_config.h"

#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "lb/registry.h"

enum { MAX_TOKENS = 1000 }; /* A6: the most that retryThrottling may ask for */

struct name_entry {
    char *name;                      /* "service/method", "service/", or "" */
    struct tc_method_config *config; /* one of `methods`, borrowed */
    UT_hash_handle hh;
};

struct tc_service_config {
    struct tc_ref ref;
    struct tc_lb_config *lb; /* a reference; NULL: no policy is named */
    struct name_entry *names;
    TC_VEC(struct tc_method_config *) methods; /* owned */
    struct tc_retry_throttle throttle;
    struct tc_rstr *health;   /* healthCheckConfig.serviceName; NULL: not set */
    uint32_t max_connections; /* connectionScaling.maxConnectionsPerSubchannel; 1 if it is not set */
};

/* Stores the Duration (proto3 JSON) at a key. Returns false and leaves *ns unchanged if the key is absent or null, or
 * with an error if the value is malformed. */
static bool duration_parse(const json_t *obj, const char *key, uint64_t *ns, struct tc_validation_errors *f)
{
    const char *text;
    if (!tc_json_get_str(obj, key, &text, f))
        return false;
    struct tc_slice s = tc_slice_str(text);
    bool seconds = s.len >= 2 && s.data[s.len - 1] == 's' && s.data[s.len - 2] >= '0' && s.data[s.len - 2] <= '9';
    if (seconds && tc_parse_duration_ns(s, ns) == 0)
        return true;
    return tc_validation_add_member(f, key, "\"%s\" is not a duration in seconds, as \"1.5s\"", text);
}

/* --- retryPolicy, hedgingPolicy and retryThrottling (A6) --- */

static void backoff_parse_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_validation_errors *f)
{
    uint64_t ns = 0;
    if (!duration_parse(obj, key, &ns, f))
        return;
    if (ns == 0)
        tc_validation_add(f, "%s must be greater than 0", key);
    *out_ms = ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0);
}

/* null counts as absent. */
static bool key_is_set(const json_t *obj, const char *key)
{
    const json_t *value = json_object_get(obj, key);
    return value && !json_is_null(value);
}

static void key_require(const json_t *obj, const char *key, struct tc_validation_errors *f)
{
    if (!key_is_set(obj, key))
        tc_validation_add(f, "%s is missing", key);
}

/* Returns the status code of a name in any case, or of a number; -1 for anything else. */
static int status_code_of(const json_t *v)
{
    if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= TORC_STATUS_UNAUTHENTICATED)
        return (int)json_integer_value(v);
    if (!json_is_string(v))
        return -1;
    for (int code = 0; code <= TORC_STATUS_UNAUTHENTICATED; code++)
        if (tc_slice_ieq(tc_slice_str(json_string_value(v)), tc_slice_str(torc_status_code_name(code))))
            return code;
    return -1;
}

static void codes_parse(struct tc_retry_policy *p, const json_t *obj, const char *key, struct tc_validation_errors *f)
{
    const json_t *list;
    if (!tc_json_get_arr(obj, key, &list, f))
        return;
    for (size_t i = 0; i < json_array_size(list); i++) {
        int code = status_code_of(json_array_get(list, i));
        if (code < 0)
            tc_validation_add(f, "%s[%zu] is not a status code", key, i);
        else
            p->codes |= 1u << code;
    }
}

/* Returns maxAttempts, cut to TC_RETRY_MAX_ATTEMPTS (A6). Adds an error if the member is missing or below 2. */
static unsigned attempts_parse(const json_t *obj, struct tc_validation_errors *f)
{
    uint64_t attempts = 0;
    key_require(obj, "maxAttempts", f);
    tc_json_get_u64_in(obj, "maxAttempts", 2, UINT32_MAX, &attempts, f);
    return (unsigned)TC_MIN(attempts, (uint64_t)TC_RETRY_MAX_ATTEMPTS);
}

static void retry_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_validation_errors *f)
{
    static const char *const required[] = {"initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes"};
    for (size_t i = 0; i < TC_ARRAY_LEN(required); i++)
        key_require(obj, required[i], f);
    *p = (struct tc_retry_policy){.max_attempts = attempts_parse(obj, f), .backoff = {.jitter = 0.2}};
    backoff_parse_ms(obj, "initialBackoff", &p->backoff.initial_ms, f);
    backoff_parse_ms(obj, "maxBackoff", &p->backoff.max_ms, f);
    p->backoff.multiplier = json_number_value(json_object_get(obj, "backoffMultiplier"));
    if (key_is_set(obj, "backoffMultiplier") && !(p->backoff.multiplier > 0))
        tc_validation_add(f, "backoffMultiplier must be a number greater than 0");
    codes_parse(p, obj, "retryableStatusCodes", f);
    if (json_is_array(json_object_get(obj, "retryableStatusCodes")) &&
        json_array_size(json_object_get(obj, "retryableStatusCodes")) == 0)
        tc_validation_add(f, "retryableStatusCodes is empty");
}

static void hedging_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_validation_errors *f)
{
    *p = (struct tc_retry_policy){.max_attempts = attempts_parse(obj, f), .hedging = true};
    duration_parse(obj, "hedgingDelay", &p->hedging_delay_ns, f);
    codes_parse(p, obj, "nonFatalStatusCodes", f);
}

/* Tokens are kept in thousandths: A6 wants three decimals of tokenRatio. */
static void retry_throttle_parse(struct tc_retry_throttle *t, const json_t *obj, struct tc_validation_errors *f)
{
    key_require(obj, "maxTokens", f);
    key_require(obj, "tokenRatio", f);
    uint64_t max = 0;
    double value = json_number_value(json_object_get(obj, "tokenRatio"));
    tc_json_get_u64_in(obj, "maxTokens", 1, MAX_TOKENS, &max, f);
    if (key_is_set(obj, "tokenRatio") && !(value > 0))
        tc_validation_add(f, "tokenRatio must be a number greater than 0");
    t->max = (uint32_t)max * 1000;
    t->ratio = value < MAX_TOKENS ? (uint32_t)(value * 1000 + 1e-6) : MAX_TOKENS * 1000;
    t->tokens = t->max;
}

/* --- methodConfig --- */

/* Adds a name of a methodConfig: "service/method", "service/" for the whole service, "" for the default. A name that is
 * taken is an error (gRPC: the config is ambiguous). */
static void name_add(struct tc_service_config *c, struct tc_method_config *m, const json_t *name,
                     struct tc_validation_errors *f)
{
    const char *service = "", *method = "";
    if (!json_is_object(name)) {
        tc_validation_add(f, "must be an object");
        return;
    }
    tc_json_get_str(name, "service", &service, f);
    tc_json_get_str(name, "method", &method, f);
    if (!service[0] && method[0]) {
        tc_validation_add(f, "a method without its service");
        return;
    }
    char *text = service[0] ? tc_asprintf("%s/%s", service, method) : tc_strdup("");
    struct name_entry *e;
    HASH_FIND_STR(c->names, text, e);
    if (e) {
        tc_validation_add(f, "\"%s\" is named twice", text);
        tc_free(text);
        return;
    }
    e = TC_NEW(struct name_entry);
    e->name = text;
    e->config = m;
    HASH_ADD_KEYPTR(hh, c->names, e->name, strlen(e->name), e);
}

static void method_parse(struct tc_service_config *c, const json_t *obj, struct tc_validation_errors *f)
{
    struct tc_method_config *m = TC_NEW(struct tc_method_config);
    *tc_vec_push(&c->methods) = m;
    m->wait_for_ready = -1;
    m->timeout_ns = m->max_request_bytes = m->max_response_bytes = UINT64_MAX;
    if (!json_is_object(obj)) {
        tc_validation_add(f, "must be an object");
        return;
    }
    duration_parse(obj, "timeout", &m->timeout_ns, f);
    const json_t *retry, *hedging;
    if (tc_json_get_obj(obj, "retryPolicy", &retry, f)) {
        tc_validation_push(f, ".retryPolicy");
        retry_policy_parse(&m->retry, retry, f);
        tc_validation_pop(f);
        if (key_is_set(obj, "hedgingPolicy"))
            tc_validation_add(f, "retryPolicy and hedgingPolicy exclude each other");
    } else if (tc_json_get_obj(obj, "hedgingPolicy", &hedging, f)) {
        tc_validation_push(f, ".hedgingPolicy");
        hedging_policy_parse(&m->retry, hedging, f);
        tc_validation_pop(f);
    }
    bool wait;
    if (tc_json_get_bool(obj, "waitForReady", &wait, f))
        m->wait_for_ready = wait;
    tc_json_get_u64(obj, "maxRequestMessageBytes", UINT64_MAX, &m->max_request_bytes, f);
    tc_json_get_u64(obj, "maxResponseMessageBytes", UINT64_MAX, &m->max_response_bytes, f);
    const json_t *names;
    if (!tc_json_get_arr(obj, "name", &names, f))
        return;
    for (size_t i = 0; i < json_array_size(names); i++) {
        tc_validation_push(f, ".name[%zu]", i);
        name_add(c, m, json_array_get(names, i), f);
        tc_validation_pop(f);
    }
}

/* Reads loadBalancingConfig, or else the deprecated loadBalancingPolicy. Leaves lb NULL if the config has neither. */
static void lb_parse(struct tc_service_config *c, const struct tc_lb_registry *registry, const json_t *root,
                     struct tc_validation_errors *f)
{
    const json_t *list;
    const char *name;
    if (tc_json_get_arr(root, "loadBalancingConfig", &list, f)) {
        tc_validation_push(f, ".loadBalancingConfig");
        c->lb = tc_lb_parse_list(registry, list, 0, f);
        tc_validation_pop(f);
        return;
    }
    if (!tc_json_get_str(root, "loadBalancingPolicy", &name, f) || !name[0])
        return;
    /* The deprecated field was an enum once, so case does not count. */
    char *lower = tc_strdup(name);
    for (char *p = lower; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    c->lb = tc_lb_default_config(registry, lower);
    if (!c->lb)
        tc_validation_add_at(f, ".loadBalancingPolicy", "unknown policy \"%s\", or one that demands settings", name);
    tc_free(lower);
}

static void health_check_parse(struct tc_service_config *c, const json_t *root, struct tc_validation_errors *f)
{
    const json_t *health;
    const char *service;
    if (!tc_json_get_obj(root, "healthCheckConfig", &health, f))
        return;
    tc_validation_push(f, ".healthCheckConfig");
    if (tc_json_get_str(health, "serviceName", &service, f))
        c->health = tc_rstr_str(service);
    tc_validation_pop(f);
}

/* A105. GRPC_EXPERIMENTAL_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING=false: the field is ignored. */
static void scaling_parse(struct tc_service_config *c, const json_t *root, struct tc_validation_errors *f)
{
    const char *enabled = getenv("GRPC_EXPERIMENTAL_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING");
    const json_t *scaling;
    uint64_t max = 1;
    c->max_connections = 1;
    if ((enabled && strcasecmp(enabled, "false") == 0) || !tc_json_get_obj(root, "connectionScaling", &scaling, f))
        return;
    tc_validation_push(f, ".connectionScaling");
    tc_json_get_u64_in(scaling, "maxConnectionsPerSubchannel", 1, UINT32_MAX, &max, f);
    c->max_connections = (uint32_t)max;
    tc_validation_pop(f);
}

struct tc_service_config *tc_service_config_parse(const struct tc_lb_registry *registry, struct tc_slice text,
                                                  char **why)
{
    char *reason = NULL;
    json_t *root = tc_json_parse(text, &reason);
    if (!root) {
        tc_refuse(why, "service config: %s", reason);
        tc_free(reason);
        return NULL;
    }
    struct tc_validation_errors f = {0};
    struct tc_service_config *c = TC_NEW(struct tc_service_config);
    tc_ref_init(&c->ref);
    const json_t *methods, *throttling;
    if (!json_is_object(root)) {
        tc_validation_add(&f, "must be an object");
    } else {
        lb_parse(c, registry, root, &f);
        health_check_parse(c, root, &f);
        scaling_parse(c, root, &f);
        if (tc_json_get_obj(root, "retryThrottling", &throttling, &f)) {
            tc_validation_push(&f, ".retryThrottling");
            retry_throttle_parse(&c->throttle, throttling, &f);
            tc_validation_pop(&f);
        }
        if (tc_json_get_arr(root, "methodConfig", &methods, &f)) {
            for (size_t i = 0; i < json_array_size(methods); i++) {
                tc_validation_push(&f, ".methodConfig[%zu]", i);
                method_parse(c, json_array_get(methods, i), &f);
                tc_validation_pop(&f);
            }
        }
    }
    if (tc_validation_any(&f)) {
        tc_refuse(why, "service config: %s", tc_validation_text(&f));
        tc_service_config_unref(c);
        c = NULL;
    }
    tc_validation_fini(&f);
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
    tc_rstr_unref(c->health);
    tc_free(c);
}

struct tc_lb_config *tc_service_config_lb(const struct tc_service_config *c)
{
    return c->lb;
}

struct tc_rstr *tc_service_config_health(const struct tc_service_config *c)
{
    return c->health;
}

uint32_t tc_service_config_max_connections(const struct tc_service_config *c)
{
    return c->max_connections;
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
