/* torc simulate: the results as a table, JSON or CSV.
 *
 * Text has a row for each policy; with one policy, also a row for each backend and each phase. JSON has a line for each
 * policy, with its backends and phases. CSV has a row for each backend and each phase. sum_up() computes the figures of
 * all backends together. */
#include <math.h>

#include "cli.h"
#include "simulate.h"

/* Figures of all backends together. A backend's fair share of the calls is its part of the sum of weights. */
struct sim_sums {
    uint64_t calls, connections, overload_ns;
    double weight;
    double most, least, deviation; /* of share / fair share; deviation: root mean square of the distance from 1 */
    double moved;                  /* of all phases, the largest part of the phase's keys that moved */
};

static double part(uint64_t of, uint64_t all)
{
    return all ? (double)of / (double)all : 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double weight_of(const struct sim_opts *o, size_t i)
{
    return (double)o->endpoints.data[i].endpoint->weight;
}

static double of_fair(const struct sim_opts *o, const struct sim_result *r, const struct sim_sums *sums, size_t i)
{
    return part(r->loads[i].calls, sums->calls) * sums->weight / weight_of(o, i);
}

static struct sim_sums sum_up(const struct sim_opts *o, const struct sim_result *r)
{
    struct sim_sums sums = {.least = INFINITY};
    double squares = 0;
    size_t n = o->endpoints.len;
    for (size_t i = 0; i < n; i++) {
        sums.calls += r->loads[i].calls;
        sums.connections += r->loads[i].connections;
        sums.overload_ns += r->loads[i].overload_ns;
        sums.weight += weight_of(o, i);
    }
    for (size_t i = 0; i < n; i++) {
        double v = of_fair(o, r, &sums, i);
        sums.most = fmax(sums.most, v);
        sums.least = fmin(sums.least, v);
        squares += (v - 1) * (v - 1);
    }
    sums.deviation = sqrt(squares / (double)n);
    for (size_t i = 0; i < r->phases.len; i++)
        sums.moved = fmax(sums.moved, part(r->phases.data[i].moved, r->phases.data[i].keys));
    return sums;
}

/* --- text --- */

static void append_name(struct tc_buf *b, int width, const char *name)
{
    struct tc_buf shown = {0};
    tc_buf_printf(b, "%-*s", width, cli_shown(&shown, name));
    tc_buf_fini(&shown);
}

/* Returns the width of the column, widened if the name needs more; in bytes. */
static int widen(int width, const char *name)
{
    struct tc_buf shown = {0};
    append_name(&shown, width, name);
    width = (int)shown.len;
    tc_buf_fini(&shown);
    return width;
}

static void append_backends(struct tc_buf *b, const struct sim_opts *o, const struct sim_result *r,
                            const struct sim_sums *sums)
{
    int width = 8;
    for (size_t i = 0; i < o->endpoints.len; i++)
        width = widen(width, o->endpoints.data[i].name);
    tc_buf_printf(b, "\n%-*s  %10s  %9s  %8s  %8s  %7s  %8s  %11s  %10s\n", width, "backend", "weight", "calls",
                  "share", "of fair", "at once", "failed", "connections", "overload");
    for (size_t i = 0; i < o->endpoints.len; i++) {
        const struct sim_load *l = &r->loads[i];
        append_name(b, width, o->endpoints.data[i].name);
        tc_buf_printf(b, "  %10.0f  %9llu  %7.3f%%  %7.1f%%  %7u  %8llu  %11u  %8.1f s\n", weight_of(o, i),
                      (unsigned long long)l->calls, 100 * part(l->calls, sums->calls), 100 * of_fair(o, r, sums, i),
                      l->peak, (unsigned long long)l->failed, l->connections, seconds(l->overload_ns));
    }
}

static void append_phases(struct tc_buf *b, const struct sim_result *r)
{
    tc_buf_printf(b, "\n%10s  %9s  %8s  %10s  %10s  %10s  change\n", "at", "calls", "failed", "keys moved", "overload",
                  "longest");
    for (size_t i = 0; i < r->phases.len; i++) {
        const struct sim_phase *p = &r->phases.data[i];
        tc_buf_printf(b, "%8.1f s  %9llu  %8llu  %9.3f%%  %8.1f s  %8.1f s  ", seconds(p->at_ns),
                      (unsigned long long)p->calls, (unsigned long long)p->failed, 100 * part(p->moved, p->keys),
                      seconds(p->overload_ns), seconds(p->longest_ns));
        append_name(b, 0, p->name);
        tc_buf_append_char(b, '\n');
    }
}

/* One row for each policy. */
static void append_policies(struct tc_buf *b, const struct sim_opts *o, const struct sim_result *results)
{
    int width = 6;
    for (size_t i = 0; i < o->policies.len; i++)
        width = widen(width, results[i].policy);
    tc_buf_printf(b, "%-*s  %9s  %8s  %8s  %8s  %9s  %11s  %10s  %10s\n", width, "policy", "calls", "failed", "busiest",
                  "idlest", "deviation", "connections", "keys moved", "overload");
    for (size_t i = 0; i < o->policies.len; i++) {
        const struct sim_result *r = &results[i];
        const struct sim_sums sums = sum_up(o, r);
        append_name(b, width, r->policy);
        tc_buf_printf(b, "  %9llu  %8llu  %7.1f%%  %7.1f%%  %8.1f%%  %11llu  %9.3f%%  %8.1f s\n",
                      (unsigned long long)r->calls, (unsigned long long)r->failed, 100 * sums.most, 100 * sums.least,
                      100 * sums.deviation, (unsigned long long)sums.connections, 100 * sums.moved,
                      seconds(sums.overload_ns));
    }
}

static void print_text(const struct sim_opts *o, const struct sim_result *results)
{
    struct tc_buf b = {0};
    const struct sim_sums sums = sum_up(o, &results[0]);
    append_policies(&b, o, results);
    if (o->policies.len == 1) {
        append_backends(&b, o, &results[0], &sums);
        append_phases(&b, &results[0]);
    }
    tc_buf_printf(&b, "\n%llu clients, %zu backends, %.1f s; overload: more than %.1f calls at once\n",
                  (unsigned long long)o->clients, o->endpoints.len, seconds(o->duration_ns), results[0].limit);
    for (size_t i = 0; i < o->policies.len; i++) {
        if (results[i].waiting)
            tc_buf_printf(&b, "%s: %llu calls waited for a backend at the end\n", results[i].policy,
                          (unsigned long long)results[i].waiting);
        if (results[i].why) {
            tc_buf_printf(&b, "%s: calls failed without a backend, the first with: ", results[i].policy);
            append_name(&b, 0, results[i].why);
            tc_buf_append_char(&b, '\n');
        }
    }
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

/* --- JSON --- */

static void json_name(struct tc_buf *b, const char *before, const char *name)
{
    tc_buf_append_str(b, before);
    cli_json_string(b, name, strlen(name));
}

static void print_json(const struct sim_opts *o, const struct sim_result *r)
{
    struct tc_buf b = {0};
    const struct sim_sums sums = sum_up(o, r);
    json_name(&b, "{\"simulate\":{\"policy\":", r->policy);
    tc_buf_printf(&b,
                  ",\"clients\":%llu,\"seconds\":%.9g,\"calls\":%llu,\"failed\":%llu,\"waiting\":%llu,\"busiest\":%.6f,"
                  "\"idlest\":%.6f,\"deviation\":%.6f,\"connections\":%llu,\"overload_limit\":%.9g,\"overload_s\":%.6f,"
                  "\"backends\":[",
                  (unsigned long long)o->clients, seconds(o->duration_ns), (unsigned long long)r->calls,
                  (unsigned long long)r->failed, (unsigned long long)r->waiting, sums.most, sums.least, sums.deviation,
                  (unsigned long long)sums.connections, r->limit, seconds(sums.overload_ns));
    for (size_t i = 0; i < o->endpoints.len; i++) {
        const struct sim_load *l = &r->loads[i];
        json_name(&b, i ? ",{\"backend\":" : "{\"backend\":", o->endpoints.data[i].name);
        tc_buf_printf(&b,
                      ",\"weight\":%.0f,\"calls\":%llu,\"share\":%.6f,\"of_fair\":%.6f,\"at_once\":%u,\"failed\":%llu,"
                      "\"connections\":%u,\"most_connections\":%u,\"overload_s\":%.6f}",
                      weight_of(o, i), (unsigned long long)l->calls, part(l->calls, sums.calls),
                      of_fair(o, r, &sums, i), l->peak, (unsigned long long)l->failed, l->connections,
                      l->most_connections, seconds(l->overload_ns));
    }
    tc_buf_append_str(&b, "],\"phases\":[");
    for (size_t i = 0; i < r->phases.len; i++) {
        const struct sim_phase *p = &r->phases.data[i];
        json_name(&b, i ? ",{\"change\":" : "{\"change\":", p->name);
        tc_buf_printf(&b,
                      ",\"at_s\":%.6f,\"calls\":%llu,\"failed\":%llu,\"keys\":%u,\"moved\":%u,\"overload_s\":%.6f,"
                      "\"longest_s\":%.6f}",
                      seconds(p->at_ns), (unsigned long long)p->calls, (unsigned long long)p->failed, p->keys, p->moved,
                      seconds(p->overload_ns), seconds(p->longest_ns));
    }
    tc_buf_append_str(&b, "]");
    if (r->why)
        json_name(&b, ",\"first_failure\":", r->why);
    tc_buf_append_str(&b, "}}\n");
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

/* --- CSV (RFC 4180) --- */

static void csv_row(struct tc_buf *b, const char *policy, const char *kind, const char *name)
{
    cli_csv_text(b, policy);
    tc_buf_printf(b, ",%s,", kind);
    cli_csv_text(b, name);
}

/* Backends and phases share the first columns. Each kind leaves the other kind's own columns empty. */
static void print_csv(const struct sim_opts *o, const struct sim_result *r, bool first)
{
    struct tc_buf b = {0};
    const struct sim_sums sums = sum_up(o, r);
    if (first)
        tc_buf_append_str(&b, "policy,kind,name,calls,failed,overload_s,weight,share,of_fair,at_once,connections,"
                              "most_connections,at_s,keys,moved,longest_s\r\n");
    for (size_t i = 0; i < o->endpoints.len; i++) {
        const struct sim_load *l = &r->loads[i];
        csv_row(&b, r->policy, "backend", o->endpoints.data[i].name);
        tc_buf_printf(&b, ",%llu,%llu,%.6f,%.0f,%.6f,%.6f,%u,%u,%u,,,,\r\n", (unsigned long long)l->calls,
                      (unsigned long long)l->failed, seconds(l->overload_ns), weight_of(o, i),
                      part(l->calls, sums.calls), of_fair(o, r, &sums, i), l->peak, l->connections,
                      l->most_connections);
    }
    for (size_t i = 0; i < r->phases.len; i++) {
        const struct sim_phase *p = &r->phases.data[i];
        csv_row(&b, r->policy, "phase", p->name);
        tc_buf_printf(&b, ",%llu,%llu,%.6f,,,,,,,%.6f,%u,%u,%.6f\r\n", (unsigned long long)p->calls,
                      (unsigned long long)p->failed, seconds(p->overload_ns), seconds(p->at_ns), p->keys, p->moved,
                      seconds(p->longest_ns));
    }
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

void sim_print(const struct sim_opts *o, const struct sim_result *results)
{
    for (size_t i = 0; i < o->policies.len && o->output != SIM_TEXT; i++) {
        if (o->output == SIM_JSON)
            print_json(o, &results[i]);
        else
            print_csv(o, &results[i], i == 0);
    }
    if (o->output == SIM_TEXT)
        print_text(o, results);
}
