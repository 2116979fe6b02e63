/* The run: clients that begin one after another, calls by the rate, and changes, phase by phase.
 *
 * A client's event is first its beginning and then each arrival of a call. An arrival draws the key and the call's
 * random number from the client's own stream, whatever the policy does. A call without a backend waits in the client.
 * If calls wait, a new picker queues the client's task, which picks again for all of them. Pickers that come before the
 * task runs do not queue it again.
 *
 * Everything happens on the thread that calls sim_run, which frees all that the run has made but the result. The memory
 * of an ended call serves a new one (sim.free_calls), and is freed when the run ends. simulate.h says what is modelled.
 */
#include <math.h>
#include <unistd.h>

#include "api/builtin.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "channel/options.h"
#include "cli.h"
#include "lb/connect_turns.h"
#include "simulate.h"
#include "testing/seams.h"
#include "testing/threads.h"

enum { SLICES = 1000 }; /* of the whole run: memory and progress are looked at between them */

struct sim_client {
    struct tc_lb_helper helper;
    struct tc_lb_env env;
    struct tc_connect_turns turns;
    struct sim *sim;
    struct tc_lb_policy *policy; /* NULL: the client has not begun */
    struct tc_picker *picker;    /* a reference; NULL: the policy has given none yet */
    struct tc_task retry_task;
    struct tc_link waiting; /* struct sim_call */
    struct tc_world_event event;
    struct tc_rng rng;
    double due_ns; /* the next arrival, in the world's time */
};

/* --- this world has neither background jobs nor threads: stubs instead of testing/seams.c and testing/threads.c --- */

bool tc_world_job_ready(void)
{
    return false;
}

bool tc_world_job_run(void)
{
    return false;
}

size_t tc_world_threads_ready(void)
{
    return 0;
}

void tc_world_thread_run(size_t which)
{
    (void)which;
}

uint64_t tc_world_threads_next_ns(void)
{
    return UINT64_MAX;
}

/* --- keys --- */

static void keys_init(struct sim *s)
{
    const struct sim_opts *o = s->opts;
    double sum = 0;
    char text[32];
    s->hashes = tc_calloc(o->keys, sizeof(*s->hashes));
    s->homes = tc_calloc(o->keys, sizeof(*s->homes));
    s->before = tc_calloc(o->keys, sizeof(*s->before));
    s->cumulative = o->zipf > 0 ? tc_calloc(o->keys, sizeof(*s->cumulative)) : NULL;
    for (uint64_t i = 0; i < o->keys; i++) {
        s->hashes[i] = tc_xxh64(text, (size_t)snprintf(text, sizeof(text), "key-%u", (unsigned)i));
        if (s->cumulative)
            s->cumulative[i] = sum += pow((double)(i + 1), -o->zipf);
    }
}

/* Always draws two numbers, so that --hot does not shift the client's other random numbers. */
static uint32_t draw_key(const struct sim *s, struct tc_rng *rng)
{
    const struct sim_opts *o = s->opts;
    bool hot = tc_rng_double(rng) < o->hot;
    double at = tc_rng_double(rng);
    if (hot)
        return (uint32_t)(at * (double)o->hot_keys);
    if (!s->cumulative)
        return (uint32_t)(at * (double)o->keys);
    size_t from = 0, to = o->keys - 1;
    at *= s->cumulative[to];
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (s->cumulative[middle] > at)
            to = middle;
        else
            from = middle + 1;
    }
    return (uint32_t)from;
}

/* --- calls --- */

/* Takes a call off the count of those that have not ended, and keeps its memory for another call. */
static void call_free(struct sim_call *call)
{
    struct sim *s = call->client->sim;
    s->active--;
    call->next = s->free_calls;
    s->free_calls = call;
}

/* Ends the call's trackers. status NULL: the pick led to no call. */
static void call_tell(struct sim_call *call, const struct tc_status *status, const struct tc_headers *trailers)
{
    struct tc_call_tracker *next;
    for (struct tc_call_tracker *t = call->trackers; t; t = next) {
        next = t->next;
        t->on_done(t, status, trailers);
    }
    call->trackers = NULL;
}

static void call_count_failed(const struct sim_call *call)
{
    struct sim *s = call->client->sim;
    if (!call->counted || !s->counts)
        return;
    s->result->failed++;
    sim_present(s)->failed++;
}

void sim_call_end(struct sim_call *call, int code, const struct tc_headers *trailers)
{
    struct tc_status status = {.code = code, .layer = TORC_LAYER_CONNECT};
    tc_list_remove(&call->link);
    tc_world_event_stop(&call->event);
    if (code != TORC_STATUS_OK)
        call_count_failed(call);
    call_tell(call, &status, trailers);
    call_free(call);
}

