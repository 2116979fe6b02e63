#include "channel/retry.h"

#include "base/parse.h"
#include "channel/call_struct.h"
#include "channel/service_config.h"

/* A6: what a service config may ask for at most. */
#define MAX_TOKENS 1000

/* Parsing. */

static void parse_backoff_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_faults *f)
{
    uint64_t ns = 0;
    if (!tc_service_config_duration(obj, key, &ns, f))
        return;
    if (ns == 0)
        tc_faults_add(f, "%s must be greater than 0", key);
    *out_ms = ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0);
}

static void require(const json_t *obj, const char *key, struct tc_faults *f)
{
    if (!json_object_get(obj, key))
        tc_faults_add(f, "%s is missing", key);
}

/* A name in any case, or a number. */
static int code_of(const json_t *v)
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

static void parse_codes(struct tc_retry_policy *p, const json_t *obj, const char *key, struct tc_faults *f)
{
    const json_t *list;
    if (!tc_json_get_arr(obj, key, &list, f))
        return;
    for (size_t i = 0; i < json_array_size(list); i++) {
        int code = code_of(json_array_get(list, i));
        if (code < 0)
            tc_faults_add(f, "%s[%zu] is no status code", key, i);
        else
            p->codes |= 1u << code;
    }
}

static unsigned parse_attempts(const json_t *obj, struct tc_faults *f)
{
    uint64_t attempts = 0;
    require(obj, "maxAttempts", f);
    if (tc_json_get_u64(obj, "maxAttempts", UINT32_MAX, &attempts, f) && attempts < 2)
        tc_faults_add(f, "maxAttempts must be greater than 1");
    return (unsigned)TC_MIN(attempts, (uint64_t)TC_RETRY_MAX_ATTEMPTS);
}

void tc_retry_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_faults *f)
{
    static const char *const required[] = {"initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes"};
    for (size_t i = 0; i < TC_ARRAY_LEN(required); i++)
        require(obj, required[i], f);
    *p = (struct tc_retry_policy){.max_attempts = parse_attempts(obj, f), .backoff = {.jitter = 0.2}};
    parse_backoff_ms(obj, "initialBackoff", &p->backoff.initial_ms, f);
    parse_backoff_ms(obj, "maxBackoff", &p->backoff.max_ms, f);
    const json_t *multiplier = json_object_get(obj, "backoffMultiplier");
    p->backoff.multiplier = json_number_value(multiplier);
    if (multiplier && !(p->backoff.multiplier > 0))
        tc_faults_add(f, "backoffMultiplier must be a number greater than 0");
    parse_codes(p, obj, "retryableStatusCodes", f);
    if (json_is_array(json_object_get(obj, "retryableStatusCodes")) &&
        json_array_size(json_object_get(obj, "retryableStatusCodes")) == 0)
        tc_faults_add(f, "retryableStatusCodes is empty");
}

void tc_hedging_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_faults *f)
{
    *p = (struct tc_retry_policy){.max_attempts = parse_attempts(obj, f), .hedging = true};
    tc_service_config_duration(obj, "hedgingDelay", &p->hedging_delay_ns, f);
    parse_codes(p, obj, "nonFatalStatusCodes", f);
}

void tc_retry_throttle_parse(struct tc_retry_throttle *t, const json_t *obj, struct tc_faults *f)
{
    require(obj, "maxTokens", f);
    require(obj, "tokenRatio", f);
    uint64_t max = 0;
    const json_t *ratio = json_object_get(obj, "tokenRatio");
    double value = json_number_value(ratio);
    if (tc_json_get_u64(obj, "maxTokens", UINT64_MAX, &max, f) && (max < 1 || max > MAX_TOKENS))
        tc_faults_add(f, "maxTokens must be in 1..1000");
    if (ratio && !(value > 0))
        tc_faults_add(f, "tokenRatio must be a number greater than 0");
    t->max = (uint32_t)TC_MIN(max, (uint64_t)MAX_TOKENS) * 1000;
    t->ratio = value < MAX_TOKENS ? (uint32_t)(value * 1000 + 1e-6) : MAX_TOKENS * 1000;
    t->tokens = t->max;
}

/* Throttling. */

void tc_retry_throttle_update(struct tc_retry_throttle *t, const struct tc_retry_throttle *settings)
{
    if (t->max == settings->max && t->ratio == settings->ratio)
        return;
    *t = *settings;
    t->tokens = t->max;
}

bool tc_retry_throttle_open(const struct tc_retry_throttle *t)
{
    return t->max == 0 || t->tokens > t->max / 2;
}

void tc_retry_throttle_success(struct tc_retry_throttle *t)
{
    t->tokens = TC_MIN(t->tokens + t->ratio, t->max);
}

void tc_retry_throttle_failure(struct tc_retry_throttle *t)
{
    t->tokens = t->tokens > 1000 ? t->tokens - 1000 : 0;
}

/* The call. */

enum tc_pushback tc_retry_pushback(const struct tc_headers *trailers, uint64_t *delay_ms)
{
    const struct tc_header *h = trailers ? tc_headers_find(trailers, tc_slice_str("grpc-retry-pushback-ms")) : NULL;
    if (!h)
        return TC_PUSHBACK_NONE;
    return tc_parse_u64(h->value, INT32_MAX, delay_ms) == 0 ? TC_PUSHBACK_DELAY : TC_PUSHBACK_STOP;
}

void tc_call_on_retry_timer(struct tc_timer *timer)
{
    tc_call_pick(TC_CONTAINER_OF(timer, struct tc_call, retry_timer));
}

bool tc_call_retry(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    const struct tc_retry_policy *p = &c->retry;
    struct tc_retry_throttle *throttle = &c->channel->throttle;
    if (status->code == TORC_STATUS_OK) {
        tc_retry_throttle_success(throttle);
        return false;
    }
    if (p->max_attempts == 0)
        return false;
    uint64_t delay_ms = 0;
    enum tc_pushback pushback = tc_retry_pushback(trailers, &delay_ms);
    bool retryable = (p->codes >> status->code & 1) != 0;
    if (retryable || pushback == TC_PUSHBACK_STOP)
        tc_retry_throttle_failure(throttle);
    if (!retryable || !tc_retry_throttle_open(throttle) || pushback == TC_PUSHBACK_STOP || c->committed ||
        tc_call_over_buffer(c) || c->tries + 1 >= p->max_attempts)
        return false;
    if (c->tries == 0 || pushback == TC_PUSHBACK_DELAY)
        tc_backoff_init(&c->backoff, &p->backoff);
    if (pushback == TC_PUSHBACK_NONE)
        delay_ms = tc_backoff_next_ms(&c->backoff, tc_loop_rng(c->channel->loop));
    c->tries++;
    c->request.previous_attempts = c->tries;
    tc_call_tell_trackers(c, status, trailers);
    tc_call_reset_attempt(c);
    tc_status_set(&c->status, tc_status_ref(status));
    c->stage = TC_CALL_WAIT_RETRY;
    tc_timer_start(&c->retry_timer, delay_ms);
    return true;
}
