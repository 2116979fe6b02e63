/* torc call: sends RPCs from one thread, which drives the runtime itself.
 *
 * Each round of run_calls() starts the calls that are due (--rps, -c, -n, --duration), runs one turn of the loop, and
 * prints what the callbacks queued in that turn (drain(), print.c; see run.h). The last round is over when every call
 * has ended or standard output cannot be written. --hold keeps the channels connected afterwards.
 *
 * cmd_call owns struct run. start_call() makes a struct one_call; its last item in the queue is its end, and on_end()
 * frees it then. A call that still runs when the output is lost ends in torc_runtime_free; forget_queue() frees it. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "call/run.h"
#include "cli.h"
#include "commands.h"

#define NAME "call"

enum { EXIT_GRPC = 64 }; /* --exit-status grpc: the exit status is this plus the gRPC status */

uint64_t run_now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

/* Makes the request's path in an empty `path`, and returns it, borrowed from `path`. */
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
    cookie_jar_take(&r->jar, torc_result_headers(result), tc_buf_cstr(&path), run_now_ns());
    cookie_jar_take(&r->jar, torc_result_trailers(result), tc_buf_cstr(&path), run_now_ns());
    tc_buf_fini(&path);
}

static void add_cookies(struct run *r, torc_metadata *md)
{
    struct tc_buf path = {0}, cookies = {0};
    cookie_jar_give(&r->jar, path_of(&r->args, &path), !connect_may_be_plaintext(&r->args.connect), run_now_ns(),
                    &cookies);
    if (cookies.len)
        torc_metadata_add(md, "cookie", cookies.data, cookies.len);
    tc_buf_fini(&cookies);
    tc_buf_fini(&path);
}

void run_queue(struct one_call *c, const torc_message *message, const torc_result *result)
{
    *tc_vec_push(&c->run->queue) =
        (struct run_item){c, torc_message_ref(message), torc_result_ref(result), (run_now_ns() - c->begin_ns) / 1000};
}

static void on_result(const torc_result *result, void *arg)
{
    run_queue(arg, NULL, result);
}

static void call_free(struct one_call *c)
{
    torc_message_unref(c->response);
    tc_free(c->explain);
    run_messages_fini(&c->own);
    tc_free(c);
}

/* Returns the message as JSON, or as --format text, for torc_free. NULL if there is no message, if messages are bytes,
 * or with --quiet. If the message cannot be shown so, returns NULL with the reason in *why, and sets r->failed. */
static char *response_text(struct run *r, const torc_message *message, struct tc_buf *why)
{
    if (!message || !r->types.method || r->args.request.raw || r->args.quiet)
        return NULL;
    char *text = request_show(&r->types, torc_schema_method_response(r->types.method), message, why);
    r->failed |= !text;
    return text;
}

/* Prints a message of a response stream. If the method has one response, keeps the message for on_end instead. Asks for
 * the next message. */
static void on_message_printed(struct one_call *c, const torc_message *message)
{
    struct run *r = c->run;
    struct tc_buf why = {0};
    if (!r->types.method || !torc_schema_method_server_streams(r->types.method)) {
        torc_message_unref(c->response);
        c->response = torc_message_ref(message);
    } else if (!cli_output_lost()) {
        char *json = response_text(r, message, &why);
        struct call_message m = {.i = c->i,
                                 .n = c->received - 1,
                                 .message = message,
                                 .json = json,
                                 .json_error = why.len ? tc_buf_cstr(&why) : NULL,
                                 .explain = c->explain};
        call_print_message(&r->args, &m);
        torc_free(json);
        tc_buf_fini(&why);
    }
    if (c->stream)
        torc_stream_want(c->stream, 1);
}

