/* Backends and the subchannels of clients to them.
 *
 * A subchannel has its present state (`state`) and the state that its policy was told last (`told`). Its task tells the
 * policy one step on the way from `told` to `state`, and runs again until both are equal. So the policy sees only
 * steps that lb/subchannel.h allows. Its event is the end of the attempt in CONNECTING, the end of the backoff in
 * TRANSIENT_FAILURE, and the next out-of-band report in READY. The policy that created a subchannel owns it, and
 * releases it before the backend ends.
 *
 * A backend reports the load of the last whole second: the number of calls whose service ended in it (qps), and their
 * service time in seconds, divided by sim_result.limit (utilization).
 *
 * Everything runs on the thread of sim_run, whose struct sim owns the backends. */
#include <math.h>

#include "base/mem.h"
#include "io/backoff.h"
#include "lb/orca.h"
#include "simulate.h"

#define FOREVER_NS 1e18 /* 31 years: longer than any run */

struct sim_subchannel {
    struct tc_subchannel base;
    struct sim_backend *backend;
    struct tc_link link; /* of sim_backend.subchannels */
    struct tc_task task;
    struct tc_world_event event;
    struct tc_side_watch *watch; /* of out-of-band reports; NULL: none */
    double backoff_ms;           /* tc_backoff.current_ms */
    uint8_t state, told;         /* enum torc_connectivity; told is SHUTDOWN at first: nothing was told */
};

/* --- load --- */

/* Updates qps and utilization if a second has ended since the last update. If several have ended, both become 0: no
 * service ended in the last of these seconds. */
static void backend_turn_second(struct sim_backend *b)
{
    uint64_t second = tc_world_now_ns() / TC_NS_PER_S;
    if (second == b->second)
        return;
    bool whole = second == b->second + 1;
    b->qps = whole ? (double)b->ended : 0;
    b->utilization = whole ? (double)b->busy_ns / (double)TC_NS_PER_S / b->sim->result->limit : 0;
    b->second = second;
    b->ended = b->busy_ns = 0;
}

enum { REPORT_BYTES = 18 };

/* Writes an OrcaLoadReport of two doubles to `out` and returns it. Returns an empty slice if no service ended in the
 * last whole second. */
static struct tc_slice backend_report(struct sim_backend *b, char out[REPORT_BYTES])
{
    backend_turn_second(b);
    if (b->qps <= 0)
        return (struct tc_slice){0};
    out[0] = TC_ORCA_CPU << 3 | 1;
    memcpy(out + 1, &b->utilization, 8);
    out[9] = TC_ORCA_QPS << 3 | 1;
    memcpy(out + 10, &b->qps, 8);
    return tc_slice_of(out, REPORT_BYTES);
}

/* Called when `active` has changed: begins or ends the overload, and keeps the peak. */
static void backend_weigh(struct sim_backend *b)
{
    bool overloaded = b->active > b->sim->result->limit;
    if (overloaded && !b->overloaded_since_ns)
        b->overloaded_since_ns = tc_world_now_ns();
    else if (!overloaded && b->overloaded_since_ns)
        sim_backend_close(b);
    if (!overloaded)
        b->overloaded_since_ns = 0;
    b->load.peak = TC_MAX(b->load.peak, b->active);
}

void sim_backend_close(struct sim_backend *b)
{
    if (!b->overloaded_since_ns)
        return;
    uint64_t now_ns = tc_world_now_ns(), ns = now_ns - b->overloaded_since_ns;
    struct sim_phase *phase = sim_present(b->sim);
    b->load.overload_ns += ns;
    phase->overload_ns += ns;
    phase->longest_ns = TC_MAX(phase->longest_ns, ns);
    b->overloaded_since_ns = now_ns;
}

/* --- calls --- */

static void backend_serve(struct sim_backend *b, struct sim_call *call)
{
    b->served++;
    tc_list_append(&b->calls, &call->link);
    call->service_ns = (uint64_t)fmin((double)b->sim->opts->service_ns * b->slow, FOREVER_NS);
    tc_world_event_at(&call->event, tc_world_now_ns() + call->service_ns);
}

void sim_backend_take(struct sim_backend *b, struct sim_call *call)
{
    call->backend = b;
    b->active++;
    backend_weigh(b);
    if (b->sim->opts->capacity && b->served >= b->sim->opts->capacity)
        tc_list_append(&b->waiting, &call->link);
    else
        backend_serve(b, call);
}

