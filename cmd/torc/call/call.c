/* torc call: sends unary RPCs from one thread, which drives the runtime itself.
 *
 * run_calls() starts what is due (--rps, -c, -n, --duration), turns the loop, and stops when every call has ended or
 * the reader of standard output is gone. Each result is printed when it comes (print.c). --hold keeps the channels
 * connected afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "call.h"
#include "cli.h"
#include "commands.h"
#include "cookies.h"

#define NAME "call"

struct run {
    struct call_args args;
    torc_runtime *runtime;
    torc_csds *csds;
    torc_channel **channels;
    struct call_totals totals;
    struct cookie_jar jar;
    uint64_t started, in_flight;
    uint64_t begin_ns, last_progress_ns;
    bool refused; /* the call could not be started */
};

struct one_call {
    struct run *run;
    uint64_t i;
    uint64_t begin_ns; /* the intended start, with --rps */
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

/* Returns the request's path: METHOD with a slash before it. */
static const char *path_of(const struct call_args *a, struct tc_buf *path)
{
    tc_buf_append_str(path, a->connect.method[0] == '/' ? "" : "/");
    tc_buf_append_str(path, a->connect.method);
    return tc_buf_cstr(path);
}

static void keep_cookies(struct run *r, const torc_result *result)
{
    struct tc_buf path = {0};
    path_of(&r->args, &path);
    cookie_jar_take(&r->jar, torc_result_headers(result), tc_buf_cstr(&path), now_ns());
    cookie_jar_take(&r->jar, torc_result_trailers(result), tc_buf_cstr(&path), now_ns());
    tc_buf_fini(&path);
}

static void add_cookies(struct run *r, torc_metadata *md)
{
    struct tc_buf path = {0}, cookies = {0};
    cookie_jar_give(&r->jar, path_of(&r->args, &path), strcmp(r->args.connect.creds, "insecure") != 0, now_ns(),
                    &cookies);
    if (cookies.len)
        torc_metadata_add(md, "cookie", cookies.data, cookies.len);
    tc_buf_fini(&cookies);
    tc_buf_fini(&path);
}

static void on_result(const torc_result *result, void *arg)
{
    struct one_call *c = arg;
    struct run *r = c->run;
    uint64_t latency_us = (now_ns() - c->begin_ns) / 1000;
    if (r->args.cookies)
        keep_cookies(r, result);
    call_totals_add(&r->totals, result, latency_us);
    if (!cli_output_lost())
        call_print_result(&r->args, c->i, result, latency_us);
    r->in_flight--;
    tc_free(c);
}

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    struct run *r = arg;
    call_print_event(&r->args, (now_ns() - r->begin_ns) / TC_NS_PER_MS, kind, detail, reason);
}

/* Appends the header's value with each {i} replaced. */
static void numbered_value(const struct call_header *h, uint64_t i, struct tc_buf *out)
{
    struct tc_slice rest = tc_buf_slice(&h->value);
    ptrdiff_t at;
    while ((at = tc_slice_find(rest, tc_slice_str("{i}"))) >= 0) {
        tc_buf_append(out, rest.data, (size_t)at);
        tc_buf_printf(out, "%llu", (unsigned long long)i);
        rest = tc_slice_of(rest.data + at + 3, rest.len - (size_t)at - 3);
    }
    tc_buf_append_slice(out, rest);
}

static torc_metadata *make_metadata(struct run *r, uint64_t i)
{
    const struct call_args *a = &r->args;
    torc_metadata *md = torc_metadata_new();
    for (size_t k = 0; k < a->headers.len; k++) {
        const struct call_header *h = &a->headers.data[k];
        struct tc_buf value = {0};
        if (h->numbered)
            numbered_value(h, i, &value);
        else
            tc_buf_append_slice(&value, tc_buf_slice(&h->value));
        torc_metadata_add(md, h->name, tc_buf_cstr(&value), value.len);
        tc_buf_fini(&value);
    }
    if (a->cookies)
        add_cookies(r, md);
    return md;
}

static void start_call(struct run *r, uint64_t intended_ns)
{
    const struct call_args *a = &r->args;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = a->timeout_ms,
                                  .wait_for_ready = a->wait_for_ready, .explain = a->explain};
    torc_metadata *md = a->headers.len || a->cookies ? make_metadata(r, r->started) : NULL;
    o.metadata = md;
    struct one_call *c = TC_NEW(struct one_call);
    *c = (struct one_call){r, r->started, intended_ns ? intended_ns : now_ns()};
    torc_channel *ch = r->channels[r->started % a->channels];
    int rc = a->dry_run
                 ? torc_explain_async(ch, a->connect.method, &o, on_result, c, NULL, NULL)
                 : torc_unary_async(ch, a->connect.method, a->data.data, a->data.len, &o, on_result, c, NULL, NULL);
    torc_metadata_free(md);
    if (rc != 0) {
        connect_call_refused(NAME, a->connect.method, rc);
        tc_free(c);
        r->refused = true;
        return;
    }
    r->started++;
    r->in_flight++;
}