/* Counts and prints a call that has ended, and frees it. */
static void on_end(struct one_call *c, const torc_result *result, uint64_t latency_us)
{
    struct run *r = c->run;
    struct tc_buf why = {0};
    if (r->args.cookies)
        keep_cookies(r, result);
    call_totals_add(&r->totals, result, latency_us);
    if (torc_result_code(result) && !r->first_status)
        r->first_status = torc_result_code(result);
    struct call_outcome o = {.i = c->i,
                             .latency_us = latency_us,
                             .result = result,
                             .sent = c->sent,
                             .received = c->received,
                             .schema_us = r->types.us,
                             .headers_us = c->headers_us,
                             .first_us = c->first_us};
    o.is_stream =
        r->types.method && run_uses_streams(r) &&
        (torc_schema_method_client_streams(r->types.method) || torc_schema_method_server_streams(r->types.method));
    o.response = c->response ? c->response : torc_result_response(result);
    if (!cli_output_lost()) {
        char *json = response_text(r, o.response, &why), *details = request_details(&r->types, result);
        o.json = json;
        o.json_error = why.len ? tc_buf_cstr(&why) : NULL;
        if (o.is_stream && !torc_schema_method_server_streams(r->types.method) && !c->received &&
            !torc_result_code(result)) {
            o.json_error = "the method has one response, and the server sent none";
            r->failed = true;
        }
        o.details = details;
        call_print_result(&r->args, &o);
        torc_free(json);
        tc_free(details);
        tc_buf_fini(&why);
    }
    r->in_flight--;
    call_free(c);
}

/* Prints what callbacks have queued. Printing may wait for reflection, which turns the loop, so the queue may grow. */
static void drain(struct run *r)
{
    for (size_t i = 0; i < r->queue.len; i++) {
        struct run_item item = r->queue.data[i];
        if (item.message)
            on_message_printed(item.call, item.message);
        else
            on_end(item.call, item.result, item.latency_us);
        torc_message_unref(item.message);
        torc_result_free(item.result);
    }
    r->queue.len = 0;
}

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    struct run *r = arg;
    call_print_event(&r->args, (run_now_ns() - r->made_ns) / TC_NS_PER_MS, kind, detail, reason);
}

/* Returns the metadata of call `i`, for torc_metadata_free; NULL if it has none. */
static torc_metadata *make_metadata(struct run *r, uint64_t i)
{
    torc_metadata *md = headers_make(&r->args.request.headers.rpc, i, NULL);
    if (r->args.cookies) {
        md = md ? md : torc_metadata_new();
        add_cookies(r, md);
    }
    return md;
}

/* Starts a call, whose latency counts from intended_ns (0: from now). If that fails, prints the error and sets
 * r->refused. */
static void start_call(struct run *r, uint64_t intended_ns)
{
    const struct call_args *a = &r->args;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = a->timeout_ms,
                                  .wait_for_ready = a->wait_for_ready, .explain = a->explain};
    torc_metadata *md = make_metadata(r, r->started);
    o.metadata = md;
    struct one_call *c = TC_NEW(struct one_call);
    *c = (struct one_call){.run = r, .i = r->started, .begin_ns = intended_ns ? intended_ns : run_now_ns()};
    c->messages = r->request.any ? &c->own : &r->messages;
    if (r->request.any && run_own_messages(r, c->i, &c->own) != 0) {
        torc_metadata_free(md);
        call_free(c);
        r->refused = true;
        return;
    }
    const struct tc_buf *request = c->messages->list.data; /* the only message, for a call without a stream */
    torc_channel *ch = r->channels[r->started % a->channels];
    int rc;
    if (a->dry_run)
        rc = torc_explain_async(ch, a->connect.method, &o, on_result, c, NULL, NULL);
    else if (run_uses_streams(r))
        rc = run_start_stream(c, ch, &o);
    else
        rc = torc_unary_async(ch, a->connect.method, request->data, request->len, &o, on_result, c, NULL, NULL);
    torc_metadata_free(md);
    if (rc != 0) {
        connect_call_refused(NAME, a->connect.method, rc);
        call_free(c);
        r->refused = true;
        return;
    }
    r->started++;
    r->in_flight++;
}

/* Starts the calls that are due. Starts the first one even if --duration is over: without a call, the run would succeed
 * whatever the target is. *all_started becomes true if no further call will start. Returns how long the loop may wait,
 * in ms; -1: until a call ends. */
static int start_due(struct run *r, bool *all_started)
{
    const struct call_args *a = &r->args;
    uint64_t now = run_now_ns();
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
            now = run_now_ns();
    }
}

static void show_progress(struct run *r)
{
    uint64_t now = run_now_ns();
    if (now - r->last_progress_ns < 2 * TC_NS_PER_S)
        return;
    r->last_progress_ns = now;
    fprintf(stderr, "torc call: %.0f s, %llu calls done, %llu OK\n", (double)(now - r->begin_ns) / 1e9,
            (unsigned long long)r->totals.calls, (unsigned long long)r->totals.ok);
}

