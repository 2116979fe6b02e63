/* pick_first (A61, A62): tries the addresses of its list and uses the first connection that is READY.
 *
 *   IDLE                waits for a pick or exit_idle.
 *   CONNECTING          the first pass (Happy Eyeballs): one address after the other. The next address is tried when
 *                       the latest attempt fails, or after the Connection Attempt Delay. The first READY address is
 *                       selected, all others are released. Also: the health of the endpoint of `selected` is not known
 *                       yet (below a petiole policy).
 *   READY               uses `selected`. When its connection is lost: IDLE; or a new first pass, where the subchannel
 *                       did not become IDLE (A105).
 *   TRANSIENT_FAILURE   every address failed in the pass. Then each address is tried again whenever its own backoff is
 *                       over. The state sticks until a connection can be used (A62), also while a new list has its
 *                       first pass. Also: there are no addresses, or the endpoint of `selected` is unfit (below a
 *                       petiole policy). An unfit endpoint keeps its connection. If that connection is lost and the
 *                       subchannel becomes IDLE, the policy becomes IDLE.
 *
 * The picker of IDLE, CONNECTING and READY points back to the policy (its `owner`): to ask for a connection in IDLE,
 * and for the texts of a traced pick. The policy points to that picker (`published`). It detaches the picker before
 * each report, and before it releases the subchannel that the picker holds. In READY a pick without a trace reads the
 * picker alone.
 *
 * A new list keeps the subchannel of an address whose old and new endpoint are alike in what a subchannel depends on
 * (pf_endpoints_interchangeable). If they differ for the selected address, `renewed` connects the address again beside
 * the old connection, and takes over once READY. The policy owns its addresses, and each of them its subchannel. */
#include "lb/policies/pick_first.h"

#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "lb/address_list.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/resolution_note.h"

/* A61: the bounds of the Connection Attempt Delay. */
enum { MIN_DELAY_MS = 100, MAX_DELAY_MS = 2000 };

struct pf_config {
    struct tc_lb_config base;
    bool shuffle;
    bool petiole; /* the parent is a petiole policy (A61), which words the failures */
};

struct pick_first;

/* One address of the list. Its subchannel is made when the address is first tried. */
struct pf_address {
    struct pick_first *owner;
    struct tc_endpoint *endpoint; /* a reference; addr points into it */
    const struct tc_addr *addr;
    struct tc_subchannel *sc;     /* NULL: not tried, or released */
    enum torc_connectivity state; /* of `sc`; IDLE without one */
    bool tried;                   /* in the present pass */
    bool failed;                  /* in the present pass */
    bool outdated;                /* `sc` was made for an endpoint with other attributes */
};

struct pf_picker {
    struct tc_picker base;
    struct pick_first *owner; /* NULL once detached (pf_picker_detach) */
    /* The selected subchannel, kept here since with many endpoints each step to another object is a cache miss. NULL:
     * the policy was not READY when it made the picker, or `owner` is NULL. */
    struct tc_subchannel *sc;
};

struct pick_first {
    struct tc_lb_policy base;
    struct tc_endpoints *endpoints;  /* the last list, a reference; NULL before the first and after an empty one */
    enum tc_shuffle shuffle;         /* how the last list was shuffled */
    struct tc_rstr *resolution_note; /* of the last update, a reference; NULL: none */
    bool petiole;                    /* of the last config */
    struct pf_address **addresses;   /* n of them, owned, in the order of the pass */
    size_t n;
    size_t next;     /* the address that the first pass tries next; n after the last */
    bool pass_done;  /* the last pass ended because every address failed: until one is selected, each is tried whenever
                        its backoff is over (A61) */
    size_t failures; /* addresses that failed in the first pass; later: failures since the last re-resolution request */
    struct pf_address *selected; /* one of `addresses`, whose connection is in use; NULL: none */
    /* The selected address again, for an endpoint with new attributes; takes over once READY. Owned, and not one of
     * `addresses`. NULL: none. */
    struct pf_address *renewed;
    enum torc_connectivity state; /* as reported; TORC_CONNECTIVITY_SHUTDOWN: nothing yet */
    /* Why an address last failed or was unfit, or why there is no list. OK: nothing has failed yet. */
    struct tc_status last_error;
    struct pf_picker *published; /* the picker whose `owner` is this policy; borrowed; NULL: no picker has it */
    struct tc_timer attempt_timer;
    struct tc_task exit_idle_task;
};

