/* The load over time: stages that follow one another, each with a rate of RPCs (open loop) or a number of RPCs at a
 * time (closed loop) that stays or changes linearly. No function reads a clock: times are nanoseconds from the begin of
 * the plan. */
#ifndef TORC_BENCH_PLAN_H
#define TORC_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

enum { BENCH_MOST_CONCURRENT = 100000, BENCH_MOST_STAGES = 1000 };

struct bench_stage {
    double from, to; /* load at the begin and at the end: RPCs a second, or at a time */
    uint64_t begin_ns, end_ns;
    double due; /* open loop: RPCs that are due from the begin of the plan to the end of the stage */
};

/* Zero-initialised: no stages. bench_plan_calls, bench_plan_concurrency and bench_plan_stage need a stage. */
struct bench_plan {
    TC_VEC(struct bench_stage) stages;
    bool closed; /* loads are RPCs at a time */
};

/* Adds a stage behind the last one. A stage that is too long ends at UINT64_MAX. */
void bench_plan_add(struct bench_plan *p, double from, double to, uint64_t length_ns);
/* Reads the value of --stage and adds its stages: STAGE[,STAGE], each [c=]LOAD[..LOAD]/[Nx]T. Sets `closed`. Returns 0,
 * or CLI_USAGE with the error printed; stages before the faulty one stay added. */
int bench_plan_read(struct bench_plan *p, const char *command, const char *text);
/* Returns when RPC n, counted from 0, is to begin; UINT64_MAX: never. Open loop alone. */
uint64_t bench_plan_due_ns(const struct bench_plan *p, uint64_t n);
/* Returns how many RPCs are to begin before `t_ns`. Open loop alone. */
uint64_t bench_plan_calls(const struct bench_plan *p, uint64_t t_ns);
/* Returns how many RPCs are to be under way at `t_ns`, and in *until_ns when that number may change. Closed loop
 * alone. */
uint64_t bench_plan_concurrency(const struct bench_plan *p, uint64_t t_ns, uint64_t *until_ns);
/* Returns the index of the stage at this time; behind the end of the plan, that of the last stage. */
size_t bench_plan_stage(const struct bench_plan *p, uint64_t t_ns);
uint64_t bench_plan_end_ns(const struct bench_plan *p);
/* Appends stage i in the form of --stage. */
void bench_plan_append_text(const struct bench_plan *p, size_t i, struct tc_buf *out);
/* Returns true if some stage has a load. */
bool bench_plan_any(const struct bench_plan *p);
void bench_plan_fini(struct bench_plan *p);

#endif
