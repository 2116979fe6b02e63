/* The fault injection filter (A33).
 *
 * When an RPC starts, two independent random numbers decide whether it is delayed and whether it is aborted. An RPC
 * with both faults is delayed first. max_active_faults bounds the faults under way in the whole process, which one
 * atomic word counts. A fault that would exceed the bound does not happen. A delay leaves the count when it ends, or
 * when the RPC ends during the delay (fault_done). The faults of an RPC (struct fault) live in the call's arena. Runs
 * on the loop thread of the call's channel. */
#include "xds/filter/fault_filter.h"

#include <stdatomic.h>

#include "base/fork.h"
#include "base/parse.h"
#include "http2/status_mapping.h"
#include "xds/resource/fault_filter.h"
#include "xds/resource/matchers.h"

/* Low 32 bits: the number of faults under way in the process (A33). High bits: tc_fork_generation of that process. A
 * forked child counts from 0, since the parent's faults do not end in the child. */
static atomic_ullong active;

/* The faults of one RPC. In the call's arena. */
struct fault {
    bool delayed; /* the delay is under way, and counted in `active` */
    bool aborts;  /* decided when the RPC started */
    int code;     /* with `aborts`: the gRPC status */
};

static bool fault_applies(const void *config)
{
    const struct tc_fault_config *f = config;
    return (f->delay != TC_FAULT_NO_DELAY && f->delay_share.numerator) ||
           (f->abort != TC_FAULT_NO_ABORT && f->abort_share.numerator);
}

/* Stores the header's number. Returns false if the header is absent, or is not a number of at most `max` (A33). */
static bool header_number(const struct tc_filter_call *call, const char *name, uint64_t max, uint64_t *out)
{
    const struct tc_header *h = tc_headers_find(call->metadata, tc_slice_str(name));
    return h && tc_parse_u64(h->value, max, out) == 0;
}

/* Draws whether this RPC belongs to the share. With by_header, a header of the RPC may lower the share's numerator,
 * never raise it (A33). */
static bool fault_is_chosen(struct tc_filter_call *call, const struct tc_fault_share *share, bool by_header,
                            const char *header)
{
    uint64_t numerator = share->numerator, wanted;
    if (by_header && header_number(call, header, UINT32_MAX, &wanted))
        numerator = TC_MIN(numerator, wanted);
    uint64_t millionths = TC_MIN(numerator * share->unit, (uint64_t)TC_FRACTION_ONE);
    return tc_fraction_match((uint32_t)millionths, tc_rng_u64(tc_loop_rng(call->loop)));
}

/* Returns whether the RPC is to be delayed. If so, *ns is the delay; else *ns may have changed, too. */
static bool fault_delay(struct tc_filter_call *call, const struct tc_fault_config *f, uint64_t *ns)
{
    uint64_t ms;
    if (f->delay == TC_FAULT_FIXED_DELAY)
        *ns = f->delay_ns;
    else if (f->delay == TC_FAULT_HEADER_DELAY && header_number(call, "x-envoy-fault-delay-request", UINT32_MAX, &ms))
        *ns = ms * TC_NS_PER_MS;
    else
        return false;
    return *ns && fault_is_chosen(call, &f->delay_share, f->delay == TC_FAULT_HEADER_DELAY,
                                  "x-envoy-fault-delay-request-percentage");
}

/* Returns whether the RPC is to be aborted. If so, *code is the gRPC status; else *code may have changed, too. */
static bool fault_abort(struct tc_filter_call *call, const struct tc_fault_config *f, int *code)
{
    uint64_t status;
    if (f->abort == TC_FAULT_GRPC_ABORT)
        *code = (int)f->abort_status;
    else if (f->abort == TC_FAULT_HTTP_ABORT)
        *code = tc_h2_code_from_http(f->abort_status);
    else if (f->abort != TC_FAULT_HEADER_ABORT)
        return false;
    else if (header_number(call, "x-envoy-fault-abort-grpc-request", TORC_STATUS_UNAUTHENTICATED, &status))
        *code = (int)status;
    else if (header_number(call, "x-envoy-fault-abort-request", UINT32_MAX, &status))
        *code = tc_h2_code_from_http((unsigned)status);
    else
        return false;
    return fault_is_chosen(call, &f->abort_share, f->abort == TC_FAULT_HEADER_ABORT,
                           "x-envoy-fault-abort-request-percentage");
}

/* Counts one more active fault. Returns false, and counts nothing, if max_active_faults or more are active. */
static bool active_faults_enter(const struct tc_fault_config *f)
{
    unsigned long long before = atomic_load_explicit(&active, memory_order_relaxed), n;
    const unsigned long long none = (unsigned long long)tc_fork_generation() << 32;
    do {
        n = before >> 32 == none >> 32 ? before & UINT32_MAX : 0;
        if (n >= f->max_active)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&active, &before, none + n + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void active_faults_leave(void)
{
    atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
}

/* Fails the RPC if it is to be aborted and max_active_faults allows it. An abort is over at once, so it does not stay
 * in the count. */
static enum tc_filter_verdict fault_end_or_go_on(const struct tc_call_filter *f, struct tc_filter_call *call,
                                                 const struct fault *fault)
{
    if (!fault->aborts || !active_faults_enter(f->config))
        return TC_FILTER_NEXT;
    active_faults_leave();
    call->status = tc_status_make(fault->code, TORC_LAYER_INTERCEPTOR,
                                  "fault injected by the HTTP filter \"" TC_SHOWN "\"", TC_SHOW(f->name.data));
    if (call->explain)
        tc_filter_note(f, call, "aborted with %s", torc_status_code_name(fault->code));
    return TC_FILTER_FAIL;
}

static enum tc_filter_verdict fault_start(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    const struct tc_fault_config *config = f->config;
    struct fault *fault = tc_arena_calloc(call->arena, 1, sizeof(*fault));
    *state = fault;
    bool delays = fault_delay(call, config, &call->wait_ns);
    fault->aborts = fault_abort(call, config, &fault->code);
    if (!delays || !active_faults_enter(config))
        return fault_end_or_go_on(f, call, fault);
    fault->delayed = true;
    if (call->explain)
        tc_filter_note(f, call, "delayed by %.3f s", (double)call->wait_ns / 1e9);
    return TC_FILTER_WAIT;
}

static void fault_end_delay(struct fault *fault)
{
    if (fault->delayed)
        active_faults_leave();
    fault->delayed = false;
}

static enum tc_filter_verdict fault_resume(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    fault_end_delay(*state);
    return fault_end_or_go_on(f, call, *state);
}

static void fault_done(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    (void)f;
    (void)call;
    fault_end_delay(*state);
}

static const struct tc_call_filter_ops ops = {.start = fault_start, .resume = fault_resume, .done = fault_done};

const struct tc_http_filter_type tc_http_filter_fault = {
    .config_name = "envoy.extensions.filters.http.fault.v3.HTTPFault",
    .override_name = "envoy.extensions.filters.http.fault.v3.HTTPFault",
    .on_clients = true,
    .parse = tc_fault_config_parse,
    .parse_override = tc_fault_config_parse,
    .ops = &ops,
    .applies = fault_applies,
};
