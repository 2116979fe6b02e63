#include "lb/pick_first.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "lb/addr_list.h"
#include "lb/describe.h"
#include "lb/note.h"

/* A61: the Connection Attempt Delay's bounds. */
enum { MIN_DELAY_MS = 100, MAX_DELAY_MS = 2000 };

struct config {
    struct tc_lb_config base;
    bool shuffle;
    bool petiole; /* under a policy that words the failures */
};

struct pick_first;

/* One address of the list. Its subchannel is made when its turn comes. */
struct sub {
    struct pick_first *owner;
    struct tc_endpoint *endpoint; /* a reference; addr points into it */
    const struct tc_addr *addr;
    struct tc_subchannel *sc; /* NULL: not tried, or given up */
    enum torc_connectivity state;
    bool tried;  /* in the present pass */
    bool failed; /* in the present pass */
};

struct pf_picker {
    struct tc_picker base;
    struct pick_first *owner; /* NULL when the policy went on to another picker, or ended */
    /* The selected address's, beside the picker: among many endpoints each step to another object is a miss of the
     * caches. NULL: none is selected, or the owner is gone. */
    struct tc_subchannel *sc;
};

struct pick_first {
    struct tc_lb_policy base;
    struct tc_endpoints *endpoints; /* the last list; NULL before the first and after an empty one */
    struct tc_rstr *note;
    bool petiole;
    struct sub **subs;
    size_t n;
    size_t next;     /* the first pass: the next address to try; n when all were */
    bool pass_done;  /* every address has failed once: all are tried at all times now (A61) */
    size_t failures; /* in the first pass: addresses that failed; later: failures since the last re-resolution */
    struct sub *selected;
    struct sub *renewed; /* the selected address again, for an endpoint with new attributes; takes over once READY */
    enum torc_connectivity state; /* as reported; TORC_SHUTDOWN: nothing yet */
    struct tc_status last_error;
    struct pf_picker *published; /* borrowed; the one that refers to us */
    struct tc_timer attempt_timer;
    struct tc_task exit_idle_task;
    struct tc_task free_task;
};

/* Pickers. */

static enum tc_pick_kind pf_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct pf_picker *pp = (struct pf_picker *)picker;
    if (TC_UNLIKELY(!pp->sc)) {
        if (pp->owner && !args->dry)
            tc_loop_defer(pp->owner->base.helper->env->loop, &pp->owner->exit_idle_task);
        return TC_PICK_QUEUE;
    }
    out->subchannel = pp->sc;
    if (TC_UNLIKELY(args->trace != NULL)) {
        struct tc_buf text = {0};
        tc_addr_format(pp->owner->selected->addr, &text);
        char *copy = tc_arena_dup(args->trace->arena, tc_buf_slice(&text));
        args->trace->endpoint = tc_slice_of(copy, copy ? text.len : 0);
        if (args->trace->policy.len == 0)
            args->trace->policy = tc_slice_str("pick_first");
        tc_buf_fini(&text);
    }
    return TC_PICK_COMPLETE;
}

static void pf_picker_free(struct tc_picker *picker)
{
    struct pf_picker *pp = (struct pf_picker *)picker;
    if (pp->owner)
        pp->owner->published = NULL;
    tc_free(pp);
}

static const struct tc_picker_ops pf_picker_ops = {pf_pick, pf_picker_free};

static void unpublish(struct pick_first *p)
{
    if (p->published) {
        p->published->owner = NULL;
        p->published->sc = NULL;
    }
    p->published = NULL;
}

static struct tc_picker *live_picker(struct pick_first *p)
{
    struct pf_picker *pp = TC_NEW(struct pf_picker);
    pp->base.ops = &pf_picker_ops;
    tc_lref_init(&pp->base.ref);
    pp->owner = p;
    pp->sc = p->selected ? p->selected->sc : NULL;
    p->published = pp;
    return &pp->base;
}