/* --- pickers --- */

/* Returns the subchannel that picks wait for in CONNECTING: the selected one, or that of the last address that the pass
 * has tried and that has not failed. */
static struct tc_subchannel *pf_awaited(const struct pick_first *p)
{
    if (p->selected)
        return p->selected->sc;
    for (size_t i = p->next; i-- > 0;)
        if (!p->addresses[i]->failed)
            return p->addresses[i]->sc;
    return NULL;
}

/* In IDLE asks for a connection, unless the pick is dry. `p` is NULL once the picker is detached. */
static enum tc_pick_kind pf_pick_unconnected(struct pick_first *p, const struct tc_pick_args *args)
{
    if (p && p->state == TORC_CONNECTIVITY_IDLE && !args->dry)
        tc_loop_defer(p->base.helper->env->loop, &p->exit_idle_task);
    if (TC_UNLIKELY(args->trace != NULL) && p && p->state == TORC_CONNECTIVITY_CONNECTING)
        args->trace->awaited = pf_awaited(p);
    return TC_PICK_QUEUE;
}

static enum tc_pick_kind pf_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct pf_picker *pp = (struct pf_picker *)picker;
    if (TC_UNLIKELY(!pp->sc))
        return pf_pick_unconnected(pp->owner, args);
    out->subchannel = pp->sc;
    if (TC_UNLIKELY(args->trace != NULL)) {
        args->trace->endpoint = tc_pick_trace_addr(args->trace->arena, pp->owner->selected->addr);
        if (args->trace->policy.len == 0)
            args->trace->policy = tc_slice_str("pick_first");
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

/* Detaches the published picker, if there is one: its picks queue until the next picker is published. */
static void pf_picker_detach(struct pick_first *p)
{
    if (p->published) {
        p->published->owner = NULL;
        p->published->sc = NULL;
    }
    p->published = NULL;
}

static struct tc_picker *pf_picker_new(struct pick_first *p)
{
    struct pf_picker *pp = TC_NEW(struct pf_picker);
    tc_picker_init(&pp->base, &pf_picker_ops);
    pp->owner = p;
    pp->sc = p->selected && p->state == TORC_CONNECTIVITY_READY ? p->selected->sc : NULL;
    p->published = pp;
    return &pp->base;
}

/* Publishes the state with a new picker. The parent may shut the policy down from inside: an event calls this last, or
 * looks at base.helper afterwards. `status` is for TRANSIENT_FAILURE; otherwise NULL. */
static void pf_report(struct pick_first *p, enum torc_connectivity state, const struct tc_status *status)
{
    static const struct tc_status ok = {0};
    pf_picker_detach(p);
    p->state = state;
    struct tc_picker *picker = state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? tc_picker_fail(status) : pf_picker_new(p);
    tc_lb_update_state(p->base.helper, state, status ? status : &ok, picker);
}

/* A62: TRANSIENT_FAILURE sticks until a connection can be used. */
static void pf_report_connecting(struct pick_first *p)
{
    if (p->state != TORC_CONNECTIVITY_TRANSIENT_FAILURE && p->state != TORC_CONNECTIVITY_CONNECTING)
        pf_report(p, TORC_CONNECTIVITY_CONNECTING, NULL);
}

static void pf_report_failure(struct pick_first *p)
{
    struct tc_status status =
        p->petiole ? tc_lb_status_with_resolution_note("", &p->last_error, p->resolution_note)
                   : tc_lb_status_with_resolution_note(
                         "failed to connect to all addresses; last error:", &p->last_error, p->resolution_note);
    pf_report(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status);
    tc_status_fini(&status);
}

/* --- subchannels --- */

static void pf_address_release(struct pf_address *s)
{
    if (s->sc)
        tc_subchannel_release(s->sc);
    s->sc = NULL;
    s->outdated = false;
    s->state = TORC_CONNECTIVITY_IDLE;
}

static void pf_address_free(struct pf_address *s)
{
    if (!s)
        return;
    pf_address_release(s);
    tc_endpoint_unref(s->endpoint);
    tc_free(s);
}

static struct pf_address *pf_address_new(struct pick_first *p, const struct tc_addr_list_entry *entry)
{
    struct pf_address *s = TC_NEW(struct pf_address);
    s->owner = p;
    s->endpoint = tc_endpoint_ref(entry->endpoint);
    s->addr = entry->addr;
    s->state = TORC_CONNECTIVITY_IDLE;
    return s;
}

static void on_subchannel_state(void *arg, enum torc_connectivity state, const struct tc_status *status);

static void pf_address_connect(struct pf_address *s)
{
    struct tc_lb_helper *h = s->owner->base.helper;
    if (!s->sc)
        s->sc = tc_lb_create_subchannel(h, s->endpoint, s->addr, on_subchannel_state, s);
    tc_subchannel_connect(s->sc);
}

/* Frees all addresses with their subchannels, and ends the pass. The caller has detached the picker if it holds one of
 * these subchannels. */
static void pf_drop_addresses(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    for (size_t i = 0; i < p->n; i++)
        pf_address_free(p->addresses[i]);
    tc_free(p->addresses);
    pf_address_free(p->renewed);
    p->addresses = NULL;
    p->selected = p->renewed = NULL;
    p->n = p->next = 0;
}

/* --- the first pass (A61, Happy Eyeballs) --- */

/* Every address has failed. Asks for new addresses and reports the failure. From now on each address is tried again
 * whenever its backoff is over. */
static void pf_end_pass(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    p->pass_done = true;
    p->next = p->n;
    p->failures = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->addresses[i]->state == TORC_CONNECTIVITY_IDLE)
            pf_address_connect(p->addresses[i]);
    tc_lb_request_reresolution(p->base.helper);
    pf_report_failure(p);
}

