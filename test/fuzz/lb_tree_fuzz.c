/* The policies of an xDS cluster (priority over outlier_detection over a policy that picks endpoints) under a sequence
 * of events. The input begins with the arguments of an update. Each further event is two bytes, with its arguments
 * behind them.
 *
 * A picked endpoint is READY in one of the zones, and no pick drops its RPC. In the end the target lets every attempt
 * and every RPC succeed (settle). Then eight picks with different hashes reach an endpoint exactly if a child of the
 * last update has one.
 *
 * The policies are real. The channel and its subchannels are fakes (support/fakes/lb.h), and time is virtual. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "lb/orca.h"
#include "lb/policies/priority.h"
#include "support/fakes/lb.h"

#define EVENTS_MAX 200
#define TRACKED_MAX 8
#define SETTLE_ROUNDS 40
#define ROUND_MS 11000 /* longer than the failover timer; all rounds together are longer than the longest ejection */

static const char *const addresses[] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3", "4.4.4.4:4", "5.5.5.5:5"};
static const char *const zones[] = {"a", "b", "c"};
enum { ADDRESSES = 5, ZONES = 3 };

#define KEEN                                                                                                           \
    "{'interval': '1s', 'baseEjectionTime': '5s', 'maxEjectionTime': '20s', 'maxEjectionPercent': 100, "               \
    "'successRateEjection': {'stdevFactor': 100, 'minimumHosts': 1, 'requestVolume': 1}, "                             \
    "'childPolicy': [{'ring_hash_experimental': {'minRingSize': 6, 'maxRingSize': 12}}]}"
#define HALF                                                                                                           \
    "{'interval': '3s', 'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 2, 'requestVolume': 2}, "       \
    "'childPolicy': [{'ring_hash_experimental': {'minRingSize': 1, 'maxRingSize': 64}}]}"
#define NEVER "{'childPolicy': [{'ring_hash_experimental': {}}]}"
#define WEIGHTED                                                                                                       \
    "{'interval': '1s', 'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 2, 'requestVolume': 2}, "       \
    "'childPolicy': [{'weighted_round_robin': {'blackoutPeriod': '1s', 'weightExpirationPeriod': '5s'}}]}"
#define OUT_OF_BAND "{'childPolicy': [{'weighted_round_robin': {'enableOobLoadReport': true}}]}"

#define TABLE "{'childPolicy': [{'maglev_experimental': {'tableSize': 13, 'hashBalanceFactor': 100}}]}"

#define LEAST                                                                                                          \
    "{'interval': '1s', 'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 2, 'requestVolume': 2}, "       \
    "'childPolicy': [{'least_request_experimental': {'selectionMethod': 'FULL_SCAN'}}]}"
#define BIASED "{'childPolicy': [{'least_request_experimental': {'activeRequestBias': 300}}]}"

static const char *const configs[] = {KEEN, HALF, NEVER, WEIGHTED, OUT_OF_BAND, TABLE, LEAST, BIASED};

struct tree {
    struct fake_lb *f;
    struct tc_call_tracker *tracked[TRACKED_MAX]; /* of open RPCs, in the arena of `f`; NULL: free */
    bool any;                                     /* a child of the last update has endpoints */
};

/* Returns the endpoints of a zone as text for fake_lb_endpoint_tree, to be freed with tc_free; empty: no endpoints. The
 * lower five bits choose the addresses, the upper three the weights. */
static char *endpoints_of(unsigned bits, unsigned zone)
{
    struct tc_buf b = {0};
    for (unsigned i = 0; i < ADDRESSES; i++)
        if (bits >> i & 1)
            tc_buf_printf(&b, "%s%s*%u@%s", b.len ? " " : "", addresses[i], 1 + (bits >> 5) * i, zones[zone]);
    return tc_buf_take(&b);
}

/* Updates the policy. Four bytes of the script choose the children (one to three zones, in the order of `zones` from
 * any of them on, "a" after "c"), their configs, and the endpoints of each zone. */