/* The last thing that an event does: what is above may end the policy from inside. status: of TRANSIENT_FAILURE. */
static void report(struct pick_first *p, enum torc_connectivity state, const struct tc_status *status)
{
    static const struct tc_status ok = {0};
    unpublish(p);
    p->state = state;
    struct tc_picker *picker = state == TORC_TRANSIENT_FAILURE ? tc_picker_fail(status)
                               : state == TORC_CONNECTING      ? tc_picker_queue()
                                                               : live_picker(p);
    p->base.helper->ops->update_state(p->base.helper, state, status ? status : &ok, picker);
}

static void report_failure(struct pick_first *p)
{
    const char *error = tc_status_text(&p->last_error);
    struct tc_status status =
        p->petiole ? tc_lb_status_with_note("", error, p->note)
                   : tc_lb_status_with_note("failed to connect to all addresses; last error:", error, p->note);
    report(p, TORC_TRANSIENT_FAILURE, &status);
    tc_status_fini(&status);
}

/* Subchannels. */

static void release(struct sub *s)
{
    if (s->sc)
        tc_subchannel_release(s->sc);
    s->sc = NULL;
    s->state = TORC_IDLE;
}

static void sub_free(struct sub *s)
{
    if (!s)
        return;
    release(s);
    tc_endpoint_unref(s->endpoint);
    tc_free(s);
}

static struct sub *sub_new(struct pick_first *p, const struct tc_addr_list_entry *entry)
{
    struct sub *s = TC_NEW(struct sub);
    s->owner = p;
    s->endpoint = tc_endpoint_ref(entry->endpoint);
    s->addr = entry->addr;
    s->state = TORC_IDLE;
    return s;
}

static void on_subchannel_state(void *arg, enum torc_connectivity state, const struct tc_status *status);

static void open_and_connect(struct sub *s)
{
    struct tc_lb_helper *h = s->owner->base.helper;
    if (!s->sc)
        s->sc = h->ops->create_subchannel(h, s->endpoint, s->addr, on_subchannel_state, s);
    tc_subchannel_connect(s->sc);
}

static void drop_list(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    for (size_t i = 0; i < p->n; i++)
        sub_free(p->subs[i]);
    tc_free(p->subs);
    sub_free(p->renewed);
    p->subs = NULL;
    p->selected = p->renewed = NULL;
    p->n = p->next = 0;
}

/* The first pass (A61, Happy Eyeballs). */

static void end_pass(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    p->pass_done = true;
    p->next = p->n;
    p->failures = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->subs[i]->state == TORC_IDLE)
            open_and_connect(p->subs[i]);
    p->base.helper->ops->request_reresolution(p->base.helper);
    report_failure(p);
}

static void attempt_next(struct pick_first *p)
{
    uint64_t delay_ms = p->base.helper->env->connection_attempt_delay_ms;
    while (p->next < p->n) {
        struct sub *s = p->subs[p->next++];
        s->tried = true;
        if (s->state == TORC_TRANSIENT_FAILURE) {
            /* A61: in backoff, which counts as tried. */
            p->failures += !s->failed;
            s->failed = true;
            continue;
        }
        open_and_connect(s);
        if (p->next < p->n)
            tc_timer_start(&p->attempt_timer, TC_MIN(TC_MAX(delay_ms, MIN_DELAY_MS), MAX_DELAY_MS));
        return;
    }
    if (p->failures == p->n)
        end_pass(p);
}

static void on_attempt_timer(struct tc_timer *timer)
{
    attempt_next(TC_CONTAINER_OF(timer, struct pick_first, attempt_timer));
}

static void start_pass(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    p->pass_done = false;
    p->next = 0;
    p->failures = 0;
    for (size_t i = 0; i < p->n; i++)
        p->subs[i]->tried = p->subs[i]->failed = false;
    /* A62: TRANSIENT_FAILURE sticks until a connection is there. */
    if (p->state != TORC_TRANSIENT_FAILURE && p->state != TORC_CONNECTING) {
        report(p, TORC_CONNECTING, NULL);
        if (!p->base.helper)
            return;
    }
    attempt_next(p);
}