/* Counts a call that has got its backend, and writes its line for --calls. */
static void call_note(struct sim_call *call, struct sim_backend *b)
{
    struct sim *s = call->client->sim;
    if (!call->counted)
        return;
    b->load.calls++;
    s->homes[call->key] = (uint32_t)(b - s->backends) + 1;
    if (!s->calls)
        return;
    struct tc_buf shown = {0};
    fprintf(s->calls, "%llu,%zu,key-%u,%s\n", (unsigned long long)(tc_world_now_ns() - s->begin_ns) / 1000,
            (size_t)(call->client - s->clients), call->key, cli_shown(&shown, b->name));
    tc_buf_fini(&shown);
}

/* Picks a backend for the call, which then is served, waits in its client, or fails and ends. */
static void call_pick(struct sim_call *call)
{
    struct sim_client *c = call->client;
    struct tc_pick pick = {0};
    const struct tc_pick_args args = {
        .path = tc_slice_str("/torc.Simulate/Call"),
        .headers = &call->headers,
        .has_hash = true,
        .hash = c->sim->hashes[call->key],
        .channel_id = (uint64_t)(c - c->sim->clients),
        .random = call->random,
        .arena = &call->arena,
    };
    enum tc_pick_kind kind = c->picker ? tc_picker_pick(c->picker, &args, &pick) : TC_PICK_QUEUE;
    struct sim_backend *b = kind == TC_PICK_COMPLETE ? sim_backend_of(pick.subchannel) : NULL;
    call->trackers = pick.trackers;
    if ((kind == TC_PICK_FAIL || kind == TC_PICK_DROP) && call->counted && !c->sim->result->why)
        c->sim->result->why = tc_strdup(tc_status_text(&pick.status));
    tc_status_fini(&pick.status);
    if (b) {
        call_note(call, b);
        sim_backend_take(b, call);
    } else if (kind == TC_PICK_COMPLETE || kind == TC_PICK_QUEUE) {
        call_tell(call, NULL, NULL);
        tc_list_append(&c->waiting, &call->link);
    } else {
        call_count_failed(call);
        call_free(call);
    }
}

static void client_on_retry(struct tc_task *task)
{
    struct sim_client *c = TC_CONTAINER_OF(task, struct sim_client, retry_task);
    struct tc_link waiting, *link;
    tc_list_init(&waiting);
    tc_list_splice(&waiting, &c->waiting);
    while ((link = tc_list_pop(&waiting)))
        call_pick(TC_CONTAINER_OF(link, struct sim_call, link));
}

static void call_start(struct sim_client *c)
{
    struct sim *s = c->sim;
    struct sim_call *call = s->free_calls;
    char text[32];
    if (call) {
        s->free_calls = call->next;
        tc_arena_reset(&call->arena);
    } else {
        call = TC_NEW(struct sim_call);
        tc_arena_init(&call->arena, 512, 0);
        tc_list_init(&call->link);
        tc_world_event_init(&call->event, sim_call_on_served);
    }
    s->active++;
    call->client = c;
    call->backend = NULL;
    call->counted = s->counts;
    call->key = draw_key(s, &c->rng);
    call->random = tc_rng_u64(&c->rng);
    snprintf(text, sizeof(text), "key-%u", call->key);
    tc_headers_init(&call->headers, &call->arena);
    tc_headers_add_copy(&call->headers, tc_slice_str("key"), tc_slice_str(text));
    if (call->counted) {
        s->result->calls++;
        sim_present(s)->calls++;
    }
    call_pick(call);
}

/* --- clients --- */

static struct tc_subchannel *helper_create(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                           const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct sim *s = TC_CONTAINER_OF(h, struct sim_client, helper)->sim;
    uint32_t index = 0;
    tc_endpoint_map_find(&s->places, endpoint, &index);
    return sim_subchannel_new(&s->backends[index], endpoint, addr, on_state, arg);
}

static void helper_update(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker)
{
    struct sim_client *c = TC_CONTAINER_OF(h, struct sim_client, helper);
    (void)state, (void)status;
    tc_picker_unref(c->picker);
    c->picker = picker;
    if (!tc_list_empty(&c->waiting))
        tc_loop_defer(c->sim->loop, &c->retry_task);
}

static void helper_resolve(struct tc_lb_helper *h)
{
    (void)h;
}

static const struct tc_lb_helper_ops helper_ops = {
    .create_subchannel = helper_create, .update_state = helper_update, .request_reresolution = helper_resolve};

