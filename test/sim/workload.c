/* The life of a run.
 *
 * Each step has random numbers of its own, made of the seed and the step's number, so that a step which is left out
 * changes nothing of what the others want to do. A step makes calls, or does something to the world, and lets time
 * pass. A calm period is longer than ORACLE_SETTLED_MS: the oracle's strict rules apply after one. At the
 * end everything is healed, and every channel must work. */
#include "sim/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/net.h"
#include "sim/oracle.h"
#include "sim/seams.h"
#include "sim/servers.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "sim/world.h"

const char *const sim_feature_names[SIM_FEATURE_ALL] = {
#define X(name, text) text,
    SIM_FEATURES(X)
#undef X
};

static unsigned below(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

static void pass_ms(uint64_t ms)
{
    sim_world_run_until(sim_now_ns() + ms * TC_NS_PER_MS);
}

/* The network's faults may come by themselves, or last; so does a change that nobody can hear of. */
static void note_disturbance(const struct sim_client *c)
{
    uint64_t at_ns = sim_net_last_fault_ns();
    oracle_disturbed(at_ns == UINT64_MAX || (c->control_plane_down && c->unheard) ? sim_now_ms()
                                                                                  : at_ns / TC_NS_PER_MS);
}

/* --- calls --- */

static void call_on_done(void *arg, const struct app_outcome *r)
{
    struct client_call *call = arg;
    char response[64] = "";
    size_t n = TC_MIN(r->response_size, sizeof(response) - 1);
    if (r->response)
        memcpy(response, r->response, n);
    note_disturbance(call->client);
    sim_story("call %llu: %d%s%s%s%s after %u attempts %s", (unsigned long long)call->id, r->code,
              r->peer[0] ? " from " : "", r->peer, r->message[0] ? ", " : "", r->message, r->attempts, response);
    call->over = true;
    oracle_call_ends(call->id,
                     &(struct oracle_outcome){.code = r->code,
                                              .message = r->message,
                                              .peer = r->peer,
                                              .response = r->response ? response : NULL,
                                              .attempts = r->attempts,
                                              .seen = servers_seen(call->id)},
                     sim_now_ms());
}

static void call_choose(struct sim_client *c, struct tc_rng *rng, struct oracle_call *o)
{
    static const int64_t timeouts_ms[] = {-1, 60000, 90000, 20000, 5000};
    static const int64_t short_ms[] = {0, 1, 20, 100, 1000};
    static const int codes[] = {3, 5, 9, 13};
    bool is_short = sim_feature_on(c, SIM_FEATURE_SHORT_DEADLINES) && below(rng, 4) == 0;
    o->service = below(rng, (unsigned)c->mesh.n_services);
    o->runtime = below(rng, (unsigned)c->n_runtimes);
    o->key = below(rng, 4) ? (int)below(rng, 16) : -1;
    o->timeout_ms =
        is_short ? short_ms[below(rng, TC_ARRAY_LEN(short_ms))] : timeouts_ms[below(rng, TC_ARRAY_LEN(timeouts_ms))];
    o->asked_code = below(rng, 16) == 0 ? codes[below(rng, TC_ARRAY_LEN(codes))] : 0;
    o->wait_for_ready = below(rng, 8) == 0;
}

static void call_start(struct sim_client *c, struct tc_rng *rng, const struct oracle_call *o)
{
    struct client_call *call = TC_NEW(struct client_call);
    char request[64], key[16];
    unsigned delay_ms = below(rng, 8) ? below(rng, 4) : below(rng, 800);
    call->client = c;
    call->id = oracle_call_begins(o, sim_now_ms());
    snprintf(request, sizeof(request), "%llu %u %d", (unsigned long long)call->id, delay_ms, o->asked_code);
    snprintf(key, sizeof(key), "key-%d", o->key);
    sim_story("call %llu to s%u on runtime %u: key %d, deadline %lld ms, the backend takes %u ms and answers %d%s",
              (unsigned long long)call->id, o->service, o->runtime, o->key, (long long)o->timeout_ms, delay_ms,
              o->asked_code, o->wait_for_ready ? ", waits for ready" : "");
    sim_count(SIM_COUNT_CALLS);
    *tc_vec_push(&c->calls) = call;
    call->app = app_call_start(c->channels[o->runtime][o->service],
                               &(struct app_call_options){.request = request,
                                                          .key = o->key >= 0 ? key : NULL,
                                                          .timeout_ms = o->timeout_ms,
                                                          .wait_for_ready = o->wait_for_ready},
                               call_on_done, call);
}

static void step_calls(struct sim_client *c, struct tc_rng *rng)
{
    unsigned n = 1 + below(rng, 6);
    for (unsigned i = 0; i < n; i++) {
        struct oracle_call o = {0};
        call_choose(c, rng, &o);
        call_start(c, rng, &o);
    }
}

/* Forgets the calls that are over, so that few are left to choose from. */
static void calls_sweep(struct sim_client *c, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->calls.len; i++) {
        struct client_call *call = c->calls.data[i];
        if (!call->over && !call->freed && !all) {
            c->calls.data[kept++] = call;
            continue;
        }
        if (!call->freed)
            app_call_free(call->app);
        tc_free(call);
    }
    c->calls.len = kept;
}

