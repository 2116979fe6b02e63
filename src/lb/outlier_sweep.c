#include "lb/outlier_sweep.h"

#include <float.h>
#include <math.h>

#include "base/log.h"
#include "base/mem.h"

struct sweep {
    struct tc_outlier **all;
    size_t n;
    const struct tc_outlier_settings *settings;
    uint64_t now_ms;
    struct tc_rng *rng;
    size_t n_ejected;
    bool changed;
};

static uint64_t volume(const struct tc_outlier *o)
{
    return o->swept.successes + o->swept.failures;
}

/* An endpoint without RPCs has no rate, whatever the volume that is asked for. */
static bool enough(const struct tc_outlier *o, uint32_t request_volume)
{
    uint64_t v = volume(o);
    return v > 0 && v >= request_volume;
}

static size_t count_enough(const struct sweep *s, uint32_t request_volume)
{
    size_t count = 0;
    for (size_t i = 0; i < s->n; i++)
        count += enough(s->all[i], request_volume);
    return count;
}

/* A50: max_ejection_percent stops it, but one endpoint may be ejected regardless of the value. */
static bool is_full(const struct sweep *s)
{
    return s->n_ejected > 0 && (uint64_t)s->n_ejected * 100 >= (uint64_t)s->settings->max_ejection_percent * s->n;
}

static void log_change(const struct tc_outlier *o, const char *what)
{
    if (!tc_log_enabled(TC_LOG_LB, TORC_LOG_INFO))
        return;
    char *text = tc_addr_text(&o->endpoint->addrs[0]);
    tc_log_write(TC_LOG_LB, TORC_LOG_INFO, "outlier_detection: %s %s: %llu of %llu RPCs of the last interval failed",
                 text, what, (unsigned long long)o->swept.failures, (unsigned long long)volume(o));
    tc_free(text);
}

static void eject(struct sweep *s, struct tc_outlier *o, uint32_t enforcement_percent)
{
    /* RPCs that were under way when the endpoint was ejected do not eject it once more. */
    if (o->ejected || tc_rng_below(s->rng, 100) >= enforcement_percent)
        return;
    o->ejected = true;
    o->ejected_at_ms = s->now_ms;
    o->multiplier++;
    s->n_ejected++;
    s->changed = true;
    log_change(o, "ejected");
}

static double success_rate(const struct tc_outlier *o)
{
    return (double)o->swept.successes / (double)volume(o);
}

/* A50, Success Rate Algorithm. */
static void by_success_rate(struct sweep *s)
{
    uint32_t request_volume = s->settings->success_rate.request_volume;
    size_t hosts = count_enough(s, request_volume);
    double mean = 0, variance = 0;
    if (hosts == 0 || hosts < s->settings->success_rate.minimum_hosts)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (enough(s->all[i], request_volume))
            mean += success_rate(s->all[i]);
    mean /= (double)hosts;
    for (size_t i = 0; i < s->n; i++)
        if (enough(s->all[i], request_volume))
            variance += pow(success_rate(s->all[i]) - mean, 2);
    variance /= (double)hosts;
    double least = mean - sqrt(variance) * (s->settings->success_rate.stdev_factor / 1000.0);
    /* What the sums may have lost by rounding must not set equal hosts apart. */
    least -= (double)hosts * DBL_EPSILON;
    for (size_t i = 0; i < s->n && !is_full(s); i++)
        if (enough(s->all[i], request_volume) && success_rate(s->all[i]) < least)
            eject(s, s->all[i], s->settings->success_rate.enforcement_percent);
}

/* A50, Failure Percentage Algorithm: "greater than" the threshold, as it says; the config's comment says otherwise. */
static void by_failure_percentage(struct sweep *s)
{
    uint32_t request_volume = s->settings->failure_percentage.request_volume;
    size_t hosts = count_enough(s, request_volume);
    if (hosts < s->settings->failure_percentage.minimum_hosts)
        return;
    for (size_t i = 0; i < s->n && !is_full(s); i++) {
        struct tc_outlier *o = s->all[i];
        if (enough(o, request_volume) &&
            o->swept.failures * 100 > s->settings->failure_percentage.threshold * volume(o))
            eject(s, o, s->settings->failure_percentage.enforcement_percent);
    }
}

static uint64_t ejection_ms(const struct tc_outlier *o, const struct tc_outlier_settings *s)
{
    uint64_t most = TC_MAX(s->base_ejection_ms, s->max_ejection_ms), ms;
    return __builtin_mul_overflow(s->base_ejection_ms, o->multiplier, &ms) ? most : TC_MIN(ms, most);
}

static void age(struct sweep *s, struct tc_outlier *o)
{
    if (!o->ejected) {
        o->multiplier -= o->multiplier > 0;
    } else if (s->now_ms > o->ejected_at_ms + ejection_ms(o, s->settings)) {
        o->ejected = false;
        s->changed = true;
        log_change(o, "returned to service");
    }
}

bool tc_outlier_sweep(struct tc_outlier **all, size_t n, const struct tc_outlier_settings *settings, uint64_t now_ms,
                      struct tc_rng *rng)
{
    struct sweep s = {.all = all, .n = n, .settings = settings, .now_ms = now_ms, .rng = rng};
    for (size_t i = 0; i < n; i++) {
        all[i]->swept = all[i]->now;
        all[i]->now = (struct tc_outlier_count){0};
        s.n_ejected += all[i]->ejected;
    }
    if (settings->by_success_rate)
        by_success_rate(&s);
    if (settings->by_failure_percentage)
        by_failure_percentage(&s);
    for (size_t i = 0; i < n; i++)
        age(&s, all[i]);
    return s.changed;
}