/* States. */

static void set_last_error(struct pick_first *p, const struct sub *s, const struct tc_status *status)
{
    struct tc_buf addr = {0};
    tc_addr_format(s->addr, &addr);
    const char *text = tc_status_text(status);
    /* The address once. */
    if (tc_slice_find(tc_slice_str(text), tc_buf_slice(&addr)) >= 0)
        tc_status_set(&p->last_error, tc_status_ref(status));
    else
        tc_status_set(&p->last_error, tc_status_make(TORC_STATUS_UNAVAILABLE, "%s: %s", tc_buf_cstr(&addr),
                                                     *text ? text : "connection failed"));
    tc_buf_fini(&addr);
}

static void report_health(struct pick_first *p, const struct tc_status *health)
{
    if (tc_status_ok(health)) {
        report(p, TORC_READY, NULL);
        return;
    }
    set_last_error(p, p->selected, health);
    report_failure(p);
}

static void on_health(void *arg, const struct tc_status *health)
{
    struct sub *s = arg;
    if (s == s->owner->selected)
        report_health(s->owner, health);
}

static void on_connected(struct pick_first *p, struct sub *s)
{
    static const struct tc_status fit;
    tc_timer_stop(&p->attempt_timer);
    for (size_t i = 0; i < p->n; i++)
        if (p->subs[i] != s)
            release(p->subs[i]);
    p->selected = s;
    /* A61: health counts below a petiole policy only, and changes nothing of the connection. */
    report_health(p, p->petiole ? tc_subchannel_watch_health(s->sc, on_health, s) : &fit);
}

static void on_failed(struct pick_first *p, struct sub *s, const struct tc_status *status)
{
    set_last_error(p, s, status);
    if (p->pass_done) {
        if (++p->failures < p->n)
            return;
        p->failures = 0;
        p->base.helper->ops->request_reresolution(p->base.helper);
        report_failure(p);
        return;
    }
    p->failures += !s->failed;
    s->failed = true;
    if (p->next > 0 && s == p->subs[p->next - 1]) {
        tc_timer_stop(&p->attempt_timer);
        attempt_next(p);
    } else if (p->failures == p->n) {
        end_pass(p);
    }
}

/* A connection that was in use is gone (GOAWAY included): IDLE until a pick asks for it. */
static void on_lost(struct pick_first *p)
{
    unpublish(p);
    for (size_t i = 0; i < p->n; i++)
        release(p->subs[i]);
    sub_free(p->renewed);
    p->selected = p->renewed = NULL;
    p->base.helper->ops->request_reresolution(p->base.helper);
    report(p, TORC_IDLE, NULL);
}

static void on_renewed_state(struct pick_first *p, enum torc_connectivity state)
{
    struct sub *s = p->renewed;
    if (state == TORC_IDLE || state == TORC_CONNECTING)
        return;
    p->renewed = NULL;
    if (state != TORC_READY) {
        sub_free(s);
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (p->subs[i] == p->selected) {
            p->subs[i] = s;
            break;
        }
    }
    struct sub *old = p->selected;
    on_connected(p, s);
    sub_free(old);
}

static void on_subchannel_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct sub *s = arg;
    struct pick_first *p = s->owner;
    s->state = state;
    if (s == p->renewed) {
        on_renewed_state(p, state);
    } else if (s == p->selected) {
        if (state != TORC_READY)
            on_lost(p);
    } else if (state == TORC_READY) {
        on_connected(p, s);
    } else if (state == TORC_TRANSIENT_FAILURE) {
        on_failed(p, s, status);
    } else if (state == TORC_IDLE && (p->pass_done || (s->tried && !s->failed))) {
        /* After the first pass each is tried again as soon as its backoff is over. In the pass it means that someone
         * else's connection went while ours was asked for. */
        open_and_connect(s);
    }
}

