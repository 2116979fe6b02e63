/* The estimate of a path's bandwidth-delay product, as in gRPC. A PING is sent when DATA comes; the bytes that come
 * until its answer are the estimate. The window doubles, up to TC_H2_MAX_WINDOW, when the bytes fill two thirds of it
 * and the bandwidth is higher than at the growth before. While the window does not grow, PINGs become rarer. */
#include "http2/bdp.h"

#include "base/common.h"

enum { FIRST_DELAY_MS = 200, MAX_DELAY_MS = 10000 };

void tc_h2_bdp_init(struct tc_h2_bdp *b, uint32_t window_bytes, bool off)
{
    *b = (struct tc_h2_bdp){.window_bytes = TC_MIN(TC_MAX(window_bytes, 1u), (uint32_t)TC_H2_MAX_WINDOW),
                            .off = off,
                            .delay_ms = FIRST_DELAY_MS};
}

void tc_h2_bdp_squeeze(struct tc_h2_bdp *b, uint32_t window_bytes)
{
    bool running = b->running;
    uint64_t sent_ns = b->sent_ns;
    tc_h2_bdp_init(b, window_bytes, true);
    b->running = running;
    b->sent_ns = sent_ns;
}

void tc_h2_bdp_start(struct tc_h2_bdp *b, size_t len, uint64_t now_ns)
{
    b->running = true;
    b->bytes = len;
    b->sent_ns = now_ns;
}

bool tc_h2_bdp_on_ack(struct tc_h2_bdp *b, uint64_t now_ns)
{
    if (!b->running)
        return false;
    b->running = false;
    uint64_t took_ns = TC_MAX(now_ns - b->sent_ns, UINT64_C(1));
    double bandwidth = (double)b->bytes * 1e9 / (double)took_ns;
    if (b->bytes < (uint64_t)b->window_bytes * 2 / 3 || bandwidth <= b->bandwidth) {
        b->not_before_ms = now_ns / TC_NS_PER_MS + b->delay_ms;
        b->delay_ms = TC_MIN(b->delay_ms * 2, (uint64_t)MAX_DELAY_MS);
        return false;
    }
    b->bandwidth = bandwidth;
    b->delay_ms = FIRST_DELAY_MS;
    b->window_bytes = (uint32_t)TC_MIN((uint64_t)b->window_bytes * 2, (uint64_t)TC_H2_MAX_WINDOW);
    /* Bytes that come within a round trip of a growth were sent into the smaller window, and could not fill the larger
     * one. */
    b->not_before_ms = (now_ns + took_ns) / TC_NS_PER_MS;
    return true;
}
