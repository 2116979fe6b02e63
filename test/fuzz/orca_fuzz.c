/* Load reports of backends (ORCA). From a report that tc_unpack accepts, lb/orca reads the same values as protobuf-c.
 * No report gives a weight that the scheduler cannot use. */
#include <float.h>
#include <string.h>

#include "fuzz.h"
#include "lb/orca.h"
#include "lb/registry.h"
#include "lb/weighted_round_robin/policy.h"
#include "lb/weighted_round_robin/scheduler.h"
#include "lb/weighted_round_robin/weight.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "proto/unpack.h"

typedef Xds__Data__Orca__V3__OrcaLoadReport report;

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* Compares the five values without a name bit for bit, and the number of entries of named_metrics. */
static void check_against_protobuf(struct tc_slice bytes, const report *m)
{
    double fields[TC_ORCA_APPLICATION + 1] = {0};
    size_t named = 0;
    struct tc_orca_value v;
    while (tc_orca_next(&bytes, &v)) {
        if (v.field <= TC_ORCA_APPLICATION)
            fields[v.field] = v.value;
        named += v.field == TC_ORCA_NAMED;
    }
    TC_FUZZ_CHECK(bytes.len == 0);
    TC_FUZZ_CHECK(same(fields[TC_ORCA_CPU], m->cpu_utilization) && same(fields[TC_ORCA_MEM], m->mem_utilization));
    TC_FUZZ_CHECK(same(fields[TC_ORCA_QPS], m->rps_fractional) && same(fields[TC_ORCA_EPS], m->eps));
    TC_FUZZ_CHECK(same(fields[TC_ORCA_APPLICATION], m->application_utilization));
    TC_FUZZ_CHECK(named == m->n_named_metrics);
}

/* Checks that the scheduler can use the weight that the report gives, beside a weight of 1: each pick is one of the two
 * places, and eight picks advance the sequence by less than 1000. The config is made once. */
static void check_weight(struct tc_slice bytes)
{
    static struct tc_lb_config *config;
    if (!config) {
        struct tc_validation_errors errors = {0};
        json_t *json = json_pack("{s:s,s:[s,s,s]}", "blackoutPeriod", "0s", "metricNamesForComputingUtilization",
                                 "named_metrics.a", "utilization.b", "mem_utilization");
        config = tc_wrr_config_parse(&tc_weighted_round_robin_factory, json, NULL, 0, &errors);
        tc_validation_fini(&errors);
        json_decref(json);
    }
    struct tc_wrr_weight *w = tc_wrr_weight_new();
    tc_wrr_weight_report(w, tc_wrr_config(config), bytes, 1);
    float weights[2] = {tc_wrr_weight_get(w, tc_wrr_config(config), 1), 1};
    tc_wrr_weight_unref(w);
    TC_FUZZ_CHECK(weights[0] >= 0 && weights[0] <= FLT_MAX);
    struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, 2);
    uint32_t sequence = 0;
    for (unsigned i = 0; i < 8; i++)
        TC_FUZZ_CHECK(tc_wrr_scheduler_pick(s, &sequence) < 2);
    TC_FUZZ_CHECK(sequence < 1000);
    tc_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_slice bytes = tc_slice_of(data, size);
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, tc_unpack_budget(size));
    if (tc_unpack(&xds__data__orca__v3__orca_load_report__descriptor, bytes, NULL, &arena, &m, &errors) == 0)
        check_against_protobuf(bytes, (report *)m);
    check_weight(bytes);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return 0;
}
