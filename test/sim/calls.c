/* The calls of a run: what each asks for, its cookie and its messages, and what the oracle is told of it. Read
 * sim_call_start first.
 *
 * c is the run's struct sim_client. c->calls owns each call from sim_call_start until sim_calls_sweep frees it: `over`
 * says that its outcome came, `freed` that sim_step_free has freed the application's handle. If no step has freed the
 * handle, the sweep does. The oracle hears of a begin, a cancel and a step's free before the application does, so that
 * it knows of them when events come. The oracle's id of a call travels in the request (servers.h). c->cookies keeps
 * cookies by service and host until sim_calls_end, so that later calls can join a session.
 *
 * Everything runs on the world's one thread: steps outside the loops, events of a call in its runtime's loop, except
 * that the first messages of a stream are made inside app_call_start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sim/message.h"
#include "sim/oracle.h"
#include "sim/servers.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "testing/world.h"

static unsigned below(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

/* --- sessions --- */

/* Reads "sid=BASE64...", where BASE64 encodes "ADDRESS;cluster:cN". Stores the address's host and N; -1 for what is
 * missing or malformed. cookie may be NULL. */
static void cookie_read(const char *cookie, int *host, int *cluster)
{
    struct tc_buf raw = {0};
    *host = *cluster = -1;
    if (!cookie || strncmp(cookie, "sid=", 4) != 0)
        return;
    if (tc_base64_decode(&raw, tc_slice_of(cookie + 4, strcspn(cookie + 4, ";"))) == 0) {
        char *text = tc_strndup(tc_buf_cstr(&raw), raw.len), *rest = strchr(text, ';');
        if (rest) {
            *rest = 0;
            *host = sim_host_of(text);
            sscanf(rest + 1, "cluster:c%d", cluster);
        }
        tc_free(text);
    }
    tc_buf_fini(&raw);
}

static void cookie_keep(const struct client_call *call, const char *set_cookie)
{
    int host, cluster;
    cookie_read(set_cookie, &host, &cluster);
    if (host < 0)
        return;
    char **kept = &call->client->cookies[call->service][host];
    tc_free(*kept);
    *kept = tc_strndup(set_cookie, strcspn(set_cookie, ";"));
}

/* --- events of a call --- */

static const void *call_on_make(void *arg, unsigned index, size_t *size)
{
    const struct client_call *call = arg;
    return sim_message_write(&(struct sim_message){SIM_HOSTS, call->id, index}, call->message_size, size);
}

static void call_on_message(void *arg, const void *data, size_t size)
{
    const struct client_call *call = arg;
    struct sim_message m = {0};
    bool whole = sim_message_read(&m, data, size);
    sim_story("call %llu: message %u of host %u, %zu bytes", (unsigned long long)call->id, m.index, m.from, size);
    oracle_call_message(call->id, &(struct oracle_message){(int)m.from, m.id, m.index, whole});
}

static void call_on_done(void *arg, const struct app_outcome *r)
{
    struct client_call *call = arg;
    char response[64] = "";
    size_t n = TC_MIN(r->response_size, sizeof(response) - 1);
    struct oracle_outcome o = {.code = r->code,
                               .message = r->message,
                               .peer = r->peer,
                               .response = r->response ? response : NULL,
                               .attempts = r->attempts,
                               .seen = servers_seen(call->id),
                               .layer = r->layer};
    if (r->response)
        memcpy(response, r->response, n);
    cookie_read(r->set_cookie, &o.session, &o.session_cluster);
    cookie_keep(call, r->set_cookie);
    sim_note_disturbance(call->client);
    sim_story("call %llu: %d%s%s%s%s after %u attempts %s", (unsigned long long)call->id, r->code,
              r->peer[0] ? " from " : "", r->peer, r->message[0] ? ", " : "", r->message, r->attempts, response);
    call->over = true;
    oracle_call_ends(call->id, &o, tc_world_now_ms());
}

/* --- new calls --- */

static void call_choose(const struct sim_client *c, struct tc_rng *rng, struct oracle_call *o)
{
    static const int64_t timeouts_ms[] = {-1, 60000, 90000, 20000, 5000};
    static const int64_t short_ms[] = {0, 1, 20, 100, 1000};
    static const int codes[] = {3, 5, 9, 13}, pushbacks_ms[] = {-1, 60, 300};
    bool is_short = sim_feature_on(c, SIM_FEATURE_SHORT_DEADLINES) && below(rng, 4) == 0;
    o->service = below(rng, (unsigned)c->mesh.n_services);
    o->runtime = below(rng, (unsigned)c->n_runtimes);
    o->key = below(rng, 4) ? (int)below(rng, 16) : -1;
    o->timeout_ms =
        is_short ? short_ms[below(rng, TC_ARRAY_LEN(short_ms))] : timeouts_ms[below(rng, TC_ARRAY_LEN(timeouts_ms))];
    o->asked_code = below(rng, 16) == 0 ? codes[below(rng, TC_ARRAY_LEN(codes))] : 0;
    o->wait_for_ready = below(rng, 8) == 0;
    if (sim_feature_on(c, SIM_FEATURE_REFUSALS) && below(rng, 8) == 0)
        o->refusals = below(rng, 4) ? 1 : 2 + below(rng, 8);
    if (sim_feature_on(c, SIM_FEATURE_PUSHBACK) && below(rng, 3) == 0)
        o->pushback_ms = pushbacks_ms[below(rng, TC_ARRAY_LEN(pushbacks_ms))];
    if (sim_feature_on(c, SIM_FEATURE_STREAMS) && below(rng, 2)) {
        o->kind = (enum sim_kind)(1 + below(rng, SIM_KINDS - 1));
        o->n_messages = below(rng, 7);
    }
    unsigned host = below(rng, SIM_HOSTS * 2);
    cookie_read(host < SIM_HOSTS ? c->cookies[o->service][host] : NULL, &o->session, &o->session_cluster);
}