static struct client_call *call_running(struct sim_client *c, struct tc_rng *rng)
{
    uint64_t which = tc_rng_u64(rng);
    calls_sweep(c, false);
    return c->calls.len > 0 ? c->calls.data[which % c->calls.len] : NULL;
}

static void step_cancel(struct sim_client *c, struct tc_rng *rng)
{
    struct client_call *call = call_running(c, rng);
    if (!call)
        return;
    sim_story("call %llu is cancelled", (unsigned long long)call->id);
    oracle_call_cancelled(call->id);
    app_call_cancel(call->app);
}

static void step_free(struct sim_client *c, struct tc_rng *rng)
{
    struct client_call *call = call_running(c, rng);
    if (!call)
        return;
    sim_story("call %llu is freed", (unsigned long long)call->id);
    sim_count(SIM_COUNT_CALLS_FREED);
    oracle_call_freed(call->id);
    app_call_free(call->app);
    /* The memory stays, for an outcome that must not come. */
    call->freed = true;
}

/* --- steps --- */

static void step_calm(struct sim_client *c, struct tc_rng *rng)
{
    const uint64_t period_ms = ORACLE_SETTLED_MS + 10000;
    uint64_t before[SIM_HOSTS];
    sim_story("calm for %llu s", (unsigned long long)(period_ms / 1000));
    sim_count(SIM_COUNT_CALMS);
    pass_ms(ORACLE_SETTLED_MS);
    for (unsigned h = 0; h < c->mesh.n_hosts; h++)
        before[h] = sim_host_attempts(sim_host_address(h));
    pass_ms(period_ms - ORACLE_SETTLED_MS);
    note_disturbance(c);
    for (unsigned h = 0; oracle_settled(sim_now_ms()) && h < c->mesh.n_hosts; h++)
        oracle_attempts(h, sim_host_attempts(sim_host_address(h)) - before[h], period_ms - ORACLE_SETTLED_MS,
                        (unsigned)c->n_runtimes);
    step_calls(c, rng);
    step_calls(c, rng);
    pass_ms(1000);
}

static void step(struct sim_client *c, unsigned number)
{
    struct tc_rng rng;
    tc_rng_init_seed(&rng, c->run->seed * UINT64_C(0x9e3779b97f4a7c15) + number + 1);
    unsigned kind = below(&rng, 100);
    if (kind < 60)
        step_calls(c, &rng);
    else if (kind < 76)
        sim_step_fault(c, &rng);
    else if (kind < 88)
        sim_step_change(c, &rng);
    else if (kind < 91 && sim_feature_on(c, SIM_FEATURE_CANCELS))
        step_cancel(c, &rng);
    else if (kind < 93 && sim_feature_on(c, SIM_FEATURE_FREES))
        step_free(c, &rng);
    else if (kind < 97)
        step_calm(c, &rng);
    pass_ms(below(&rng, 4) ? below(&rng, 20) : below(&rng, 3000));
}

/* --- beginning and end --- */