/* Starts the next attempt of the pass, and the delay after which the attempt behind it starts. Skips addresses in
 * backoff. Ends the pass if no address is left to try and all have failed. */
static void pf_attempt_next(struct pick_first *p)
{
    uint64_t delay_ms = p->base.helper->env->connection_attempt_delay_ms;
    while (p->next < p->n) {
        struct pf_address *s = p->addresses[p->next++];
        s->tried = true;
        if (s->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
            /* A61: an address in backoff counts as tried and failed. */
            p->failures += !s->failed;
            s->failed = true;
            continue;
        }
        pf_address_connect(s);
        if (p->next < p->n)
            tc_timer_start(&p->attempt_timer, TC_MIN(TC_MAX(delay_ms, MIN_DELAY_MS), MAX_DELAY_MS));
        return;
    }
    if (p->failures == p->n)
        pf_end_pass(p);
}

static void on_attempt_timer(struct tc_timer *timer)
{
    pf_attempt_next(TC_CONTAINER_OF(timer, struct pick_first, attempt_timer));
}

/* Tries all addresses from the first on, as after a new list or IDLE. */
static void pf_start_pass(struct pick_first *p)
{
    tc_timer_stop(&p->attempt_timer);
    p->pass_done = false;
    p->next = 0;
    p->failures = 0;
    for (size_t i = 0; i < p->n; i++)
        p->addresses[i]->tried = p->addresses[i]->failed = false;
    pf_report_connecting(p);
    if (p->base.helper)
        pf_attempt_next(p);
}

/* --- states --- */

static void pf_set_last_error(struct pick_first *p, const struct pf_address *s, const struct tc_status *status)
{
    struct tc_buf addr = {0};
    tc_addr_format(s->addr, &addr);
    const char *text = tc_status_text(status);
    /* The text must name the address, but only once. */
    if (tc_slice_find(tc_slice_str(text), tc_buf_slice(&addr)) >= 0)
        tc_status_set(&p->last_error, tc_status_ref(status));
    else
        tc_status_set(&p->last_error,
                      tc_status_make(TORC_STATUS_UNAVAILABLE, status->layer ? status->layer : TORC_LAYER_CONNECT,
                                     "%s: %s", tc_buf_cstr(&addr), *text ? text : "connection failed"));
    tc_buf_fini(&addr);
}

/* The selected connection is READY: reports READY, unless the endpoint is unfit or its health is not known yet. */
static void pf_report_health(struct pick_first *p, const struct tc_status *health)
{
    if (tc_status_ok(health)) {
        pf_report(p, TORC_CONNECTIVITY_READY, NULL);
    } else if (health->code != TC_HEALTH_PENDING) {
        pf_set_last_error(p, p->selected, health);
        pf_report_failure(p);
    } else {
        pf_report_connecting(p);
    }
}

static void on_health(void *arg, const struct tc_status *health)
{
    struct pf_address *s = arg;
    if (s == s->owner->selected)
        pf_report_health(s->owner, health);
}

/* The address is READY, in the pass, after it, or as `renewed`: selects it, and releases the subchannels of all other
 * addresses. */
