#include "mesh/fault_filter.h"

#include <stdatomic.h>

#include "base/parse.h"
#include "http2/stream.h"
#include "resource/fault_filter.h"
#include "resource/matchers.h"

/* A33: faults under way in the process, for max_active_faults. */
static atomic_uint active;

/* What was decided for an RPC when it came. */
struct fault {
    bool delayed; /* counted in `active` */
    bool aborts;
    int code;
};

static bool applies(const void *config)
{
    const struct tc_fault_config *f = config;
    return (f->delay != TC_FAULT_NO_DELAY && f->delay_share.numerator) ||
           (f->abort != TC_FAULT_NO_ABORT && f->abort_share.numerator);
}

/* A header that is a number up to max; anything else is as good as none (A33). */
static bool number(const struct tc_filter_call *call, const char *name, uint64_t max, uint64_t *out)
{
    const struct tc_header *h = tc_headers_find(call->metadata, tc_slice_str(name));
    return h && tc_parse_u64(h->value, max, out) == 0;
}

/* Whether this RPC is among the share; a header may make it smaller. Each fault has a random number of its own. */
static bool chosen(struct tc_filter_call *call, const struct tc_fault_share *share, bool by_header, const char *header)
{
    uint64_t numerator = share->numerator, wanted;
    if (by_header && number(call, header, UINT32_MAX, &wanted))
        numerator = TC_MIN(numerator, wanted);
    uint64_t millionths = TC_MIN(numerator * share->unit, (uint64_t)TC_FRACTION_ONE);
    return tc_fraction_match((uint32_t)millionths, tc_rng_u64(tc_loop_rng(call->loop)));
}

static bool delay_of(struct tc_filter_call *call, const struct tc_fault_config *f, uint64_t *ns)
{
    uint64_t ms;
    if (f->delay == TC_FAULT_FIXED_DELAY)
        *ns = f->delay_ns;
    else if (f->delay == TC_FAULT_HEADER_DELAY && number(call, "x-envoy-fault-delay-request", UINT32_MAX, &ms))
        *ns = ms * TC_NS_PER_MS;
    else
        return false;
    return *ns &&
           chosen(call, &f->delay_share, f->delay == TC_FAULT_HEADER_DELAY, "x-envoy-fault-delay-request-percentage");
}

static bool abort_of(struct tc_filter_call *call, const struct tc_fault_config *f, int *code)
{
    uint64_t status;
    if (f->abort == TC_FAULT_GRPC_ABORT)
        *code = (int)f->abort_status;
    else if (f->abort == TC_FAULT_HTTP_ABORT)
        *code = tc_h2_code_from_http(f->abort_status);
    else if (f->abort != TC_FAULT_HEADER_ABORT)
        return false;
    else if (number(call, "x-envoy-fault-abort-grpc-request", TORC_STATUS_UNAUTHENTICATED, &status))
        *code = (int)status;
    else if (number(call, "x-envoy-fault-abort-request", UINT32_MAX, &status))
        *code = tc_h2_code_from_http((unsigned)status);
    else
        return false;
    return chosen(call, &f->abort_share, f->abort == TC_FAULT_HEADER_ABORT, "x-envoy-fault-abort-request-percentage");
}

/* One more at a time, if there may be. */
static bool enter(const struct tc_fault_config *f)
{
    unsigned n = atomic_load_explicit(&active, memory_order_relaxed);
    do {
        if (n >= f->max_active)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&active, &n, n + 1, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void leave(void)
{
    atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
}

/* An abort is a fault that is over as soon as it began. */
static enum tc_filter_verdict end_or_go_on(const struct tc_call_filter *f, struct tc_filter_call *call,
                                           const struct fault *fault)
{
    if (!fault->aborts || !enter(f->config))
        return TC_FILTER_NEXT;
    leave();
    call->status = tc_status_make(fault->code, "fault injected by the HTTP filter \"%.*s\"",
                                  (int)TC_MIN(f->name.len, (size_t)1024), f->name.data);
    if (call->explain)
        tc_filter_note(f, call, "aborted with %s", torc_status_code_name(fault->code));
    return TC_FILTER_FAIL;
}

static enum tc_filter_verdict start(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    const struct tc_fault_config *config = f->config;
    struct fault *fault = tc_arena_calloc(call->arena, 1, sizeof(*fault));
    *state = fault;
    bool delays = delay_of(call, config, &call->wait_ns);
    fault->aborts = abort_of(call, config, &fault->code);
    if (!delays || !enter(config))
        return end_or_go_on(f, call, fault);
    fault->delayed = true;
    if (call->explain)
        tc_filter_note(f, call, "delayed by %.3f s", (double)call->wait_ns / 1e9);
    return TC_FILTER_WAIT;
}

static void end_delay(struct fault *fault)
{
    if (fault->delayed)
        leave();
    fault->delayed = false;
}

static enum tc_filter_verdict resume(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    end_delay(*state);
    return end_or_go_on(f, call, *state);
}

static void done(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    (void)f;
    (void)call;
    end_delay(*state);
}

static const struct tc_call_filter_ops ops = {.start = start, .resume = resume, .done = done};

const struct tc_http_filter_class tc_fault_filter_class = {
    .type = &tc_http_filter_fault, .ops = &ops, .applies = applies};