static void update(struct tree *t, struct tc_fuzz_input *in)
{
    struct tc_child_config list[ZONES] = {0};
    char *texts[ZONES];
    unsigned shape = tc_fuzz_u8(in), first = shape % ZONES, n = 1 + shape / ZONES % ZONES;
    t->any = false;
    for (unsigned z = 0; z < ZONES; z++)
        texts[z] = endpoints_of(tc_fuzz_u8(in), z);
    for (unsigned i = 0; i < n; i++) {
        unsigned z = (first + i) % ZONES;
        list[i].name = tc_rstr_str(zones[z]);
        list[i].config =
            fake_lb_config(t->f, "outlier_detection", configs[(shape / 9 + i) % TC_ARRAY_LEN(configs)], NULL);
        list[i].ignore_reresolution_requests = shape & 1;
        TC_FUZZ_CHECK(list[i].config);
        t->any |= texts[z][0] != '\0';
    }
    struct tc_lb_config *config = tc_child_configs_new(&tc_priority_factory, list, n);
    struct tc_endpoints *tree =
        fake_lb_endpoint_tree(zones[0], texts[0], zones[1], texts[1], zones[2], texts[2], (char *)NULL);
    fake_lb_update(t->f, tree, config, NULL);
    for (unsigned i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    for (unsigned z = 0; z < ZONES; z++)
        tc_free(texts[z]);
}

/* Ends an RPC with trailers that have a load report: utilization 1, QPS `code` + 1. NULL is allowed. */
static void finish(struct tc_call_tracker *tracker, int code)
{
    struct tc_status status = tc_status_make(code, TORC_LAYER_LB, "%s", code ? "failed" : "");
    char report[18] = {TC_ORCA_APPLICATION << 3 | 1, [9] = TC_ORCA_QPS << 3 | 1};
    struct tc_header field = {tc_slice_str("endpoint-load-metrics-bin"), tc_slice_of(report, sizeof(report))};
    struct tc_headers trailers = {.data = &field, .len = 1};
    memcpy(report + 1, &(double){1}, sizeof(double));
    memcpy(report + 10, &(double){code + 1}, sizeof(double));
    for (struct tc_call_tracker *next; tracker; tracker = next) {
        next = tracker->next;
        tracker->on_done(tracker, &status, &trailers);
    }
    tc_status_fini(&status);
}

/* Moves a subchannel to a possible next state, if there is one. `well`: attempts succeed, connections do not end. */
static void move(struct tree *t, const char *addr, const char *zone, bool well)
{
    enum torc_connectivity state = fake_lb_state_in(t->f, addr, zone);
    if (state == TORC_CONNECTIVITY_CONNECTING)
        fake_lb_set_in(t->f, addr, zone, well ? TORC_CONNECTIVITY_READY : TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    else if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE || (state == TORC_CONNECTIVITY_READY && !well))
        fake_lb_set_in(t->f, addr, zone, TORC_CONNECTIVITY_IDLE);
}

/* Returns true if an endpoint is picked, and asserts that it is READY. The RPC ends with `code`. If `code` is negative,
 * the RPC stays open in `tracked`, or ends with OK if all slots are taken. */
static bool pick(struct tree *t, uint64_t hash, int code)
{
    t->f->args.random = hash;
    const char *addr = fake_lb_pick_hash(t->f, hash);
    TC_FUZZ_CHECK(t->f->kind != TC_PICK_DROP);
    if (t->f->kind != TC_PICK_COMPLETE)
        return false;
    bool connected = false;
    for (unsigned z = 0; z < ZONES; z++)
        connected |= fake_lb_state_in(t->f, addr, zones[z]) == TORC_CONNECTIVITY_READY;
    TC_FUZZ_CHECK(connected);
    for (unsigned i = 0; i < TRACKED_MAX && code < 0; i++) {
        if (!t->tracked[i]) {
            t->tracked[i] = t->f->pick.trackers;
            return true;
        }
    }
    finish(t->f->pick.trackers, TC_MAX(code, 0));
    return true;
}

static void event(struct tree *t, struct tc_fuzz_input *in)
{
    uint8_t what = tc_fuzz_u8(in), at = tc_fuzz_u8(in);
    switch (what % 8) {
    case 0:
        update(t, in);
        break;
    case 1:
    case 2:
        move(t, addresses[at % ADDRESSES], zones[at / ADDRESSES % ZONES], at & 0x80);
        break;
    case 3:
        pick(t, (uint64_t)at << 56 | what, -1);
        break;
    case 4:
        pick(t, (uint64_t)at << 56 | what, what & 0x80 ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK);
        break;
    case 5:
        finish(t->tracked[at % TRACKED_MAX], at & 0x80 ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK);
        t->tracked[at % TRACKED_MAX] = NULL;
        tc_loop_drain(t->f->loop);
        break;
    case 6:
        tc_loop_advance(t->f->loop, (uint64_t)at * 100);
        break;
    default:
        if (at & 1)
            t->f->policy->ops->exit_idle(t->f->policy);
        else
            t->f->policy->ops->reset_backoff(t->f->policy);
        tc_loop_drain(t->f->loop);
        break;
    }
}

/* Lets every attempt and RPC succeed. Asserts that picks succeed then exactly if there are endpoints. */
static void settle(struct tree *t)
{
    for (unsigned i = 0; i < TRACKED_MAX; i++) {
        finish(t->tracked[i], TORC_STATUS_OK);
        t->tracked[i] = NULL;
    }
    for (unsigned round = 0; round < SETTLE_ROUNDS; round++) {
        for (unsigned i = 0; i < ADDRESSES; i++)
            for (unsigned z = 0; z < ZONES; z++)
                move(t, addresses[i], zones[z], true);
        for (uint64_t h = 0; h < 8; h++)
            pick(t, h << 61, TORC_STATUS_OK);
        tc_loop_advance(t->f->loop, ROUND_MS);
    }
    for (uint64_t h = 0; h < 8; h++)
        TC_FUZZ_CHECK(pick(t, h << 61, TORC_STATUS_OK) == t->any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tree t = {.f = fake_lb_new("priority_experimental")};
    update(&t, &in);
    for (unsigned i = 0; i < EVENTS_MAX && in.len; i++)
        event(&t, &in);
    settle(&t);
    fake_lb_free(t.f);
    return 0;
}
