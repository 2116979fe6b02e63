/* weighted_round_robin: a petiole policy (lb/policies/petiole.h) whose picks follow a scheduler over the READY
 * endpoints.
 *
 * Each new picker, each update and each weightUpdatePeriod makes a new scheduler of the present weights, which goes on
 * at the same position of the sequence. To make a scheduler costs O(n). So with more than SCHEDULE_AT_ONCE READY
 * endpoints, changes of states make at most one scheduler each SCHEDULE_PAUSE_MS. Picks go round robin while there is
 * no scheduler (fewer than two READY endpoints, or no known weight), and where the scheduler gives an endpoint that is
 * no longer READY.
 *
 * Reports come with the trailers of RPCs, or out of band by a side stream on the subchannel that the endpoint's
 * pick_first has chosen. The tracker of an RPC has a reference of the weight, which may outlive the endpoint. */
#include "lb/weighted_round_robin/policy.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/orca.h"
#include "lb/policies/petiole.h"
#include "lb/weighted_round_robin/scheduler.h"
#include "lb/weighted_round_robin/weight.h"

struct weighted_round_robin {
    struct tc_petiole base;
    struct tc_lb_config *config;        /* a reference; NULL before the first update, and after shutdown */
    struct tc_wrr_scheduler *scheduler; /* NULL: picks go round robin */
    uint32_t *places;                   /* places[i]: the child that the scheduler's place i stands for */
    uint64_t scheduled_ns;              /* when the scheduler was made, in the loop's time */
    bool relisted;                      /* an update came after the scheduler was made: places[i] may be outdated */
    uint32_t sequence;                  /* the position in the scheduler's sequence; begins at a random number */
    struct tc_timer update_timer;
};

/* One endpoint. Weight and owner are NULL until it is READY for the first time. */
struct wrr_child {
    struct tc_petiole_child base;
    struct weighted_round_robin *owner;
    struct tc_wrr_weight *weight;
    struct tc_orca_watch watch;
};

static struct weighted_round_robin *wrr_of(struct tc_petiole *p)
{
    return TC_CONTAINER_OF(p, struct weighted_round_robin, base);
}

static struct wrr_child *wrr_child_of(struct tc_petiole_child *c)
{
    return TC_CONTAINER_OF(c, struct wrr_child, base);
}

enum {
    SCHEDULE_AT_ONCE = 256,  /* with so many READY endpoints at most, each new picker has a new scheduler */
    SCHEDULE_PAUSE_MS = 100, /* between schedulers of more endpoints, while their states change */
};

/* --- the scheduler --- */

/* Makes a new scheduler. Restarts the timer for the next one if more than one child is READY, else stops the timer. At
 * least one child must be READY. Costs O(n) for n endpoints. */
static void wrr_schedule(struct weighted_round_robin *w)
{
    const struct tc_petiole_set *set = w->base.set;
    size_t ready = w->base.counts[TORC_CONNECTIVITY_READY], n = 0;
    uint64_t now_ns = tc_loop_now_ns(w->base.base.helper->env->loop);
    w->scheduled_ns = now_ns;
    w->relisted = false;
    float *weights = tc_reallocarray(NULL, ready, sizeof(*weights));
    w->places = tc_reallocarray(w->places, ready, sizeof(*w->places));
    for (uint32_t i = 0; (i = tc_index_set_next(&set->ready, i)) != TC_INDEX_NONE; i++) {
        weights[n] = tc_wrr_weight_get(wrr_child_of(w->base.children[i])->weight, tc_wrr_config(w->config), now_ns);
        w->places[n++] = i;
    }
    tc_free(w->scheduler);
    w->scheduler = tc_wrr_scheduler_new(weights, n);
    tc_free(weights);
    if (n > 1)
        tc_timer_start(&w->update_timer, tc_wrr_config(w->config)->update_ms);
    else
        tc_timer_stop(&w->update_timer);
}

static void on_publish(struct tc_petiole *p)
{
    struct weighted_round_robin *w = wrr_of(p);
    uint64_t past_ms = (tc_loop_now_ns(p->base.helper->env->loop) - w->scheduled_ns) / TC_NS_PER_MS;
    if (w->relisted || p->counts[TORC_CONNECTIVITY_READY] <= SCHEDULE_AT_ONCE || past_ms >= SCHEDULE_PAUSE_MS)
        wrr_schedule(w);
    else
        tc_timer_start(&w->update_timer, SCHEDULE_PAUSE_MS - past_ms);
}