/* Starts the calls that are due, and the first one even if --duration is over already: a run without a call would
 * succeed whatever the target is. Returns the longest wait until the next start in ms (-1: no start is due before a
 * call ends), and in *all_started whether every call was started. */
static int start_due(struct run *r, bool *all_started)
{
    const struct call_args *a = &r->args;
    uint64_t now = now_ns();
    uint64_t end = a->duration_ms ? cli_end_ns(r->begin_ns, a->duration_ms) : UINT64_MAX;
    for (;;) {
        *all_started =
            r->refused || cli_output_lost() || (a->count && r->started == a->count) || (now >= end && r->started > 0);
        if (*all_started)
            return -1;
        uint64_t due = 0;
        if (a->rps > 0) {
            due = r->begin_ns + (uint64_t)((double)r->started * 1e9 / a->rps);
            if (due >= end)
                due = end;
            if (due > now)
                return cli_wait_ms(now, due);
        }
        if (r->in_flight >= a->concurrency)
            return end == UINT64_MAX ? -1 : cli_wait_ms(now, end);
        start_call(r, due);
        if (r->started % 64 == 0)
            now = now_ns();
    }
}

static void show_progress(struct run *r)
{
    uint64_t now = now_ns();
    if (now - r->last_progress_ns < 2 * TC_NS_PER_S)
        return;
    r->last_progress_ns = now;
    fprintf(stderr, "torc call: %.0f s, %llu calls done, %llu OK\n", (double)(now - r->begin_ns) / 1e9,
            (unsigned long long)r->totals.calls, (unsigned long long)r->totals.ok);
}

/* Runs until every call has ended, or nobody reads the output. */
static void run_calls(struct run *r, bool progress)
{
    bool all_started = false;
    while ((!all_started || r->in_flight) && !cli_output_lost()) {
        int wait = start_due(r, &all_started);
        if (all_started && !r->in_flight)
            break;
        if (progress && (wait < 0 || wait > 500))
            wait = 500;
        torc_runtime_poll(r->runtime, wait);
        if (progress)
            show_progress(r);
    }
}

static void hold(struct run *r)
{
    uint64_t end = cli_end_ns(now_ns(), r->args.hold_ms);
    for (uint64_t now = now_ns(); now < end && !cli_output_lost(); now = now_ns())
        torc_runtime_poll(r->runtime, cli_wait_ms(now, end));
}

static int make_channels(struct run *r)
{
    int rc = connect_channels(NAME, &r->args.connect, r->runtime, r->args.channels, &r->channels);
    for (uint64_t i = 0; i < r->args.channels && rc == 0 && r->args.events; i++)
        torc_channel_observe(r->channels[i], on_event, r);
    return rc;
}

static void show_channels(const struct run *r)
{
    for (uint64_t i = 0; i < r->args.channels; i++) {
        char *json = NULL;
        if (torc_channel_describe(r->channels[i], &json) == 0)
            call_print_channel(&r->args, json);
        torc_free(json);
    }
}

/* Prints the address on standard error: standard output may be read by a program. */
static int serve_csds(struct run *r)
{
    torc_error *error = NULL;
    int rc = 0;
    if (!r->args.csds)
        return 0;
    r->csds = torc_csds_serve(r->runtime, r->args.csds, &error);
    if (r->csds)
        fprintf(stderr, "torc call: CSDS at %s\n", torc_csds_address(r->csds));
    else
        rc = cli_fail(NAME, "--csds: %s", torc_error_text(error));
    torc_error_clear(&error);
    return rc;
}

int cmd_call(int argc, char **argv)
{
    struct run *r = TC_NEW(struct run);
    int rc = call_args_parse(&r->args, argc, argv);
    if (rc != 0)
        goto done;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    r->runtime = torc_runtime_new(&o, &error);
    if (!r->runtime) {
        rc = cli_fail_error(NAME, error);
        goto done;
    }
    r->begin_ns = r->last_progress_ns = now_ns();
    rc = serve_csds(r);
    if (rc == 0)
        rc = make_channels(r);
    if (rc != 0)
        goto done;
    run_calls(r, r->args.quiet && isatty(2));
    if (cli_output_lost()) {
        rc = CLI_FAILED; /* cli_end_output prints the reason */
        goto done;
    }
    if (r->args.explain && !r->args.quiet)
        show_channels(r);
    r->totals.seconds = (double)(now_ns() - r->begin_ns) / 1e9;
    r->totals.cpu_seconds = cli_cpu_seconds();
    call_print_summary(&r->args, &r->totals);
    hold(r);
    rc = r->refused || r->totals.ok != r->totals.calls ? CLI_FAILED : CLI_OK;
done:
    connect_channels_free(r->channels, r->args.channels);
    torc_csds_free(r->csds);
    torc_runtime_free(r->runtime);
    call_totals_fini(&r->totals);
    cookie_jar_fini(&r->jar);
    call_args_fini(&r->args);
    tc_free(r);
    return rc < 0 ? CLI_OK : rc;
}