/* Returns the size in bytes of each message of a call. Most are small. With large buffers, a few streams have messages
 * that together may exceed the first window of an HTTP/2 stream (64 KiB). */
static size_t size_choose(const struct sim_client *c, struct tc_rng *rng)
{
    bool large = below(rng, 16) == 0 && !sim_feature_on(c, SIM_FEATURE_SMALL_BUFFERS);
    return below(rng, large ? SIM_MESSAGE_MAX : 64);
}

void sim_call_start(struct sim_client *c, struct tc_rng *rng, struct oracle_call *o)
{
    static const char *const kinds[SIM_KINDS] = {"call", "client stream", "server stream", "stream both ways"};
    static const struct app_call_events events = {call_on_make, call_on_message, call_on_done};
    struct client_call *call = TC_NEW(struct client_call);
    char request[96], key[16];
    sim_note_disturbance(c);
    o->delay_ms = below(rng, 8) ? below(rng, 4) : below(rng, 800);
    uint64_t heard_ms = TC_MAX(c->routed_ms, c->back_ms) + TIME_TO_HEAR_MS;
    o->routed = c->routed_ms == 0 || (!(c->control_plane_down && c->unheard) && heard_ms < tc_world_now_ms());
    call->client = c;
    call->service = o->service;
    call->runtime = o->runtime;
    call->message_size = size_choose(c, rng);
    call->id = oracle_call_begins(o, tc_world_now_ms());
    snprintf(request, sizeof(request), "%llu %u %d %u %zu %u %d", (unsigned long long)call->id, o->delay_ms,
             o->asked_code, o->n_messages, call->message_size, o->refusals, o->pushback_ms);
    snprintf(key, sizeof(key), "key-%d", o->key);
    sim_story(
        "%s %llu to s%u on runtime %u: key %d, deadline %lld ms, session %d, %u messages, the backend takes %u ms "
        "and answers %d%s",
        kinds[o->kind], (unsigned long long)call->id, o->service, o->runtime, o->key, (long long)o->timeout_ms,
        o->session, o->n_messages, o->delay_ms, o->asked_code, o->wait_for_ready ? ", waits for ready" : "");
    sim_count(SIM_COUNT_CALLS);
    *tc_vec_push(&c->calls) = call;
    call->app =
        app_call_start(c->channels[o->runtime][o->service],
                       &(struct app_call_options){.kind = o->kind,
                                                  .request = request,
                                                  .n_messages = o->kind == SIM_SERVER_STREAM ? 0 : o->n_messages,
                                                  .key = o->key >= 0 ? key : NULL,
                                                  .cookie = o->session >= 0 ? c->cookies[o->service][o->session] : NULL,
                                                  .timeout_ms = o->timeout_ms,
                                                  .wait_for_ready = o->wait_for_ready},
                       &events, call);
}

void sim_call_plain(struct sim_client *c, struct tc_rng *rng, unsigned service, unsigned runtime, unsigned key)
{
    sim_call_start(c, rng,
                   &(struct oracle_call){.service = service,
                                         .runtime = runtime,
                                         .key = (int)key,
                                         .session = -1,
                                         .session_cluster = -1,
                                         .pushback_ms = SIM_NO_PUSHBACK,
                                         .timeout_ms = -1});
}

void sim_step_calls(struct sim_client *c, struct tc_rng *rng)
{
    unsigned n = 1 + below(rng, 6);
    for (unsigned i = 0; i < n; i++) {
        struct oracle_call o = {.pushback_ms = SIM_NO_PUSHBACK};
        call_choose(c, rng, &o);
        sim_call_start(c, rng, &o);
    }
}

/* --- calls that run --- */

void sim_calls_sweep(struct sim_client *c, bool all)
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

void sim_calls_end(struct sim_client *c)
{
    for (unsigned s = 0; s < SIM_SERVICES; s++)
        for (unsigned h = 0; h < SIM_HOSTS; h++)
            tc_free(c->cookies[s][h]);
    tc_vec_fini(&c->calls);
}

/* Returns one of the calls that run, borrowed from c->calls; NULL: none runs. */
static struct client_call *call_running(struct sim_client *c, struct tc_rng *rng)
{
    uint64_t which = tc_rng_u64(rng);
    sim_calls_sweep(c, false);
    return c->calls.len > 0 ? c->calls.data[which % c->calls.len] : NULL;
}

void sim_step_cancel(struct sim_client *c, struct tc_rng *rng)
{
    struct client_call *call = call_running(c, rng);
    if (!call)
        return;
    sim_story("call %llu is cancelled", (unsigned long long)call->id);
    oracle_call_cancelled(call->id);
    app_call_cancel(call->app);
}

void sim_calls_lose_channel(struct sim_client *c, unsigned runtime, unsigned service)
{
    for (size_t i = 0; i < c->calls.len; i++) {
        struct client_call *call = c->calls.data[i];
        if (!call->over && !call->freed && call->runtime == runtime && call->service == service)
            oracle_call_cancelled(call->id);
    }
}

void sim_step_free(struct sim_client *c, struct tc_rng *rng)
{
    struct client_call *call = call_running(c, rng);
    if (!call)
        return;
    sim_story("call %llu is freed", (unsigned long long)call->id);
    sim_count(SIM_COUNT_CALLS_FREED);
    oracle_call_freed(call->id, tc_world_now_ms());
    app_call_free(call->app);
    /* The struct stays until the next sweep, so that an outcome, which must not come, would find it. */
    call->freed = true;
}