static void on_update_timer(struct tc_timer *timer)
{
    struct weighted_round_robin *w = TC_CONTAINER_OF(timer, struct weighted_round_robin, update_timer);
    if (w->base.counts[TORC_CONNECTIVITY_READY])
        wrr_schedule(w);
}

/* --- picks --- */

/* Reads the report in the trailers of an RPC. In the call's arena; holds references to weight and config. */
struct report_tracker {
    struct tc_call_tracker base;
    struct tc_wrr_weight *weight;
    struct tc_lb_config *config;
    struct tc_loop *loop;
};

static void tracker_on_done(struct tc_call_tracker *base, const struct tc_status *status,
                            const struct tc_headers *trailers)
{
    struct report_tracker *t = TC_CONTAINER_OF(base, struct report_tracker, base);
    struct tc_slice report = tc_orca_of_trailers(trailers);
    (void)status;
    if (report.data)
        tc_wrr_weight_report(t->weight, tc_wrr_config(t->config), report, tc_loop_now_ns(t->loop));
    tc_wrr_weight_unref(t->weight);
    tc_lb_config_unref(t->config);
}

static void wrr_track(struct weighted_round_robin *w, uint32_t i, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct report_tracker *t = tc_arena_alloc(args->arena, sizeof(*t));
    if (!t)
        return;
    *t = (struct report_tracker){.base.on_done = tracker_on_done,
                                 .weight = wrr_child_of(w->base.children[i])->weight,
                                 .config = tc_lb_config_ref(w->config),
                                 .loop = w->base.base.helper->env->loop};
    tc_lref_inc(&t->weight->ref);
    tc_pick_track(out, &t->base);
}

/* Returns the child whose turn it is, or TC_INDEX_NONE if none is READY. */
static uint32_t wrr_next(struct tc_petiole_set *set, const struct tc_pick_args *args)
{
    struct weighted_round_robin *w = set->owner ? wrr_of(set->owner) : NULL;
    if (w && w->scheduler) {
        uint32_t sequence = w->sequence, i = w->places[tc_wrr_scheduler_pick(w->scheduler, &sequence)];
        w->sequence = args->dry ? w->sequence : sequence;
        if (TC_LIKELY(set->at[i]))
            return i;
    }
    return tc_petiole_take_turn(set, args);
}

static enum tc_pick_kind wrr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_petiole_set *set = ((struct tc_petiole_picker *)picker)->set;
    uint32_t i = wrr_next(set, args);
    if (TC_UNLIKELY(i == TC_INDEX_NONE))
        return TC_PICK_QUEUE;
    enum tc_pick_kind kind = tc_petiole_pick_child(set, i, "weighted_round_robin", args, out);
    struct weighted_round_robin *w = wrr_of(set->owner);
    if (kind == TC_PICK_COMPLETE && !args->dry && !tc_wrr_config(w->config)->oob)
        wrr_track(w, i, args, out);
    return kind;
}

/* --- reports out of band --- */

static void on_oob_report(struct tc_side_watch *side, struct tc_slice report)
{
    struct wrr_child *c = TC_CONTAINER_OF(side, struct wrr_child, watch.side);
    struct tc_loop *loop = c->owner->base.base.helper->env->loop;
    tc_wrr_weight_report(c->weight, tc_wrr_config(c->owner->config), report, tc_loop_now_ns(loop));
}

/* Ends the endpoint's watch. Starts it again, on the subchannel that the endpoint's pick_first has chosen, if the
 * endpoint is READY and the config asks for reports out of band. */
static void wrr_child_watch(struct wrr_child *c)
{
    const struct tc_wrr_config *config = tc_wrr_config(c->owner->config);
    const struct tc_pick_args args = {.dry = true};
    struct tc_pick chosen = {0};
    tc_side_watch_end(&c->watch.side);
    if (c->base.state != TORC_CONNECTIVITY_READY || !config->oob)
        return;
    struct tc_picker *picker = c->owner->base.set->at[c->base.endpoint_child->index];
    if (tc_picker_pick(picker, &args, &chosen) != TC_PICK_COMPLETE)
        return;
    c->watch.side.kind = &tc_orca_reports;
    c->watch.side.on_message = on_oob_report;
    c->watch.interval_ms = config->oob_period_ms;
    tc_subchannel_watch_side(chosen.subchannel, &c->watch.side);
}