void sim_call_on_served(struct tc_world_event *event)
{
    struct sim_call *call = TC_CONTAINER_OF(event, struct sim_call, event);
    struct sim_backend *b = call->backend;
    struct tc_link *next = tc_list_pop(&b->waiting);
    char bytes[REPORT_BYTES];
    struct tc_slice report = backend_report(b, bytes);
    struct tc_headers trailers;
    b->active--;
    b->served--;
    b->ended++;
    b->busy_ns += call->service_ns;
    backend_weigh(b);
    if (next)
        backend_serve(b, TC_CONTAINER_OF(next, struct sim_call, link));
    tc_headers_init(&trailers, &call->arena);
    if (report.len)
        tc_headers_add(&trailers, tc_slice_str("endpoint-load-metrics-bin"), report);
    sim_call_end(call, TORC_STATUS_OK, &trailers);
}

static void backend_fail_calls(struct sim_backend *b, struct tc_link *calls)
{
    struct tc_link *link;
    while ((link = tc_list_pop(calls))) {
        struct sim_call *call = TC_CONTAINER_OF(link, struct sim_call, link);
        b->load.failed += call->counted && b->sim->counts;
        sim_call_end(call, TORC_STATUS_UNAVAILABLE, NULL);
    }
}

/* --- subchannels --- */

static struct sim_subchannel *subchannel_of(struct tc_subchannel *base)
{
    return TC_CONTAINER_OF(base, struct sim_subchannel, base);
}

/* Enters a state: counts connections, stops the event, and starts the task that tells the policy. */
static void subchannel_set(struct sim_subchannel *sc, enum torc_connectivity state)
{
    struct sim_load *load = &sc->backend->load;
    load->connections -= sc->state == TORC_CONNECTIVITY_READY;
    load->connections += state == TORC_CONNECTIVITY_READY;
    load->most_connections = TC_MAX(load->most_connections, load->connections);
    sc->state = (uint8_t)state;
    tc_world_event_stop(&sc->event);
    tc_loop_defer(sc->backend->sim->loop, &sc->task);
}

/* Returns the next state to tell the policy, on the way from `told` to `state`. */
static enum torc_connectivity state_after(const struct sim_subchannel *sc)
{
    if (sc->told == TORC_CONNECTIVITY_IDLE)
        return TORC_CONNECTIVITY_CONNECTING;
    if (sc->told != TORC_CONNECTIVITY_CONNECTING)
        return TORC_CONNECTIVITY_IDLE;
    return sc->state == TORC_CONNECTIVITY_READY ? TORC_CONNECTIVITY_READY : TORC_CONNECTIVITY_TRANSIENT_FAILURE;
}

static void subchannel_on_task(struct tc_task *task)
{
    struct sim_subchannel *sc = TC_CONTAINER_OF(task, struct sim_subchannel, task);
    struct tc_status status = {0};
    enum torc_connectivity state = state_after(sc);
    sc->told = (uint8_t)state;
    if (sc->told != sc->state)
        tc_loop_defer(sc->backend->sim->loop, &sc->task);
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        status =
            tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "%s: connection refused", sc->backend->name);
    sc->base.on_state(sc->base.arg, state, &status);
    tc_status_fini(&status);
}

/* Sets the event for the next report: after the interval of the watch, but a second at least and a day at most. The
 * subchannel must have a watch. */
static void subchannel_expect_report(struct sim_subchannel *sc)
{
    uint64_t ms = TC_MAX(TC_CONTAINER_OF(sc->watch, struct tc_orca_watch, side)->interval_ms, UINT64_C(1000));
    tc_world_event_at(&sc->event, tc_world_now_ns() + TC_MIN(ms, UINT64_C(86400000)) * TC_NS_PER_MS);
}