static void pf_address_connected(struct pick_first *p, struct pf_address *s)
{
    static const struct tc_status fit;
    tc_timer_stop(&p->attempt_timer);
    for (size_t i = 0; i < p->n; i++)
        if (p->addresses[i] != s)
            pf_address_release(p->addresses[i]);
    p->selected = s;
    p->pass_done = false;
    /* A61: health counts below a petiole policy only. An unfit endpoint keeps its connection. */
    pf_report_health(p, p->petiole ? tc_subchannel_watch_health(s->sc, on_health, s) : &fit);
}

/* An attempt failed. In the pass the next address is tried at once, if the failed attempt was the latest. After the
 * pass, each n-th failure (of n addresses) asks for new addresses and reports the failure again. */
static void pf_address_failed(struct pick_first *p, struct pf_address *s, const struct tc_status *status)
{
    pf_set_last_error(p, s, status);
    if (p->pass_done) {
        if (++p->failures < p->n)
            return;
        p->failures = 0;
        tc_lb_request_reresolution(p->base.helper);
        pf_report_failure(p);
        return;
    }
    p->failures += !s->failed;
    s->failed = true;
    if (p->next > 0 && s == p->addresses[p->next - 1]) {
        tc_timer_stop(&p->attempt_timer);
        pf_attempt_next(p);
    } else if (p->failures == p->n) {
        pf_end_pass(p);
    }
}

/* Gives up `renewed`, if there is one. The selected address takes over the endpoint of `renewed`, but keeps its own
 * subchannel: only a subchannel that is made later is for the new endpoint. */
static void pf_renewed_drop(struct pick_first *p)
{
    struct pf_address *s = p->renewed;
    p->renewed = NULL;
    if (!s)
        return;
    tc_endpoint_unref(p->selected->endpoint);
    p->selected->endpoint = tc_endpoint_ref(s->endpoint);
    p->selected->addr = s->addr;
    p->selected->outdated = true;
    pf_address_free(s);
}

/* The selected connection was lost (GOAWAY included): IDLE until a pick or exit_idle asks for another. A105: if the
 * subchannel connects again already, or failed to, starts a new pass over all addresses. */
static void pf_address_lost(struct pick_first *p, const struct tc_status *status)
{
    struct pf_address *s = p->selected;
    enum torc_connectivity state = s->state;
    bool keep = state != TORC_CONNECTIVITY_IDLE && !p->renewed && !s->outdated;
    pf_picker_detach(p);
    pf_renewed_drop(p);
    for (size_t i = 0; i < p->n; i++)
        if (p->addresses[i] != s || !keep)
            pf_address_release(p->addresses[i]);
    p->selected = NULL;
    tc_lb_request_reresolution(p->base.helper);
    if (state == TORC_CONNECTIVITY_IDLE) {
        pf_report(p, TORC_CONNECTIVITY_IDLE, NULL);
        return;
    }
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        pf_set_last_error(p, s, status);
    pf_start_pass(p);
}

/* The state of `renewed`, the second connection to the selected address. If it fails, the old connection goes on. */
static void on_renewed_state(struct pick_first *p, enum torc_connectivity state)
{
    struct pf_address *s = p->renewed;
    if (state == TORC_CONNECTIVITY_IDLE || state == TORC_CONNECTIVITY_CONNECTING)
        return;
    if (state != TORC_CONNECTIVITY_READY) {
        pf_renewed_drop(p);
        return;
    }
    p->renewed = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (p->addresses[i] == p->selected) {
            p->addresses[i] = s;
            break;
        }
    }
    struct pf_address *old = p->selected;
    pf_address_connected(p, s);
    pf_address_free(old);
}

static void on_subchannel_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct pf_address *s = arg;
    struct pick_first *p = s->owner;
    s->state = state;
    if (s == p->renewed) {
        on_renewed_state(p, state);
    } else if (s == p->selected) {
        if (state != TORC_CONNECTIVITY_READY)
            pf_address_lost(p, status);
    } else if (state == TORC_CONNECTIVITY_READY) {
        pf_address_connected(p, s);
    } else if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        pf_address_failed(p, s, status);
    } else if (state == TORC_CONNECTIVITY_IDLE && (p->pass_done || (s->tried && !s->failed))) {
        /* After the pass: the backoff of the address is over. In the pass: this is the first report of a subchannel
         * that was asked to connect already, and asking again does nothing. */
        pf_address_connect(s);
    }
}