static void client_begin(struct sim_client *c)
{
    const struct app_channel_options o = {
        .bootstrap = "{\"xds_servers\": [{\"server_uri\": \"" SIM_CONTROL_PLANE "\", \"channel_creds\": [{\"type\": "
                     "\"insecure\"}], \"server_features\": [\"xds_v3\"]}], \"node\": {\"id\": \"sim\"}}",
        .backoff_max_ms = 4000,
        .connect_timeout_ms = c->connect_timeout_ms,
        .keepalive_time_ms = 10000,
        .keepalive_timeout_ms = 2000,
    };
    c->n_runtimes = sim_feature_on(c, SIM_FEATURE_DOMAIN) ? SIM_RUNTIMES : 1;
    c->domain = c->n_runtimes > 1 ? app_domain_new() : NULL;
    for (size_t r = 0; r < c->n_runtimes; r++) {
        c->runtimes[r] = app_runtime_new(c->domain);
        for (unsigned s = 0; s < c->mesh.n_services; s++) {
            char target[16];
            snprintf(target, sizeof(target), "xds:///s%u", s);
            c->channels[r][s] = app_channel_new(c->runtimes[r], target, &o);
        }
    }
    app_domain_free(c->domain);
}

/* Every channel makes a call to each service: what it needs it has from then on. */
static void client_warm_up(struct sim_client *c, struct tc_rng *rng)
{
    for (unsigned i = 0; i < c->n_runtimes * 4; i++)
        for (unsigned s = 0; s < c->mesh.n_services; s++)
            call_start(c, rng,
                       &(struct oracle_call){
                           .service = s, .runtime = i % (unsigned)c->n_runtimes, .key = (int)i, .timeout_ms = -1});
    pass_ms(5000);
}

static void client_end(struct sim_client *c)
{
    calls_sweep(c, false);
    for (size_t r = 0; r < c->n_runtimes; r++)
        for (unsigned s = 0; s < c->mesh.n_services; s++)
            app_channel_free(c->channels[r][s]);
    pass_ms(100);
    calls_sweep(c, true);
    for (size_t r = 0; r < c->n_runtimes; r++)
        app_runtime_free(c->runtimes[r]);
    tc_vec_fini(&c->calls);
}

static void net_begin(struct sim_client *c, struct tc_rng *rng)
{
    struct sim_net_options o = {.delay_min_us = 50, .buffer_bytes = 1 << 18};
    o.delay_max_us = o.delay_min_us + below(rng, 20000);
    o.cut_per_mille = sim_feature_on(c, SIM_FEATURE_CUTS) ? below(rng, 100) : 0;
    if (sim_feature_on(c, SIM_FEATURE_SMALL_BUFFERS))
        o.buffer_bytes = 16 + below(rng, 2000);
    sim_net_begin(&o);
    sim_jobs_set_delay(sim_feature_on(c, SIM_FEATURE_SLOW_JOBS) ? 200 * TC_NS_PER_MS : 0);
    sim_cpu_set_cost(sim_feature_on(c, SIM_FEATURE_SLOW_CPU) ? 50 * TC_NS_PER_MS : 0);
}

static void client_heal_and_judge(struct sim_client *c, struct tc_rng *rng)
{
    sim_heal(c);
    /* Half-open connections of the control plane last longest: until the system gives up. */
    pass_ms(ORACLE_SETTLED_MS * 20);
    note_disturbance(c);
    client_warm_up(c, rng);
    pass_ms(ORACLE_SETTLED_MS * 2);
}

void sim_workload_run(const struct sim_run *run)
{
    struct sim_client c = {.run = run};
    struct tc_rng rng;
    tc_rng_init_seed(&rng, run->seed);
    sim_world_begin(run->seed);
    c.features = tc_rng_u64(&rng) & ~run->without;
    for (int f = 0; f < SIM_FEATURE_ALL; f++)
        sim_story("%s: %s", sim_feature_names[f], sim_feature_on(&c, (enum sim_feature)f) ? "on" : "off");
    net_begin(&c, &rng);
    sim_mesh_make(&c, &rng);
    servers_begin(c.mesh.n_hosts);
    sim_mesh_serve(&c);
    c.connect_timeout_ms = sim_feature_on(&c, SIM_FEATURE_SLOW_CONNECTS) ? 20000 : 3000;
    oracle_begin(&c.mesh, (uint64_t)c.connect_timeout_ms, sim_now_ms());
    client_begin(&c);
    client_warm_up(&c, &rng);
    for (unsigned i = 0; i < run->steps && !sim_first_violation(); i++)
        if (!run->skip[i])
            step(&c, i);
    if (!sim_first_violation())
        client_heal_and_judge(&c, &rng);
    client_end(&c);
    servers_end();
    sim_net_end();
    oracle_end();
    if (sim_world_loops() > 0)
        sim_violation("a loop is left at the end");
    sim_world_end();
}