static void client_update(struct sim_client *c)
{
    const struct tc_lb_update update = {.endpoints = c->sim->list, .config = c->sim->config};
    struct tc_status status = c->policy->ops->update(c->policy, &update);
    tc_status_fini(&status);
}

static void client_on_arrival(struct tc_world_event *event)
{
    struct sim_client *c = TC_CONTAINER_OF(event, struct sim_client, event);
    const struct sim *s = c->sim;
    double gap_ns = 1e9 / s->opts->rate;
    c->due_ns += s->opts->even ? gap_ns : -log(1 - tc_rng_double(&c->rng)) * gap_ns;
    if (c->due_ns < (double)s->end_ns)
        tc_world_event_at(event, (uint64_t)c->due_ns);
    call_start(c);
}

static void client_on_begin(struct tc_world_event *event)
{
    struct sim_client *c = TC_CONTAINER_OF(event, struct sim_client, event);
    const struct sim *s = c->sim;
    c->policy = tc_lb_create(s->config->factory, &c->helper);
    client_update(c);
    tc_world_event_init(event, client_on_arrival);
    /* A Poisson process has no memory: the first gap is drawn as every other. --even: a random part of a gap. */
    c->due_ns = (double)(s->begin_ns - s->opts->warm_up_ns);
    double gap_ns = 1e9 / s->opts->rate, u = tc_rng_double(&c->rng);
    c->due_ns += s->opts->even ? u * gap_ns : -log(1 - u) * gap_ns;
    if (c->due_ns < (double)s->end_ns)
        tc_world_event_at(event, (uint64_t)c->due_ns);
}