/* Updates. */

/* Whether a subchannel that was made for one endpoint can serve the other: weights and hash keys are no matter of it.
 */
static bool interchangeable(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    return a == b || (a->health == b->health && tc_locality_cmp(a->locality, b->locality) == 0);
}

/* Replaces the list; subchannels of addresses whose endpoint is the same as before move over. */
static void replace_list(struct pick_first *p, const struct tc_addr_list_entry *list, size_t n)
{
    struct tc_addr_map map;
    tc_addr_map_init(&map, p->n);
    for (size_t i = 0; i < p->n; i++)
        tc_addr_map_add(&map, p->subs[i]->addr, (uint32_t)i);
    struct sub **subs = tc_reallocarray(NULL, n, sizeof(struct sub *));
    struct sub *selected = NULL, *renewed = NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t at;
        struct sub *old = tc_addr_map_find(&map, list[i].addr, &at) ? p->subs[at] : NULL;
        bool same = old && interchangeable(old->endpoint, list[i].endpoint);
        if (old && (same || old == p->selected)) {
            subs[i] = old;
            p->subs[at] = NULL;
            if (old == p->selected) {
                selected = old;
                renewed = same ? NULL : sub_new(p, &list[i]);
            }
        } else {
            subs[i] = sub_new(p, &list[i]);
        }
    }
    tc_addr_map_fini(&map);
    if (p->selected && !selected)
        unpublish(p);
    drop_list(p);
    p->subs = subs;
    p->n = n;
    p->selected = selected;
    p->renewed = renewed;
}

static struct tc_status refuse_empty(struct pick_first *p)
{
    struct tc_status status = tc_lb_status_because("empty address list", p->note);
    unpublish(p);
    drop_list(p);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = NULL;
    p->base.helper->ops->request_reresolution(p->base.helper);
    report(p, TORC_TRANSIENT_FAILURE, &status);
    return status;
}

static struct tc_status pf_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct pick_first *p = (struct pick_first *)policy;
    const struct config *config = (const struct config *)update->config;
    struct tc_status ok = {0};
    if (!p->base.helper)
        return ok;
    struct tc_rstr *note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(p->note);
    p->note = note;
    p->petiole = config->petiole;
    if (!update->endpoints) {
        if (!p->endpoints)
            report(p, TORC_TRANSIENT_FAILURE, update->endpoints_error);
        return ok;
    }
    if (p->endpoints && tc_endpoints_eq(p->endpoints, update->endpoints))
        return ok;
    size_t n;
    enum tc_shuffle shuffle = !config->shuffle                     ? TC_SHUFFLE_NONE
                              : tc_pick_first_weighted_shuffling() ? TC_SHUFFLE_WEIGHTED
                                                                   : TC_SHUFFLE_EVEN;
    struct tc_rng *rng = tc_loop_rng(p->base.helper->env->loop);
    struct tc_addr_list_entry *list = tc_addr_list_new(update->endpoints, shuffle, rng, &n);
    if (!list)
        return refuse_empty(p);
    replace_list(p, list, n);
    tc_free(list);
    tc_endpoints_ref(update->endpoints);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = update->endpoints;
    if (p->renewed)
        open_and_connect(p->renewed);
    else if (!p->selected && p->state != TORC_IDLE)
        start_pass(p);
    return ok;
}

static void pf_exit_idle(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    if (p->base.helper && p->state == TORC_IDLE && p->n > 0)
        start_pass(p);
}

static void on_exit_idle_task(struct tc_task *task)
{
    pf_exit_idle(&TC_CONTAINER_OF(task, struct pick_first, exit_idle_task)->base);
}

static void pf_reset_backoff(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    for (size_t i = 0; i < p->n; i++)
        if (p->subs[i]->sc)
            tc_subchannel_reset_backoff(p->subs[i]->sc);
}