/* A READY endpoint may report READY again, with another subchannel. */
static void on_state(struct tc_petiole *p, struct tc_petiole_child *base, enum torc_connectivity before)
{
    struct wrr_child *c = wrr_child_of(base);
    if (c->base.state == TORC_CONNECTIVITY_READY && before != TORC_CONNECTIVITY_READY) {
        c->owner = wrr_of(p);
        if (!c->weight)
            c->weight = tc_wrr_weight_new();
        c->weight->non_empty_since_ns = UINT64_MAX; /* A58: the blackout period begins again */
    }
    if (c->owner)
        wrr_child_watch(c);
}

static void on_child_end(struct tc_petiole *p, struct tc_petiole_child *base)
{
    struct wrr_child *c = wrr_child_of(base);
    (void)p;
    tc_side_watch_end(&c->watch.side);
    tc_wrr_weight_unref(c->weight);
}

static const struct tc_petiole_ops petiole_ops = {
    .picker = {wrr_pick, tc_petiole_picker_free},
    .child_size = sizeof(struct wrr_child),
    .on_state = on_state,
    .on_publish = on_publish,
    .on_child_end = on_child_end,
};

/* --- the policy --- */

static struct tc_status wrr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct weighted_round_robin *w = TC_CONTAINER_OF(policy, struct weighted_round_robin, base.base);
    struct tc_lb_config *old = w->config;
    w->config = tc_lb_config_ref(update->config);
    const struct tc_wrr_config *was = old ? tc_wrr_config(old) : NULL, *is = tc_wrr_config(w->config);
    if (was && (was->oob != is->oob || was->oob_period_ms != is->oob_period_ms))
        for (size_t i = 0; i < w->base.n; i++)
            if (wrr_child_of(w->base.children[i])->owner)
                wrr_child_watch(wrr_child_of(w->base.children[i]));
    tc_lb_config_unref(old);
    if (was && w->base.counts[TORC_CONNECTIVITY_READY])
        wrr_schedule(w);
    w->relisted = true;
    return tc_petiole_update(policy, update);
}

static void wrr_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct weighted_round_robin *w = TC_CONTAINER_OF(policy, const struct weighted_round_robin, base.base);
    tc_petiole_describe(policy, d);
    tc_describe_open(d, "weights", '['); /* of the endpoints that were READY when the scheduler was made */
    for (uint32_t i = 0; w->scheduler && i < w->scheduler->n; i++)
        tc_describe_number(d, NULL, w->scheduler->weights[i]);
    tc_describe_close(d, ']');
}

static void wrr_shutdown(struct tc_lb_policy *policy)
{
    struct weighted_round_robin *w = TC_CONTAINER_OF(policy, struct weighted_round_robin, base.base);
    if (!policy->helper)
        return;
    tc_timer_stop(&w->update_timer);
    tc_petiole_shutdown(policy);
    tc_free(w->scheduler);
    tc_free(w->places);
    w->scheduler = NULL;
    w->places = NULL;
    tc_lb_config_unref(w->config);
    w->config = NULL;
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = wrr_update,
    .exit_idle = tc_petiole_exit_idle,
    .reset_backoff = tc_petiole_reset_backoff,
    .shutdown = wrr_shutdown,
    .describe = wrr_describe,
};

static struct tc_lb_policy *wrr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct weighted_round_robin *w = TC_NEW(struct weighted_round_robin);
    tc_petiole_init(&w->base, &policy_ops, &petiole_ops, factory, helper);
    w->sequence = (uint32_t)tc_rng_u64(tc_loop_rng(helper->env->loop));
    tc_timer_init(&w->update_timer, helper->env->loop, on_update_timer);
    return &w->base.base;
}

const struct tc_lb_factory tc_weighted_round_robin_factory = {
    .name = "weighted_round_robin",
    .alias = "weighted_round_robin_experimental",
    .create = wrr_create,
    .parse_config = tc_wrr_config_parse,
    .free_config = tc_wrr_config_free,
    .equal_config = tc_wrr_config_equal,
};
