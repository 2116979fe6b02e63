/* A leaky bucket, which loses `limit` frames a second and holds at most two seconds' worth. A count below 0 is credit:
 * it lets a peer answer our own frames. */
#include "http2/glitch_rate.h"

#include "base/common.h"
#include "base/mem.h"

enum {
    PAID_MS = 2000,   /* time in which the full bucket, two seconds' worth, empties */
    FEW_FRAMES = 1000 /* not worth keeping the rate for */
};

struct tc_h2_glitch_rate *tc_h2_glitch_rate_new(void)
{
    struct tc_h2_glitch_rate *rate = TC_NEW(struct tc_h2_glitch_rate);
    tc_lref_init(&rate->ref);
    return rate;
}

struct tc_h2_glitch_rate *tc_h2_glitch_rate_ref(struct tc_h2_glitch_rate *rate)
{
    tc_lref_inc(&rate->ref);
    return rate;
}

void tc_h2_glitch_rate_unref(struct tc_h2_glitch_rate *rate)
{
    if (rate && tc_lref_dec(&rate->ref))
        tc_free(rate);
}

bool tc_h2_glitch_rate_is_high(const struct tc_h2_glitch_rate *rate, uint64_t now_ms)
{
    return rate->frames > FEW_FRAMES && now_ms - rate->at_ms < PAID_MS;
}

static void rate_pay(struct tc_h2_glitch_rate *rate, int64_t limit, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms - rate->at_ms;
    int64_t paid = passed_ms < PAID_MS ? (int64_t)passed_ms * limit + rate->paid_part : INT64_MAX; /* in 1/1000 */
    rate->at_ms = now_ms;
    if (rate->frames <= paid / 1000) {
        rate->frames = TC_MIN(rate->frames, INT64_C(0));
        rate->paid_part = 0;
    } else {
        rate->frames -= paid / 1000;
        rate->paid_part = (int)(paid % 1000);
    }
}

bool tc_h2_glitch_rate_add(struct tc_h2_glitch_rate *rate, int64_t frames, int64_t limit, uint64_t now_ms)
{
    rate_pay(rate, limit, now_ms);
    rate->frames += frames;
    if (rate->frames <= 2 * limit)
        return true;
    rate->frames = 2 * limit;
    return false;
}