static void subchannel_on_event(struct tc_world_event *event)
{
    struct sim_subchannel *sc = TC_CONTAINER_OF(event, struct sim_subchannel, event);
    struct tc_backoff backoff = {tc_backoff_default, sc->backoff_ms};
    char bytes[REPORT_BYTES];
    struct tc_slice report;
    switch (sc->state) {
    case TORC_CONNECTIVITY_TRANSIENT_FAILURE:
        subchannel_set(sc, TORC_CONNECTIVITY_IDLE);
        return;
    case TORC_CONNECTIVITY_READY:
        subchannel_expect_report(sc);
        report = backend_report(sc->backend, bytes);
        if (report.len)
            sc->watch->on_message(sc->watch, report);
        return;
    default:
        break;
    }
    if (sc->backend->dead) {
        subchannel_set(sc, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        tc_world_event_at(event, tc_world_now_ns() +
                                     tc_backoff_next_ms(&backoff, tc_loop_rng(sc->backend->sim->loop)) * TC_NS_PER_MS);
    } else {
        subchannel_set(sc, TORC_CONNECTIVITY_READY);
        tc_backoff_reset(&backoff);
        if (sc->watch)
            subchannel_expect_report(sc);
    }
    sc->backoff_ms = backoff.current_ms;
}

static void subchannel_connect(struct tc_subchannel *base)
{
    struct sim_subchannel *sc = subchannel_of(base);
    if (sc->state != TORC_CONNECTIVITY_IDLE)
        return;
    subchannel_set(sc, TORC_CONNECTIVITY_CONNECTING);
    tc_world_event_at(&sc->event, tc_world_now_ns() + sc->backend->sim->opts->connect_ns);
}

static void subchannel_reset_backoff(struct tc_subchannel *base)
{
    struct sim_subchannel *sc = subchannel_of(base);
    if (sc->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        subchannel_set(sc, TORC_CONNECTIVITY_IDLE);
}

static struct tc_subchannel *subchannel_inner(struct tc_subchannel *base)
{
    (void)base;
    return NULL;
}

static void subchannel_release(struct tc_subchannel *base)
{
    struct sim_subchannel *sc = subchannel_of(base);
    subchannel_set(sc, TORC_CONNECTIVITY_SHUTDOWN);
    tc_task_cancel(&sc->task);
    tc_list_remove(&sc->link);
    if (sc->watch)
        sc->watch->stream = NULL;
    tc_endpoint_unref(base->endpoint);
    tc_addr_fini(&base->addr);
    tc_free(sc);
}

static void on_watch_end(struct tc_side_watch *w)
{
    struct sim_subchannel *sc = (struct sim_subchannel *)w->stream;
    if (sc->state == TORC_CONNECTIVITY_READY)
        tc_world_event_stop(&sc->event);
    sc->watch = NULL;
    w->stream = NULL;
}

/* Backends offer out-of-band load reports, and no other side stream. The watch's `stream` is the subchannel itself. */
static void subchannel_watch_side(struct tc_subchannel *base, struct tc_side_watch *w)
{
    struct sim_subchannel *sc = subchannel_of(base);
    if (w->kind != &tc_orca_reports)
        return;
    w->stream = (struct tc_side_stream *)sc;
    w->end = on_watch_end;
    sc->watch = w;
    if (sc->state == TORC_CONNECTIVITY_READY)
        subchannel_expect_report(sc);
}

static const struct tc_subchannel_ops subchannel_ops = {.connect = subchannel_connect,
                                                        .reset_backoff = subchannel_reset_backoff,
                                                        .inner = subchannel_inner,
                                                        .release = subchannel_release,
                                                        .watch_side = subchannel_watch_side};

struct tc_subchannel *sim_subchannel_new(struct sim_backend *b, struct tc_endpoint *endpoint,
                                         const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct sim_subchannel *sc = TC_NEW(struct sim_subchannel);
    sc->base = (struct tc_subchannel){&subchannel_ops, tc_endpoint_ref(endpoint), tc_addr_ref(addr), on_state, arg};
    sc->backend = b;
    sc->told = TORC_CONNECTIVITY_SHUTDOWN;
    tc_list_append(&b->subchannels, &sc->link);
    tc_task_init(&sc->task, subchannel_on_task);
    tc_world_event_init(&sc->event, subchannel_on_event);
    subchannel_set(sc, TORC_CONNECTIVITY_IDLE);
    return &sc->base;
}

struct sim_backend *sim_backend_of(struct tc_subchannel *base)
{
    struct sim_subchannel *sc = subchannel_of(tc_subchannel_innermost(base));
    return sc->state == TORC_CONNECTIVITY_READY ? sc->backend : NULL;
}

/* --- backends --- */

void sim_backend_init(struct sim_backend *b, struct sim *s, uint32_t index)
{
    const struct sim_endpoint *e = &s->opts->endpoints.data[index];
    *b = (struct sim_backend){.sim = s, .name = e->name, .absent = e->absent, .slow = 1};
    tc_list_init(&b->subchannels);
    tc_list_init(&b->calls);
    tc_list_init(&b->waiting);
}

void sim_backend_kill(struct sim_backend *b)
{
    b->dead = true;
    TC_LIST_FOREACH(it, &b->subchannels)
    {
        struct sim_subchannel *sc = TC_CONTAINER_OF(it, struct sim_subchannel, link);
        if (sc->state == TORC_CONNECTIVITY_READY)
            subchannel_set(sc, TORC_CONNECTIVITY_IDLE);
    }
    b->active = b->served = 0;
    backend_weigh(b);
    backend_fail_calls(b, &b->calls);
    backend_fail_calls(b, &b->waiting);
}