/* --- updates --- */

/* Returns whether a subchannel made for one of the endpoints can serve the other. Weights and hash keys do not concern
 * a subchannel; the hostname does (A81: the authority of RPCs, A101: SNI). */
static bool pf_endpoints_interchangeable(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    return a == b || (a->health == b->health && tc_locality_cmp(a->locality, b->locality) == 0 &&
                      tc_slice_eq(tc_rstr_slice(a->hostname), tc_rstr_slice(b->hostname)));
}

/* Replaces the list. An address that stays keeps its subchannel if its old and its new endpoint are interchangeable.
 * The selected address, if it stays, keeps its subchannel in any case; if its endpoints are not interchangeable,
 * `renewed` is made, which the caller connects. Frees the addresses that left. Borrows `list` for the call. */
static void pf_replace_addresses(struct pick_first *p, const struct tc_addr_list_entry *list, size_t n)
{
    struct tc_addr_map map;
    tc_addr_map_init(&map, p->n);
    for (size_t i = 0; i < p->n; i++)
        tc_addr_map_add(&map, p->addresses[i]->addr, (uint32_t)i);
    struct pf_address **addresses = tc_reallocarray(NULL, n, sizeof(struct pf_address *));
    struct pf_address *selected = NULL, *renewed = NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t at;
        struct pf_address *old = tc_addr_map_find(&map, list[i].addr, &at) ? p->addresses[at] : NULL;
        bool same = old && pf_endpoints_interchangeable(old->endpoint, list[i].endpoint);
        if (old && (same || old == p->selected)) {
            addresses[i] = old;
            p->addresses[at] = NULL;
            if (old == p->selected) {
                selected = old;
                renewed = same ? NULL : pf_address_new(p, &list[i]);
            }
        } else {
            addresses[i] = pf_address_new(p, &list[i]);
        }
    }
    tc_addr_map_fini(&map);
    if (p->selected && !selected)
        pf_picker_detach(p);
    pf_drop_addresses(p);
    p->addresses = addresses;
    p->n = n;
    p->selected = selected;
    p->renewed = renewed;
}

static void pf_report_no_list(struct pick_first *p, const struct tc_status *why)
{
    tc_status_set(&p->last_error, tc_status_ref(why));
    pf_report(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, why);
}

/* An empty list ends the use of the old list. Returns the refusal; the caller ends the status. */
static struct tc_status pf_refuse_empty(struct pick_first *p)
{
    struct tc_status status = tc_lb_status_because("empty address list", p->resolution_note);
    pf_picker_detach(p);
    pf_drop_addresses(p);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = NULL;
    tc_lb_request_reresolution(p->base.helper);
    pf_report_no_list(p, &status);
    return status;
}

static struct tc_status pf_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct pick_first *p = (struct pick_first *)policy;
    const struct pf_config *config = (const struct pf_config *)update->config;
    struct tc_status ok = {0};
    if (!p->base.helper)
        return ok;
    bool note_changed = !tc_rstr_eq(p->resolution_note, update->resolution_note);
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(p->resolution_note);
    p->resolution_note = resolution_note;
    p->petiole = config->petiole;
    if (!update->endpoints) { /* a failed resolution: the addresses that are known stay in use */
        if (!p->endpoints)
            pf_report_no_list(p, update->endpoints_error);
        return ok;
    }
    size_t n;
    enum tc_shuffle shuffle = !config->shuffle                     ? TC_SHUFFLE_NONE
                              : tc_pick_first_weighted_shuffling() ? TC_SHUFFLE_WEIGHTED
                                                                   : TC_SHUFFLE_EVEN;
    if (p->endpoints && p->shuffle == shuffle && tc_endpoints_eq(p->endpoints, update->endpoints)) {
        if (note_changed && p->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
            pf_report_failure(p); /* A88: the text has the note */
        return ok;
    }
    p->shuffle = shuffle;
    struct tc_rng *rng = tc_loop_rng(p->base.helper->env->loop);
    struct tc_addr_list_entry *list = tc_addr_list_new(update->endpoints, shuffle, rng, &n);
    if (!list)
        return pf_refuse_empty(p);
    if (!p->endpoints)
        tc_status_fini(&p->last_error); /* that there was no list */
    pf_replace_addresses(p, list, n);
    tc_free(list);
    tc_endpoints_ref(update->endpoints);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = update->endpoints;
    if (p->renewed)
        pf_address_connect(p->renewed);
    else if (!p->selected && p->state != TORC_CONNECTIVITY_IDLE)
        pf_start_pass(p);
    return ok;
}

