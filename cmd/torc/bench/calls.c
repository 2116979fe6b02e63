/* torc bench: sends RPCs and counts them.
 *
 * bench_start_call starts one RPC, unary or on a torc_stream. bench_call_ended counts the RPC in the figures of all
 * RPCs, of its stage and of its backend, and starts the next RPC in closed loop. Structs of ended RPCs are reused: in
 * the long run this file allocates nothing for an RPC but metadata with placeholders. */
#include "api/call_object.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "cli.h"

#define NAME BENCH_NAME

uint64_t bench_now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

/* --- counting --- */

struct bench_backend *bench_backend_of(struct bench *b, const char *address)
{
    struct bench_backend *at = NULL;
    HASH_FIND_STR(b->backends, address, at);
    if (!at) {
        at = TC_NEW(struct bench_backend);
        at->address = tc_strdup(address);
        HASH_ADD_KEYPTR(hh, b->backends, at->address, strlen(at->address), at);
    }
    return at;
}

bool bench_is_counted(const struct bench_call *c)
{
    return c->phase == BENCH_COUNTED && c->bench->phase == BENCH_COUNTED;
}

static void count(struct bench_counts *counts, int code, uint64_t latency_ns)
{
    counts->calls++;
    counts->by_code[code]++;
    histogram_add(&counts->latency_ns, latency_ns);
}

void bench_call_ended(struct bench_call *c, const torc_result *result)
{
    struct bench *b = c->bench;
    uint64_t now = bench_now_ns();
    int code = torc_result_code(result);
    if (c->ended && code == TORC_STATUS_CANCELLED)
        code = TORC_STATUS_OK; /* --call-duration or --call-count ended it */
    if (code < 0 || code >= BENCH_CODES)
        code = TORC_STATUS_UNKNOWN;
    if (bench_is_counted(c)) {
        uint64_t latency = now > c->begin_ns ? now - c->begin_ns : 0;
        count(&b->counts, code, latency);
        count(&bench_backend_of(b, torc_result_peer(result))->counts, code, latency);
        if (b->stages)
            count(&b->stages[c->stage].counts, code, latency);
        if (code != TORC_STATUS_OK && !b->texts[code] && *torc_result_text(result))
            b->texts[code] = tc_strdup(torc_result_text(result));
        b->over_ns = now;
    }
    b->in_flight--;
    c->next = b->free_calls;
    b->free_calls = c;
    if (b->limit && now >= b->limit_until_ns)
        bench_set_limit(b, now);
    if (b->in_flight < b->limit && now < b->end_ns && b->started < b->count && !b->refused && !b->interrupted)
        bench_start_call(b, now);
}

static void on_result(const torc_result *result, void *arg)
{
    bench_call_ended(arg, result);
}

/* --- RPCs --- */

/* Returns 0; CLI_FAILED, with the error printed, if the request cannot be made; or an error of torc_unary_async. */
static int start_unary(struct bench_call *c, torc_channel *channel)
{
    struct bench *b = c->bench;
    struct tc_slice request;
    if (!bench_request_of(b, c->i, c->i % b->requests.list.len, &request))
        return CLI_FAILED;
    return torc_unary_async(channel, b->types.path, request.data, request.len, &b->call_options, on_result, c, NULL,
                            NULL);
}

void bench_start_call(struct bench *b, uint64_t begin_ns)
{
    struct bench_call *c = b->free_calls;
    torc_metadata *own = NULL;
    if (c)
        b->free_calls = c->next;
    else
        c = TC_NEW(struct bench_call);
    *c = (struct bench_call){.bench = b, .i = b->started, .begin_ns = begin_ns, .phase = b->phase};
    if (b->stages)
        c->stage = (uint32_t)bench_plan_stage(b->plan, begin_ns - b->begin_ns);
    if (b->args.request.headers.rpc.differ)
        b->call_options.metadata = own = headers_make(&b->args.request.headers.rpc, c->i, &b->rng);
    torc_channel *channel = b->channels[b->started % b->args.channels];
    int rc = b->streams ? bench_start_stream(c, channel) : start_unary(c, channel);
    torc_metadata_free(own);
    if (rc != 0) {
        if (rc < 0)
            connect_call_refused(NAME, b->types.path, rc);
        b->refused = true;
        tc_free(c);
        return;
    }
    b->started++;
    if (++b->in_flight > b->most_in_flight)
        b->most_in_flight = b->in_flight;
}

void bench_calls_fini(struct bench *b)
{
    struct bench_backend *at, *next;
    while (b->free_calls) {
        struct bench_call *c = b->free_calls;
        b->free_calls = c->next;
        tc_free(c);
    }
    HASH_ITER(hh, b->backends, at, next)
    {
        HASH_DELETE(hh, b->backends, at);
        histogram_fini(&at->counts.latency_ns);
        tc_free(at->address);
        tc_free(at->locality);
        tc_free(at);
    }
    histogram_fini(&b->counts.latency_ns);
    histogram_fini(&b->message_ns);
    bench_timers_fini(&b->timers);
    for (int i = 0; i < BENCH_CODES; i++)
        tc_free(b->texts[i]);
    for (size_t i = 0; b->stages && i < b->args.plan.stages.len; i++)
        histogram_fini(&b->stages[i].counts.latency_ns);
    tc_free(b->stages);
}