static void describe_sub(const struct sub *s, const char *key, struct tc_describe *d)
{
    struct tc_buf text = {0};
    tc_addr_format(s->addr, &text);
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "address", tc_buf_slice(&text));
    if (s->sc)
        tc_describe_state(d, "state", s->state);
    tc_describe_flag(d, "selected", s == s->owner->selected);
    tc_describe_flag(d, "tried", s->tried);
    tc_describe_flag(d, "failed", s->failed);
    tc_describe_close(d, '}');
    tc_buf_fini(&text);
}

static void pf_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct pick_first *p = (const struct pick_first *)policy;
    tc_describe_state(d, "state", p->state);
    tc_describe_flag(d, "all_failed", p->pass_done);
    if (p->state == TORC_TRANSIENT_FAILURE)
        tc_describe_text(d, "error", tc_slice_str(tc_status_text(&p->last_error)));
    tc_describe_number(d, "attempts", p->next);
    tc_describe_number(d, "failures", p->failures);
    tc_describe_timer(d, "next_attempt_ms", &p->attempt_timer);
    tc_describe_open(d, "addresses", '[');
    for (size_t i = 0; i < p->n; i++)
        describe_sub(p->subs[i], NULL, d);
    tc_describe_close(d, ']');
    if (p->renewed)
        describe_sub(p->renewed, "renewed", d);
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct pick_first, free_task));
}

static void pf_shutdown(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    if (!p->base.helper)
        return;
    struct tc_loop *loop = p->base.helper->env->loop;
    unpublish(p);
    drop_list(p);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = NULL;
    tc_rstr_unref(p->note);
    p->note = NULL;
    tc_status_fini(&p->last_error);
    tc_task_cancel(&p->exit_idle_task);
    p->base.helper = NULL;
    tc_loop_defer(loop, &p->free_task);
}

static const struct tc_lb_policy_ops pf_ops = {pf_update, pf_exit_idle, pf_reset_backoff, pf_shutdown, pf_describe};

static struct tc_lb_policy *pf_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct pick_first *p = TC_NEW(struct pick_first);
    p->base = (struct tc_lb_policy){&pf_ops, cls, helper};
    p->state = TORC_SHUTDOWN;
    tc_timer_init(&p->attempt_timer, helper->env->loop, on_attempt_timer);
    tc_task_init(&p->exit_idle_task, on_exit_idle_task);
    tc_task_init(&p->free_task, on_free);
    return &p->base;
}

/* Config. */

static struct tc_lb_config *config_new(bool shuffle, bool petiole)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_pick_first_class;
    tc_ref_init(&c->base.ref);
    c->shuffle = shuffle;
    c->petiole = petiole;
    return &c->base;
}

struct tc_lb_config *tc_pick_first_config_new(bool shuffle)
{
    return config_new(shuffle, false);
}

struct tc_lb_config *tc_pick_first_config_new_petiole(void)
{
    return config_new(false, true);
}

bool tc_pick_first_weighted_shuffling(void)
{
    const char *value = getenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
    return value && strcmp(value, "true") == 0;
}

static struct tc_lb_config *pf_parse(const struct tc_lb_class *cls, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth, struct tc_faults *faults)
{
    (void)cls, (void)registry, (void)depth;
    size_t before = faults->count;
    bool shuffle = false;
    tc_json_get_bool(json, "shuffleAddressList", &shuffle, faults);
    return faults->count == before ? tc_pick_first_config_new(shuffle) : NULL;
}

static void pf_free_config(struct tc_lb_config *config)
{
    tc_free(config);
}

static bool pf_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    return a->shuffle == b->shuffle && a->petiole == b->petiole;
}

const struct tc_lb_class tc_pick_first_class = {
    .name = "pick_first",
    .alias = "pick_first_experimental",
    .create = pf_create,
    .parse_config = pf_parse,
    .free_config = pf_free_config,
    .equal_config = pf_equal_config,
};