/* Runs one turn of the loop, of at most `wait` ms (-1: no limit). If the live call has sent all its messages, also
 * waits for standard input and reads the next ones. */
static void turn(struct run *r, int wait)
{
    struct one_call *c = r->live;
    bool reads = c && !r->messages.ended && c->next == r->messages.list.len;
    if (!reads) {
        torc_runtime_poll(r->runtime, wait);
        return;
    }
    struct pollfd fds[] = {{.fd = torc_runtime_fd(r->runtime), .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    int loop_wait = torc_runtime_timeout_ms(r->runtime);
    poll(fds, 2, wait < 0 || (loop_wait >= 0 && loop_wait < wait) ? loop_wait : wait);
    torc_runtime_poll(r->runtime, 0);
    if (fds[1].revents && r->live) {
        run_read_stdin(r);
        run_push(c);
    }
}

/* Runs until every call has ended, or standard output cannot be written. */
static void run_calls(struct run *r, bool progress)
{
    bool all_started = false;
    while ((!all_started || r->in_flight) && !cli_output_lost()) {
        int wait = start_due(r, &all_started);
        if (all_started && !r->in_flight)
            break;
        if (progress && (wait < 0 || wait > 500))
            wait = 500;
        turn(r, wait);
        if (progress && r->queue.len && !r->args.quiet)
            r->last_progress_ns = run_now_ns(); /* drain prints lines, so no progress line is due */
        drain(r);
        if (progress)
            show_progress(r);
    }
}

static void hold(struct run *r)
{
    uint64_t end = cli_end_ns(run_now_ns(), r->args.hold_ms);
    for (uint64_t now = run_now_ns(); now < end && !cli_output_lost(); now = run_now_ns())
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

/* Frees the items that were not printed. They are of calls that still ran when the output was lost: such calls end in
 * torc_runtime_free. */
static void forget_queue(struct run *r)
{
    for (size_t i = 0; i < r->queue.len; i++) {
        struct run_item *item = &r->queue.data[i];
        if (!item->message)
            call_free(item->call);
        torc_message_unref(item->message);
        torc_result_free(item->result);
    }
    tc_vec_fini(&r->queue);
}

static int find_method(struct run *r)
{
    const struct call_args *a = &r->args;
    r->types = (struct request_types){.command = NAME,
                                      .args = &a->request,
                                      .path = a->connect.method,
                                      .one_line = a->json,
                                      .timeout_ms = a->timeout_ms,
                                      .wait_for_ready = a->wait_for_ready};
    return a->dry_run ? 0 : request_find_method(&r->types, r->channels[0]);
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
    r->made_ns = run_now_ns();
    rc = serve_csds(r);
    if (rc == 0)
        rc = make_channels(r);
    if (rc == 0)
        rc = find_method(r);
    if (rc == 0)
        rc = run_read_messages(r);
    if (rc != 0)
        goto done;
    r->begin_ns = r->last_progress_ns = run_now_ns(); /* the run begins after reflection */
    run_calls(r, isatty(2) && r->args.request.kind != REQUEST_STDIN);
    if (cli_output_lost()) {
        rc = CLI_FAILED; /* cli_end_output prints the reason */
        goto done;
    }
    if (r->args.explain && !r->args.quiet)
        show_channels(r);
    r->totals.seconds = (double)(run_now_ns() - r->begin_ns) / 1e9;
    r->totals.cpu_seconds = cli_cpu_seconds() - r->types.cpu_seconds;
    call_print_summary(&r->args, &r->totals);
    hold(r);
    rc = r->refused || r->failed || r->totals.ok != r->totals.calls ? CLI_FAILED : CLI_OK;
    if (r->args.exit_grpc && r->first_status)
        rc = EXIT_GRPC + r->first_status;
done:
    connect_channels_free(r->channels, r->args.channels);
    torc_csds_free(r->csds);
    torc_runtime_free(r->runtime); /* calls that still run end here, and queue their results */
    request_types_fini(&r->types);
    forget_queue(r);
    run_messages_fini(&r->messages);
    placeholders_fini(&r->request);
    call_totals_fini(&r->totals);
    cookie_jar_fini(&r->jar);
    call_args_fini(&r->args);
    tc_free(r);
    return rc < 0 ? CLI_OK : rc;
}
