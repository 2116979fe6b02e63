/* The life of a run.
 *
 * Each step has its own random numbers, from the seed and the step's number, so that leaving out one step does not
 * change the numbers of the others. A step makes or ends calls, or does something to the world, and lets time pass. A
 * calm period is longer than ORACLE_SETTLED_MS: unless a fault lasts, the oracle's rules of a settled world apply after
 * it. At the end of a run without a violation the world is healed (sim_heal), and every channel must work.
 *
 * The run's state, struct sim_client, is on the stack of sim_workload_run. It owns the runtimes, the channels and the
 * calls, which client_end frees; the servers, the oracle and the world are the process's. Everything runs on the
 * world's one thread. Read sim_workload_run first, then step. */
#include "sim/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/faults.h"
#include "sim/names.h"
#include "sim/oracle.h"
#include "sim/servers.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "testing/net.h"
#include "testing/observer.h"
#include "testing/seams.h"
#include "testing/world.h"

static unsigned below(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

void sim_pass_ms(uint64_t ms)
{
    tc_world_run_until(tc_world_now_ns() + ms * TC_NS_PER_MS);
}

/* Tells the oracle of the network's last fault, which may lie ahead. A half-open connection disturbs as long as a
 * client holds it. */
static void note_faults(void)
{
    uint64_t at_ns = sim_net_last_fault_ns();
    oracle_disturbed(at_ns == UINT64_MAX ? tc_world_now_ms() : at_ns / TC_NS_PER_MS);
}

void sim_note_disturbance(const struct sim_client *c)
{
    note_faults();
    /* A change that nobody can hear of disturbs until it is heard. */
    if (c->control_plane_down && c->unheard)
        oracle_disturbed(tc_world_now_ms());
}

/* --- steps --- */

void sim_step_calm(struct sim_client *c, struct tc_rng *rng)
{
    const uint64_t period_ms = ORACLE_SETTLED_MS + 20000;
    uint64_t before[SIM_HOSTS];
    sim_story("calm for %llu s", (unsigned long long)(period_ms / 1000));
    sim_count(SIM_COUNT_CALMS);
    sim_pass_ms(ORACLE_SETTLED_MS);
    for (unsigned h = 0; h < c->mesh.n_hosts; h++)
        before[h] = tc_host_attempts(sim_host_address(h));
    sim_pass_ms(period_ms - ORACLE_SETTLED_MS);
    sim_note_disturbance(c);
    for (unsigned h = 0; oracle_settled(tc_world_now_ms()) && h < c->mesh.n_hosts; h++)
        oracle_attempts(h, tc_host_attempts(sim_host_address(h)) - before[h], period_ms - ORACLE_SETTLED_MS,
                        (unsigned)(c->n_runtimes * c->mesh.n_services));
    oracle_judge_waiting(tc_world_now_ms());
    sim_step_calls(c, rng);
    sim_step_calls(c, rng);
    sim_pass_ms(1000);
    sim_note_disturbance(c);
    if (!oracle_settled(tc_world_now_ms()))
        return;
    if (!c->control_plane_down)
        sim_show_resources(c);
    /* A valid resource from the first control plane ends the fallback (A71). */
    if (c->control_plane_down ? c->had_all && !c->unheard : !sim_lacks_listener(c))
        oracle_fallback(tc_host_connections(SIM_FALLBACK));
    else if (c->lacked && !c->unheard && sim_feature_on(c, SIM_FEATURE_FALLBACK))
        oracle_no_fallback(tc_host_connections(SIM_FALLBACK));
}

/* Makes calls, and makes calls again after outlier detection's next interval has ended. */
static void step_again(struct sim_client *c, struct tc_rng *rng)
{
    sim_step_calls(c, rng);
    sim_step_calls(c, rng);
    sim_pass_ms(SIM_OUTLIER_INTERVAL_MS + 3000);
    sim_step_calls(c, rng);
    sim_step_calls(c, rng);
    sim_pass_ms(1000);
}

/* Performs one step, of a kind that its number and the seed say, and lets at most 3 s pass after it. */
static void step(struct sim_client *c, unsigned number)
{
    struct tc_rng rng;
    tc_rng_init_seed(&rng, c->run->seed * UINT64_C(0x9e3779b97f4a7c15) + number + 1);
    unsigned kind = below(&rng, 100);
    if (kind < 1 && sim_feature_on(c, SIM_FEATURE_NEW_CHANNELS))
        sim_step_channel(c, &rng);
    else if (kind < 60)
        sim_step_calls(c, &rng);
    else if (kind < 76)
        sim_step_fault(c, &rng);
    else if (kind < 88)
        sim_step_change(c, &rng);
    else if (kind < 91 && sim_feature_on(c, SIM_FEATURE_CANCELS))
        sim_step_cancel(c, &rng);
    else if (kind < 93 && sim_feature_on(c, SIM_FEATURE_FREES))
        sim_step_free(c, &rng);
    else if (kind < 97)
        sim_step_calm(c, &rng);
    else if (kind < 98 || !sim_feature_on(c, SIM_FEATURE_SCENES))
        step_again(c, &rng);
    else
        sim_step_scene(c, &rng);
    sim_pass_ms(below(&rng, 4) ? below(&rng, 20) : below(&rng, 3000));
}

/* --- beginning and end --- */

enum { LONG_BACKOFF_MS = 30000 };

/* For a channel that hedges: writes its target into `target`, and its service config into `config`, which
 * o->service_config borrows. */
static void hedged_options(const struct sim_service *s, struct app_channel_options *o, char *config, size_t config_size,
                           char *target, size_t target_size)
{
    snprintf(target, target_size, "dns:///d%u.test:8080", s->cluster);
    snprintf(
        config, config_size,
        "{\"loadBalancingConfig\": [{\"round_robin\": {}}], \"methodConfig\": [{\"name\": [{}], \"hedgingPolicy\": "
        "{\"maxAttempts\": %u, \"hedgingDelay\": \"0.%03us\", \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}}]}",
        s->retries + 1, (unsigned)SIM_HEDGING_DELAY_MS);
    o->service_config = config;
}

static void channel_open(struct sim_client *c, unsigned runtime, unsigned service)
{
#define SERVER "{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"insecure\"}], \"server_features\": [%s]}"
    char bootstrap[512];
    static const char *const features[2][2] = {
        {"", "\"torc.incremental_ads\""},
        {"\"fail_on_data_errors\"", "\"fail_on_data_errors\", \"torc.incremental_ads\""}};
    const char *of_server =
        features[sim_feature_on(c, SIM_FEATURE_DATA_ERRORS)][sim_feature_on(c, SIM_FEATURE_INCREMENTAL)];
    bool two = sim_feature_on(c, SIM_FEATURE_FALLBACK);
    snprintf(bootstrap, sizeof(bootstrap), "{\"xds_servers\": [" SERVER "%s" SERVER "], \"node\": {\"id\": \"sim\"}}",
             SIM_CONTROL_PLANE, of_server, ", ", SIM_FALLBACK, of_server);
    if (!two)
        snprintf(bootstrap, sizeof(bootstrap), "{\"xds_servers\": [" SERVER "], \"node\": {\"id\": \"sim\"}}",
                 SIM_CONTROL_PLANE, of_server);
    struct app_channel_options o = {
        .bootstrap = bootstrap,
        .backoff_max_ms = sim_feature_on(c, SIM_FEATURE_LONG_BACKOFF) ? LONG_BACKOFF_MS : ORACLE_BACKOFF_MAX_MS,
        .connect_timeout_ms = c->connect_timeout_ms,
        .keepalive_time_ms = 10000,
        .keepalive_timeout_ms = 2000,
    };
    char target[32], config[256];
    snprintf(target, sizeof(target), "xds:///s%u", service);
    if (c->mesh.services[service].hedged)
        hedged_options(&c->mesh.services[service], &o, config, sizeof(config), target, sizeof(target));
    c->channels[runtime][service] = app_channel_new(c->runtimes[runtime], target, &o);
}

static void client_begin(struct sim_client *c)
{
    c->n_runtimes = sim_feature_on(c, SIM_FEATURE_DOMAIN) ? SIM_RUNTIMES : 1;
    c->domain = c->n_runtimes > 1 ? app_domain_new() : NULL;
    for (unsigned r = 0; r < c->n_runtimes; r++) {
        c->runtimes[r] = app_runtime_new(c->domain);
        for (unsigned s = 0; s < c->mesh.n_services; s++)
            channel_open(c, r, s);
    }
    app_domain_free(c->domain);
}

/* A new channel keeps no resource of the old one, so it is made only while it can get all that it needs. */
void sim_step_channel(struct sim_client *c, struct tc_rng *rng)
{
    unsigned r = below(rng, (unsigned)c->n_runtimes), s = below(rng, (unsigned)c->mesh.n_services);
    if (!sim_routes_may_change(c) || sim_any_name_fails(c) || c->control_plane_down)
        return;
    sim_story("the channel to s%u on runtime %u is freed, and another made", s, r);
    sim_count(SIM_COUNT_CHANNELS);
    sim_calls_lose_channel(c, r, s);
    app_channel_free(c->channels[r][s]);
    oracle_channel(r, s, tc_world_now_ms());
    channel_open(c, r, s);
    sim_call_plain(c, rng, s, r, below(rng, 16)); /* without a call it would ask for nothing */
    c->changed_ms = tc_world_now_ms();            /* it has not heard of its resources */
}

/* Every channel makes four calls, and so asks for the resources that it needs. */
static void client_warm_up(struct sim_client *c, struct tc_rng *rng)
{
    for (unsigned i = 0; i < c->n_runtimes * 4; i++)
        for (unsigned s = 0; s < c->mesh.n_services; s++)
            sim_call_plain(c, rng, s, i % (unsigned)c->n_runtimes, i);
    sim_pass_ms(5000);
}

static void client_end(struct sim_client *c)
{
    sim_calls_sweep(c, false);
    for (size_t r = 0; r < c->n_runtimes; r++)
        for (unsigned s = 0; s < c->mesh.n_services; s++)
            app_channel_free(c->channels[r][s]);
    sim_pass_ms(100);
    sim_calls_sweep(c, true);
    for (size_t r = 0; r < c->n_runtimes; r++)
        app_runtime_free(c->runtimes[r]);
    sim_calls_end(c);
}

static void net_begin(struct sim_client *c, struct tc_rng *rng)
{
    struct tc_net_options o = {.delay_min_us = 50, .buffer_bytes = 1 << 18};
    o.delay_max_us = o.delay_min_us + below(rng, 20000);
    o.cut_per_mille = sim_feature_on(c, SIM_FEATURE_CUTS) ? below(rng, 100) : 0;
    if (sim_feature_on(c, SIM_FEATURE_SMALL_BUFFERS))
        o.buffer_bytes = (sim_feature_on(c, SIM_FEATURE_STREAMS) ? 100 : 16) + below(rng, 2000);
    tc_net_begin(&o);
    tc_world_set_job_delay(sim_feature_on(c, SIM_FEATURE_SLOW_JOBS) ? 200 * TC_NS_PER_MS : 0);
    tc_world_set_cpu_cost(sim_feature_on(c, SIM_FEATURE_SLOW_CPU) ? 50 * TC_NS_PER_MS : 0);
}

static void client_heal_and_judge(struct sim_client *c, struct tc_rng *rng)
{
    sim_heal(c);
    /* Half-open connections to a control plane last longest: keepalive pings them every five minutes. */
    sim_pass_ms(ORACLE_SETTLED_MS * 20);
    sim_note_disturbance(c);
    client_warm_up(c, rng);
    sim_pass_ms(ORACLE_SETTLED_MS * 2);
    sim_show_loads();
}

static void on_seen(const struct servers_request *r)
{
    note_faults();
    if (r->refused) {
        oracle_call_refused(r->id, r->host, tc_world_now_ms());
        return;
    }
    const struct oracle_request request = {
        .host = r->host,
        .has_timeout = r->has_timeout,
        .left_ms = r->left_ns / (int64_t)TC_NS_PER_MS,
        .previous_attempts = r->previous_attempts,
        .authority = r->authority,
        .key = r->key,
    };
    oracle_call_seen(r->id, &request, tc_world_now_ms());
}

void sim_workload_run(const struct sim_run *run)
{
    struct sim_client c = {.run = run};
    struct tc_rng rng;
    tc_rng_init_seed(&rng, run->seed);
    tc_world_begin(run->seed);
    sim_faults_begin();
    sim_names_begin();
    tc_world_observe(&sim_observer);
    c.features = tc_rng_u64(&rng) & ~run->without;
    for (int f = 0; f < SIM_FEATURE_ALL; f++)
        sim_story("%s: %s", sim_feature_names[f], sim_feature_on(&c, (enum sim_feature)f) ? "on" : "off");
    net_begin(&c, &rng);
    sim_mesh_make(&c, &rng);
    servers_begin(&c.mesh, on_seen);
    sim_mesh_serve(&c);
    c.connect_timeout_ms = sim_feature_on(&c, SIM_FEATURE_SLOW_CONNECTS) ? 20000 : 3000;
    oracle_begin(&c.mesh, (uint64_t)c.connect_timeout_ms, tc_world_now_ms());
    sim_first_faults(&c, &rng);
    client_begin(&c);
    client_warm_up(&c, &rng);
    for (unsigned i = 0; i < run->steps && !sim_first_violation(); i++)
        if (!run->skip[i])
            step(&c, i);
    if (!sim_first_violation())
        client_heal_and_judge(&c, &rng);
    client_end(&c);
    servers_end();
    if (!tc_net_end())
        sim_violation("a connection is left at the end");
    oracle_end();
    if (tc_world_loops() > 0)
        sim_violation("a loop is left at the end");
    tc_world_end();
}