static void client_init(struct sim_client *c, struct sim *s, uint64_t number)
{
    c->sim = s;
    tc_connect_turns_init(&c->turns, s->loop);
    c->env = (struct tc_lb_env){
        .loop = s->loop,
        .connect_turns = &c->turns,
        .registry = tc_builtin_policies(),
        .target = tc_slice_str("simulate:///"),
        .ring_size_cap = (uint32_t)tc_channel_default_ring_cap(),
        .ring_inline_entries = UINT32_MAX,
        .priority_failover_ms = 10000,
        .priority_retention_ms = 900000,
        .connection_attempt_delay_ms = 250,
    };
    c->helper = (struct tc_lb_helper){.ops = &helper_ops, .env = &c->env};
    tc_list_init(&c->waiting);
    tc_task_init(&c->retry_task, client_on_retry);
    tc_rng_init_seed(&c->rng, s->opts->seed + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
    tc_world_event_init(&c->event, client_on_begin);
    tc_world_event_at(&c->event, tc_world_now_ns() + number * TC_NS_PER_S / s->opts->clients);
}

static void client_fini(struct sim_client *c)
{
    struct tc_link *link;
    tc_world_event_stop(&c->event);
    while ((link = tc_list_pop(&c->waiting)))
        call_free(TC_CONTAINER_OF(link, struct sim_call, link));
    tc_task_cancel(&c->retry_task);
    if (c->policy)
        c->policy->ops->shutdown(c->policy);
    tc_picker_unref(c->picker);
    tc_task_cancel(&c->turns.end);
}

/* --- changes and phases --- */

/* Returns a copy of the tree without the absent endpoints; the caller owns the reference. */
static struct tc_endpoints *list_present(const struct sim *s, const struct tc_endpoints *from)
{
    TC_VEC(struct tc_endpoint *) at = {0};
    TC_VEC(struct tc_endpoints_child) children = {0};
    uint32_t index = 0;
    for (size_t i = 0; i < from->n; i++) {
        tc_endpoint_map_find(&s->places, from->at[i], &index);
        if (!s->backends[index].absent)
            *tc_vec_push(&at) = tc_endpoint_ref(from->at[i]);
    }
    for (size_t i = 0; i < from->n_children; i++)
        *tc_vec_push(&children) =
            (struct tc_endpoints_child){tc_rstr_ref(from->children[i].name), list_present(s, from->children[i].list)};
    struct tc_endpoints *list =
        children.len ? tc_endpoints_take_children(children.data, children.len) : tc_endpoints_take(at.data, at.len);
    if (children.len) {
        list->at = at.data;
        list->n = at.len;
    }
    return list;
}

static void list_set(struct sim *s)
{
    tc_endpoints_unref(s->list);
    s->list = list_present(s, s->opts->tree);
}

/* Takes ownership of the name. */
static void phase_begin(struct sim *s, char *name, uint64_t at_ns)
{
    *tc_vec_push(&s->result->phases) = (struct sim_phase){.name = name, .at_ns = at_ns};
}

/* Closes the present phase: counts its overload, and the keys that moved since the last phase that called them. */
static void phase_end(struct sim *s)
{
    struct sim_phase *phase = sim_present(s);
    for (size_t i = 0; i < s->opts->endpoints.len; i++)
        sim_backend_close(&s->backends[i]);
    for (size_t i = 0; i < s->opts->keys; i++) {
        if (!s->homes[i])
            continue;
        phase->keys += s->before[i] > 0;
        phase->moved += s->before[i] > 0 && s->before[i] != s->homes[i];
        s->before[i] = s->homes[i];
        s->homes[i] = 0;
    }
}

/* Applies one change. Returns true if the list of endpoints changes. */
static bool change_apply(struct sim *s, const struct sim_change *change)
{
    struct sim_backend *b = &s->backends[change->backend];
    switch (change->kind) {
    case SIM_KILL:
        sim_backend_kill(b);
        break;
    case SIM_RESTORE:
        b->dead = false;
        break;
    case SIM_SLOW:
        b->slow = change->factor;
        break;
    default:
        b->absent = change->kind == SIM_REMOVE;
        return true;
    }
    return false;
}

/* Begins a phase with the changes of one moment, from index *at on. Applies them, and moves *at past them. Gives all
 * clients the new list of endpoints, if the list changes. */
static void changes_apply(struct sim *s, size_t *at)
{
    const struct sim_opts *o = s->opts;
    uint64_t at_ns = o->changes.data[*at].at_ns;
    bool listed = false;
    struct tc_buf name = {0};
    for (size_t i = *at; i < o->changes.len && o->changes.data[i].at_ns == at_ns; i++) {
        const struct sim_change *change = &o->changes.data[i];
        tc_buf_printf(&name, "%s%s %s", name.len ? ", " : "", sim_change_names[change->kind],
                      s->backends[change->backend].name);
        if (change->kind == SIM_SLOW)
            tc_buf_printf(&name, "=%g", change->factor);
    }
    phase_begin(s, tc_buf_take(&name), at_ns);
    for (; *at < o->changes.len && o->changes.data[*at].at_ns == at_ns; ++*at)
        listed |= change_apply(s, &o->changes.data[*at]);
    if (!listed)
        return;
    list_set(s);
    for (size_t i = 0; i < o->clients; i++)
        client_update(&s->clients[i]);
}

/* --- the run --- */

/* Returns whether the process takes no more than --memory; true without /proc. check_sizes (args.c) cannot foresee the
 * tables of policies and calls that pile up, so the process is measured. */
static bool memory_suffices(const struct sim *s)
{
    unsigned long long pages = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    if (!in)
        return true;
    if (fscanf(in, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(in);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE) <= s->opts->memory;
}

/* Lets virtual time pass until until_ns. Stops early and returns false if the process takes too much memory. With
 * `progress`, prints on standard error how far the run is, at most every 2 seconds of real time. */
static bool run_until(struct sim *s, uint64_t until_ns, bool progress)
{
    uint64_t slice_ns = TC_MAX(s->end_ns / SLICES, UINT64_C(1)), shown_ns = tc_system_clock.monotonic_ns(NULL);
    bool fits = true;
    while (tc_world_now_ns() < until_ns && (fits = memory_suffices(s))) {
        tc_world_run_until(TC_MIN(tc_world_now_ns() + slice_ns, until_ns));
        uint64_t now_ns = tc_system_clock.monotonic_ns(NULL);
        if (!progress || now_ns - shown_ns < 2 * TC_NS_PER_S)
            continue;
        shown_ns = now_ns;
        fprintf(stderr, "torc simulate: %.0f %% of %s\n", 100.0 * (double)tc_world_now_ns() / (double)s->end_ns,
                s->result->policy);
    }
    return fits;
}

/* Ends the warm-up: calls that begin from now on count. Counters begin at 0; a backend's peak and connections begin at
 * their present values, and an overload that lasts begins now. */
static void counts_begin(struct sim *s)
{
    for (size_t i = 0; i < s->opts->endpoints.len; i++) {
        struct sim_backend *b = &s->backends[i];
        b->load = (struct sim_load){
            .peak = b->active, .connections = b->load.connections, .most_connections = b->load.connections};
        b->overloaded_since_ns = b->overloaded_since_ns ? s->begin_ns : 0;
    }
    *sim_present(s) = (struct sim_phase){.name = sim_present(s)->name};
    s->counts = true;
}

static void sim_init(struct sim *s)
{
    const struct sim_opts *o = s->opts;
    size_t present = 0, n = o->endpoints.len;
    s->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = o->seed});
    tc_world_adopt(s->loop);
    s->begin_ns = tc_world_now_ns() + TC_NS_PER_S + o->warm_up_ns;
    s->end_ns = s->begin_ns + o->duration_ns;
    s->backends = tc_calloc(n, sizeof(*s->backends));
    tc_endpoint_map_init(&s->places, n);
    for (uint32_t i = 0; i < n; i++) {
        tc_endpoint_map_add(&s->places, o->endpoints.data[i].endpoint, i);
        sim_backend_init(&s->backends[i], s, i);
        present += !s->backends[i].absent;
    }
    /* `mean`: the calls at a time of each backend, if all that are present get the same share. With Poisson arrivals
     * their standard deviation is sqrt(mean). */
    double mean = (double)o->clients * o->rate * (double)o->service_ns / 1e9 / (double)TC_MAX(present, (size_t)1);
    s->result->limit = o->capacity ? (double)o->capacity : fmax(1, fmax(2 * mean, mean + 4 * sqrt(mean)));
    keys_init(s);
    list_set(s);
    phase_begin(s, tc_strdup("start"), 0);
    s->clients = tc_calloc(o->clients, sizeof(*s->clients));
    for (uint64_t i = 0; i < o->clients; i++)
        client_init(&s->clients[i], s, i);
}

