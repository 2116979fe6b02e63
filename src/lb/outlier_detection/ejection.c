/* A50's sweep, which runs once per interval over all endpoints of the policy. A50 demands this order:
 *
 *   1. The interval's counts are closed (`now` becomes `swept`).
 *   2. The success rate algorithm ejects.
 *   3. The failure percentage algorithm ejects.
 *   4. The multiplier of each endpoint that is not ejected falls by 1, to 0 at the least. Each ejected endpoint whose
 *      time is over returns.
 *
 * max_ejection_percent stops ejections. An algorithm's enforcement percentage is the chance that an endpoint that it
 * finds is ejected. The endpoints are the policy's (endpoints.h); nothing here outlives the sweep. Loop thread only. */
#include "lb/outlier_detection/ejection.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/mem.h"

struct sweep {
    struct tc_outlier **all;
    size_t n;
    const struct tc_outlier_settings *settings;
    uint64_t now_ms;
    struct tc_rng *rng;
    struct tc_slice target; /* for log lines */
    size_t n_ejected;
    bool changed;
};

static uint64_t outlier_volume(const struct tc_outlier *o)
{
    return o->swept.successes + o->swept.failures;
}

/* An endpoint without RPCs has no rate, even where the config asks for a volume of 0. */
static bool outlier_has_volume(const struct tc_outlier *o, uint32_t request_volume)
{
    uint64_t v = outlier_volume(o);
    return v > 0 && v >= request_volume;
}

static size_t sweep_count_hosts(const struct sweep *s, uint32_t request_volume)
{
    size_t count = 0;
    for (size_t i = 0; i < s->n; i++)
        count += outlier_has_volume(s->all[i], request_volume);
    return count;
}

/* A50: max_ejection_percent stops ejections, but one endpoint may be ejected regardless of its value. */
static bool sweep_is_full(const struct sweep *s)
{
    return s->n_ejected > 0 && (uint64_t)s->n_ejected * 100 >= (uint64_t)s->settings->max_ejection_percent * s->n;
}

static uint64_t outlier_ejection_ms(const struct tc_outlier *o, const struct tc_outlier_settings *s)
{
    uint64_t most = TC_MAX(s->base_ejection_ms, s->max_ejection_ms), ms;
    return __builtin_mul_overflow(s->base_ejection_ms, o->multiplier, &ms) ? most : TC_MIN(ms, most);
}

static void sweep_log_ejection(const struct sweep *s, const struct tc_outlier *o, const char *algorithm)
{
    if (!tc_log_enabled(TC_LOG_LB, TORC_LOG_INFO))
        return;
    char *address = tc_addr_text(&o->endpoint->addrs[0]);
    tc_log_write(TC_LOG_LB, TORC_LOG_INFO,
                 "%.*s: outlier_detection ejects %s for %" PRIu64 " ms by %s: %" PRIu64 " of %" PRIu64
                 " RPCs of the last interval failed",
                 (int)s->target.len, s->target.data, address, outlier_ejection_ms(o, s->settings), algorithm,
                 o->swept.failures, outlier_volume(o));
    tc_free(address);
}

static void sweep_log_return(const struct sweep *s, const struct tc_outlier *o)
{
    if (!tc_log_enabled(TC_LOG_LB, TORC_LOG_INFO))
        return;
    char *address = tc_addr_text(&o->endpoint->addrs[0]);
    tc_log_write(TC_LOG_LB, TORC_LOG_INFO, "%.*s: outlier_detection returns %s to service after %" PRIu64 " ms",
                 (int)s->target.len, s->target.data, address, s->now_ms - o->ejected_at_ms);
    tc_free(address);
}

static void sweep_eject(struct sweep *s, struct tc_outlier *o, uint32_t enforcement_percent, const char *algorithm)
{
    /* RPCs that were in flight when the endpoint was ejected do not eject the endpoint again. */
    if (o->ejected || tc_rng_below(s->rng, 100) >= enforcement_percent)
        return;
    o->ejected = true;
    o->ejected_at_ms = s->now_ms;
    o->multiplier++;
    s->n_ejected++;
    s->changed = true;
    sweep_log_ejection(s, o, algorithm);
}

static double outlier_success_rate(const struct tc_outlier *o)
{
    return (double)o->swept.successes / (double)outlier_volume(o);
}

/* A50, Success Rate Algorithm. */
static void sweep_by_success_rate(struct sweep *s)
{
    uint32_t request_volume = s->settings->success_rate.request_volume;
    size_t hosts = sweep_count_hosts(s, request_volume);
    double mean = 0, variance = 0;
    if (hosts == 0 || hosts < s->settings->success_rate.minimum_hosts)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (outlier_has_volume(s->all[i], request_volume))
            mean += outlier_success_rate(s->all[i]);
    mean /= (double)hosts;
    for (size_t i = 0; i < s->n; i++)
        if (outlier_has_volume(s->all[i], request_volume))
            variance += pow(outlier_success_rate(s->all[i]) - mean, 2);
    variance /= (double)hosts;
    double least = mean - sqrt(variance) * (s->settings->stdev_factor / 1000.0);
    /* Rounding in the sums must not set equal hosts apart. */
    least -= (double)hosts * DBL_EPSILON;
    for (size_t i = 0; i < s->n && !sweep_is_full(s); i++)
        if (outlier_has_volume(s->all[i], request_volume) && outlier_success_rate(s->all[i]) < least)
            sweep_eject(s, s->all[i], s->settings->success_rate.enforcement_percent, "success rate");
}

/* A50, Failure Percentage Algorithm. Ejects above the threshold, as A50's text says; the comment in the config's proto
 * says "greater than or equal to". */
static void sweep_by_failure_percentage(struct sweep *s)
{
    uint32_t request_volume = s->settings->failure_percentage.request_volume;
    size_t hosts = sweep_count_hosts(s, request_volume);
    if (hosts < s->settings->failure_percentage.minimum_hosts)
        return;
    for (size_t i = 0; i < s->n && !sweep_is_full(s); i++) {
        struct tc_outlier *o = s->all[i];
        if (outlier_has_volume(o, request_volume) &&
            o->swept.failures * 100 > s->settings->failure_threshold * outlier_volume(o))
            sweep_eject(s, o, s->settings->failure_percentage.enforcement_percent, "failure percentage");
    }
}

static void sweep_age(struct sweep *s, struct tc_outlier *o)
{
    if (!o->ejected) {
        o->multiplier -= o->multiplier > 0;
    } else if (s->now_ms > o->ejected_at_ms + outlier_ejection_ms(o, s->settings)) {
        o->ejected = false;
        s->changed = true;
        sweep_log_return(s, o);
    }
}

bool tc_outlier_sweep(struct tc_outlier **all, size_t n, const struct tc_outlier_settings *settings, uint64_t now_ms,
                      struct tc_rng *rng, struct tc_slice target)
{
    struct sweep s = {.all = all, .n = n, .settings = settings, .now_ms = now_ms, .rng = rng, .target = target};
    for (size_t i = 0; i < n; i++) {
        all[i]->swept = all[i]->now;
        all[i]->now = (struct tc_outlier_count){0};
        s.n_ejected += all[i]->ejected;
    }
    if (settings->success_rate.on)
        sweep_by_success_rate(&s);
    if (settings->failure_percentage.on)
        sweep_by_failure_percentage(&s);
    for (size_t i = 0; i < n; i++)
        sweep_age(&s, all[i]);
    return s.changed;
}