static void pf_exit_idle(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    if (p->base.helper && p->state == TORC_CONNECTIVITY_IDLE && p->n > 0)
        pf_start_pass(p);
}

static void on_exit_idle_task(struct tc_task *task)
{
    pf_exit_idle(&TC_CONTAINER_OF(task, struct pick_first, exit_idle_task)->base);
}

static void pf_reset_backoff(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    for (size_t i = 0; i < p->n; i++)
        if (p->addresses[i]->sc)
            tc_subchannel_reset_backoff(p->addresses[i]->sc);
}

static void pf_address_describe(const struct pf_address *s, const char *key, struct tc_describe *d)
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
    tc_describe_flag(d, "outdated", s->outdated);
    tc_describe_close(d, '}');
    tc_buf_fini(&text);
}

static void pf_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct pick_first *p = (const struct pick_first *)policy;
    tc_describe_state(d, "state", p->state);
    tc_describe_flag(d, "all_failed", p->pass_done);
    if (p->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_describe_text(d, "error", tc_slice_str(tc_status_text(&p->last_error)));
    tc_describe_number(d, "attempts", p->next);
    tc_describe_number(d, "failures", p->failures);
    tc_describe_timer(d, "next_attempt_ms", &p->attempt_timer);
    tc_describe_open(d, "addresses", '[');
    for (size_t i = 0; i < p->n; i++)
        pf_address_describe(p->addresses[i], NULL, d);
    tc_describe_close(d, ']');
    if (p->renewed)
        pf_address_describe(p->renewed, "renewed", d);
}

static void pf_shutdown(struct tc_lb_policy *policy)
{
    struct pick_first *p = (struct pick_first *)policy;
    if (!p->base.helper)
        return;
    pf_picker_detach(p);
    pf_drop_addresses(p);
    tc_endpoints_unref(p->endpoints);
    p->endpoints = NULL;
    tc_rstr_clear(&p->resolution_note);
    tc_status_fini(&p->last_error);
    tc_task_cancel(&p->exit_idle_task);
    tc_lb_policy_end(&p->base);
}

static const struct tc_lb_policy_ops pf_ops = {pf_update, pf_exit_idle, pf_reset_backoff, pf_shutdown, pf_describe};

static struct tc_lb_policy *pf_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct pick_first *p = TC_NEW(struct pick_first);
    p->base = (struct tc_lb_policy){.ops = &pf_ops, .factory = factory, .helper = helper};
    p->state = TORC_CONNECTIVITY_SHUTDOWN;
    tc_timer_init(&p->attempt_timer, helper->env->loop, on_attempt_timer);
    tc_task_init(&p->exit_idle_task, on_exit_idle_task);
    return &p->base;
}

/* --- config --- */

static struct tc_lb_config *pf_config_new(bool shuffle, bool petiole)
{
    struct pf_config *c = TC_NEW(struct pf_config);
    tc_lb_config_init(&c->base, &tc_pick_first_factory);
    c->shuffle = shuffle;
    c->petiole = petiole;
    return &c->base;
}

struct tc_lb_config *tc_pick_first_config_new(bool shuffle)
{
    return pf_config_new(shuffle, false);
}

struct tc_lb_config *tc_pick_first_config_new_petiole(void)
{
    return pf_config_new(false, true);
}

bool tc_pick_first_weighted_shuffling(void)
{
    const char *value = getenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
    return !value || strcasecmp(value, "false") != 0;
}

static struct tc_lb_config *pf_parse(const struct tc_lb_factory *factory, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth,
                                     struct tc_validation_errors *errors)
{
    (void)factory, (void)registry, (void)depth;
    size_t before = errors->count;
    bool shuffle = false;
    tc_json_get_bool(json, "shuffleAddressList", &shuffle, errors);
    return errors->count == before ? tc_pick_first_config_new(shuffle) : NULL;
}

static bool pf_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct pf_config *a = (const struct pf_config *)pa, *b = (const struct pf_config *)pb;
    return a->shuffle == b->shuffle && a->petiole == b->petiole;
}

const struct tc_lb_factory tc_pick_first_factory = {
    .name = "pick_first",
    .alias = "pick_first_experimental",
    .create = pf_create,
    .parse_config = pf_parse,
    .equal_config = pf_equal_config,
};