/* Stores the loads and the number of waiting calls in the result, and ends all counting. */
static void sim_take_result(struct sim *s)
{
    const struct sim_opts *o = s->opts;
    s->result->loads = tc_calloc(o->endpoints.len, sizeof(*s->result->loads));
    for (size_t i = 0; i < o->endpoints.len; i++)
        s->result->loads[i] = s->backends[i].load;
    for (uint64_t i = 0; i < o->clients; i++)
        TC_LIST_FOREACH(it, &s->clients[i].waiting)
    s->result->waiting += TC_CONTAINER_OF(it, struct sim_call, link)->counted;
    s->counts = false;
}

static void sim_fini(struct sim *s)
{
    const struct sim_opts *o = s->opts;
    struct sim_call *call;
    for (size_t i = 0; i < o->endpoints.len; i++)
        sim_backend_kill(&s->backends[i]);
    for (uint64_t i = 0; i < o->clients; i++)
        client_fini(&s->clients[i]);
    tc_loop_drain(s->loop);
    tc_world_release(s->loop);
    tc_loop_free(s->loop);
    while ((call = s->free_calls)) {
        s->free_calls = call->next;
        tc_arena_fini(&call->arena);
        tc_free(call);
    }
    tc_world_end();
    tc_endpoints_unref(s->list);
    tc_endpoint_map_fini(&s->places);
    tc_free(s->backends);
    tc_free(s->clients);
    tc_free(s->hashes);
    tc_free(s->cumulative);
    tc_free(s->homes);
    tc_free(s->before);
}

void sim_result_fini(struct sim_result *r)
{
    for (size_t i = 0; i < r->phases.len; i++)
        tc_free(r->phases.data[i].name);
    tc_vec_fini(&r->phases);
    tc_free(r->loads);
    tc_free(r->why);
}

int sim_run(const struct sim_opts *o, const struct sim_policy *policy, FILE *calls, struct sim_result *out)
{
    struct sim s = {.opts = o, .result = out, .config = policy->config, .calls = calls};
    bool progress = isatty(STDERR_FILENO), fits = true;
    out->policy = policy->name;
    tc_world_begin(o->seed);
    sim_init(&s);
    size_t change = 0;
    for (; change < o->changes.len && o->changes.data[change].from_start; change++)
        change_apply(&s, &o->changes.data[change]);
    fits = run_until(&s, s.begin_ns, progress);
    counts_begin(&s);
    while (fits && change < o->changes.len) {
        fits = run_until(&s, s.begin_ns + o->changes.data[change].at_ns, progress);
        phase_end(&s);
        changes_apply(&s, &change);
    }
    fits = fits && run_until(&s, s.end_ns, progress);
    phase_end(&s);
    sim_take_result(&s);
    uint64_t active = s.active;
    sim_fini(&s);
    if (!fits)
        return cli_fail(SIMULATE_COMMAND,
                        "%s takes more than %.0f MB of memory, with %llu calls at a time; see --memory, --rate, "
                        "--service and --capacity",
                        policy->name, (double)o->memory / 1e6, (unsigned long long)active);
    return 0;
}
