#include "channel/call_filters.h"

#include "base/mem.h"
#include "channel/call_struct.h"

/* In the call's arena. */
struct tc_call_filters {
    struct tc_call *owner;
    struct tc_filter_call call;
    struct tc_filter_chain *chain;
    struct tc_timer timer;
    size_t at; /* the filter whose turn it is; those before it, and it, have started */
    bool waiting;
    void *states[];
};

static void on_timer(struct tc_timer *timer);

/* From the present filter on, whose answer is `verdict`. */
static bool follow(struct tc_call_filters *f, enum tc_filter_verdict verdict)
{
    for (;;) {
        const struct tc_call_filter *filter = &f->chain->filters[f->at];
        if (verdict == TC_FILTER_WAIT && f->owner->dry) { /* the filter's note says how long it would be */
            verdict = filter->ops->resume(filter, &f->call, &f->states[f->at]);
            continue;
        }
        if (verdict != TC_FILTER_NEXT)
            break;
        if (++f->at == f->chain->n)
            return true;
        filter++;
        verdict = filter->ops->start(filter, &f->call, &f->states[f->at]);
    }
    if (verdict == TC_FILTER_WAIT) {
        f->waiting = true;
        f->owner->stage = TC_CALL_WAIT_FILTER;
        uint64_t ns = f->call.wait_ns;
        tc_timer_start(&f->timer, ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0));
    } else {
        struct tc_status status = f->call.status;
        f->call.status = (struct tc_status){0};
        tc_call_fail(f->owner, status);
    }
    return false;
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_call_filters *f = TC_CONTAINER_OF(timer, struct tc_call_filters, timer);
    const struct tc_call_filter *filter = &f->chain->filters[f->at];
    f->waiting = false;
    if (follow(f, filter->ops->resume(filter, &f->call, &f->states[f->at])))
        tc_call_attempt(f->owner);
}

bool tc_call_filters_start(struct tc_call *c)
{
    struct tc_filter_chain *chain = c->config.filters;
    struct tc_call_filters *f = tc_arena_calloc(&c->arena, 1, sizeof(*f) + chain->n * sizeof(f->states[0]));
    f->owner = c;
    f->chain = chain;
    f->call = (struct tc_filter_call){
        .loop = c->channel->loop,
        .arena = &c->arena,
        .path = c->path,
        .metadata = &c->metadata,
        .config = &c->config,
        .explain = c->explain,
    };
    tc_timer_init(&f->timer, c->channel->loop, on_timer);
    c->filters = f;
    const struct tc_call_filter *first = &chain->filters[0];
    return follow(f, first->ops->start(first, &f->call, &f->states[0]));
}

const struct tc_headers *tc_call_filters_response(struct tc_call *c, const struct tc_headers *headers)
{
    struct tc_call_filters *f = c->filters;
    f->call.peer = c->peer;
    for (size_t i = f->chain->n; i-- > 0;) {
        const struct tc_call_filter *filter = &f->chain->filters[i];
        if (filter->ops->response)
            headers = filter->ops->response(filter, &f->call, &f->states[i], headers);
    }
    return headers;
}

void tc_call_filters_end(struct tc_call *c)
{
    struct tc_call_filters *f = c->filters;
    if (!f || !f->chain)
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

const char *tc_call_filters_waiting(const struct tc_call *c)
{
    return tc_arena_dup(&c->filters->owner->arena, c->filters->chain->filters[c->filters->at].name);
}

const struct tc_filter_note *tc_call_filters_notes(const struct tc_call *c)
{
    return c->filters ? c->filters->call.notes : NULL;
}
