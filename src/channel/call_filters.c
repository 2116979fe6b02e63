/* A call's walk through its HTTP filters (A39), once, before all attempts: `at` is the filter whose turn it is. A
 * filter that delays the call (A33) is resumed by the timer. The response passes the filters in the opposite order. */
#include "channel/call_filters.h"

struct tc_call_filters {
    struct tc_filter_call call;
    struct tc_filter_chain *chain; /* NULL after the end */
    bool dry;
    void (*resumed)(void *arg, enum tc_filter_verdict verdict);
    void *arg;
    struct tc_timer timer;
    size_t at;      /* the filter whose turn it is; filters up to this one have started */
    void *states[]; /* of each filter of the chain (tc_call_filter_ops) */
};

/* Goes on from the present filter, whose answer is `verdict`. */
static enum tc_filter_verdict filters_follow(struct tc_call_filters *f, enum tc_filter_verdict verdict)
{
    for (;;) {
        const struct tc_call_filter *filter = &f->chain->filters[f->at];
        if (verdict == TC_FILTER_WAIT && f->dry) { /* the filter's note says how long the wait would be */
            verdict = filter->ops->resume(filter, &f->call, &f->states[f->at]);
            continue;
        }
        if (verdict != TC_FILTER_NEXT)
            break;
        if (++f->at == f->chain->n)
            return TC_FILTER_NEXT;
        filter++;
        verdict = filter->ops->start(filter, &f->call, &f->states[f->at]);
    }
    if (verdict == TC_FILTER_WAIT) {
        uint64_t ns = f->call.wait_ns;
        tc_timer_start(&f->timer, ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0));
    }
    return verdict;
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_call_filters *f = TC_CONTAINER_OF(timer, struct tc_call_filters, timer);
    const struct tc_call_filter *filter = &f->chain->filters[f->at];
    enum tc_filter_verdict verdict = filters_follow(f, filter->ops->resume(filter, &f->call, &f->states[f->at]));
    if (verdict != TC_FILTER_WAIT)
        f->resumed(f->arg, verdict);
}

struct tc_call_filters *tc_call_filters_new(struct tc_filter_chain *chain, const struct tc_filter_call *call, bool dry,
                                            void (*resumed)(void *arg, enum tc_filter_verdict verdict), void *arg)
{
    struct tc_call_filters *f = tc_arena_calloc(call->arena, 1, sizeof(*f) + chain->n * sizeof(f->states[0]));
    f->call = *call;
    f->chain = chain;
    f->dry = dry;
    f->resumed = resumed;
    f->arg = arg;
    tc_timer_init(&f->timer, call->loop, on_timer);
    return f;
}

enum tc_filter_verdict tc_call_filters_start(struct tc_call_filters *f)
{
    const struct tc_call_filter *first = &f->chain->filters[0];
    return filters_follow(f, first->ops->start(first, &f->call, &f->states[0]));
}

struct tc_status tc_call_filters_take_status(struct tc_call_filters *f)
{
    struct tc_status status = f->call.status;
    f->call.status = (struct tc_status){0};
    return status;
}

const struct tc_headers *tc_call_filters_response(struct tc_call_filters *f, const struct tc_headers *headers,
                                                  struct tc_rstr *peer)
{
    f->call.peer = peer;
    for (size_t i = f->chain->n; i-- > 0;) {
        const struct tc_call_filter *filter = &f->chain->filters[i];
        if (filter->ops->response)
            headers = filter->ops->response(filter, &f->call, &f->states[i], headers);
    }
    return headers;
}

void tc_call_filters_end(struct tc_call_filters *f)
{
    if (!f->chain)
        return;
    tc_timer_stop(&f->timer);
    size_t started = TC_MIN(f->at + 1, f->chain->n);
    for (size_t i = started; i-- > 0;) {
        const struct tc_call_filter *filter = &f->chain->filters[i];
        if (filter->ops->done)
            filter->ops->done(filter, &f->call, &f->states[i]);
    }
    f->chain = NULL;
}

const char *tc_call_filters_waiting(const struct tc_call_filters *f)
{
    return tc_arena_dup(f->call.arena, f->chain->filters[f->at].name);
}

const struct tc_filter_note *tc_call_filters_notes(const struct tc_call_filters *f)
{
    return f ? f->call.notes : NULL;
}
