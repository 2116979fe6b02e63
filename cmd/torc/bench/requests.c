/* torc bench: what RPCs send.
 *
 * The bytes of a request without placeholders are made once, before the load starts. For a request with placeholders
 * each message is made when it is sent: the text is filled in and, with types, converted from JSON. That counts in the
 * CPU time of RPCs. Options about messages are checked here, where the method's type is known.
 *
 * b->requests owns a copy of each text, the bytes, and the buffers for messages that are made. bench_requests_fini
 * frees them. */
#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "cli.h"

#define NAME BENCH_NAME

/* Adds a request of this text. `place`: where the text begins in the input, for errors in JSON. Checks a text with
 * placeholders as RPC 0 would send it. Returns 0 or an exit status, with the error printed. */
static int add_text(struct bench *b, struct tc_slice text, struct request_place place)
{
    struct bench_requests *q = &b->requests;
    struct bench_request *r = tc_vec_push(&q->list);
    bool all = !b->args.request.raw && b->args.request.kind != REQUEST_HEX;
    struct tc_slice first;
    *r = (struct bench_request){.at = place};
    tc_buf_append_slice(&r->text, text);
    if (all) {
        int rc = placeholders_parse(NAME, "-d", tc_buf_slice(&r->text), true, &r->parts);
        if (rc != 0)
            return rc;
    }
    size_t at = q->list.len - 1;
    if (r->parts.any)
        return bench_request_of(b, 0, at, &first) ? 0 : CLI_FAILED;
    if (q->json)
        return request_read(&b->types, text, place, &r->bytes);
    tc_buf_append_slice(&r->bytes, text);
    return 0;
}

static int add_values(struct bench *b, struct tc_slice rest)
{
    struct request_place at = {0};
    struct tc_slice value;
    size_t used;
    int rc = 0;
    while (rc == 0 && request_next_value(&b->args.request, rest, true, &used, &value) == 0) {
        rc = add_text(b, value, at);
        request_pass(&at, tc_slice_of(rest.data, used));
        rest = tc_slice_of(rest.data + used, rest.len - used);
    }
    return rc;
}

/* Adds a request of bytes for each line that is not empty, without the line end (LF or CRLF). */
static int add_lines(struct bench *b, struct tc_slice rest)
{
    struct tc_slice line;
    int rc = 0;
    for (bool more = true; rc == 0 && tc_slice_split(&rest, &more, '\n', &line);) {
        if (line.len && line.data[line.len - 1] == '\r')
            line.len--;
        if (line.len)
            rc = add_text(b, line, (struct request_place){0});
    }
    return rc;
}

static int add_payload(struct bench *b)
{
    struct tc_buf bytes = {0};
    memset(tc_buf_reserve(&bytes, b->args.payload + 1), 'x', b->args.payload);
    bytes.len = b->args.payload;
    *tc_vec_push(&b->requests.list) = (struct bench_request){.bytes = bytes};
    return 0;
}

/* Sets in which directions the method streams and how many messages an RPC has; checks the options of streams. */
static int set_each(struct bench *b)
{
    const torc_schema_method *m = b->types.method;
    const char *unknown = m ? "" : ", as far as is known without types (--reflect, --proto)";
    uint64_t given = b->args.call_count, interval = b->args.stream_interval_ns, *each = &b->requests.each;
    bool timed = b->args.call_duration_ns != UINT64_MAX;
    b->takes_stream = m && torc_schema_method_client_streams(m);
    b->gives_stream = m && torc_schema_method_server_streams(m);
    b->streams = b->takes_stream || b->gives_stream;
    b->most_received = given && !b->takes_stream ? given : UINT64_MAX;
    *each = !b->takes_stream ? 1 : given ? given : timed ? UINT64_MAX : b->requests.list.len;
    if ((given || timed) && !b->streams)
        return cli_usage(NAME, "%s: %s has no stream%s", given ? "--call-count" : "--call-duration", b->types.path,
                         unknown);
    if (interval && !b->takes_stream)
        return cli_usage(NAME, "--stream-interval: %s does not take a stream%s", b->types.path, unknown);
    if (interval && !timed && (*each - 1) >= (b->args.deadline_ms * TC_NS_PER_MS + interval - 1) / interval)
        return cli_usage(NAME, "--stream-interval: the %llu messages of an RPC take longer than its --deadline",
                         (unsigned long long)*each);
    return 0;
}

/* Returns true if the text begins a JSON array of objects, the form in which ghz takes several requests. */
static bool is_list(struct tc_slice text)
{
    size_t i = 1;
    while (i < text.len && strchr(" \t\r\n", text.data[i]))
        i++;
    return i < text.len && text.data[0] == '[' && text.data[i] == '{';
}

int bench_requests_read(struct bench *b)
{
    struct request_args *a = &b->args.request;
    struct bench_requests *q = &b->requests;
    bool file = a->kind == REQUEST_LINES || a->kind == REQUEST_STDIN;
    int rc = 0;
    if (a->kind == REQUEST_STDIN && (rc = cli_read_file(NAME, "-", &a->data)) != 0)
        return rc;
    q->json = request_is_typed_data(a, b->types.method);
    if (!a->raw && a->kind != REQUEST_HEX && is_list(tc_buf_slice(&a->data)))
        return cli_usage(NAME, "-d: requests are written one after the other, and not as a list; --raw: it is bytes");
    if (b->args.has_payload && q->json)
        return cli_usage(NAME, "--payload goes with bytes: with types use -d");
    if (a->kind == REQUEST_NONE)
        rc = add_payload(b);
    else if (q->json)
        rc = add_values(b, tc_buf_slice(&a->data));
    else if (file)
        rc = add_lines(b, tc_buf_slice(&a->data));
    else
        rc = add_text(b, tc_buf_slice(&a->data), (struct request_place){0});
    if (rc == 0 && q->list.len == 0)
        rc = cli_usage(NAME, "-d: there is no request in it");
    return rc ? rc : set_each(b);
}

bool bench_request_of(struct bench *b, uint64_t i, uint64_t n, struct tc_slice *out)
{
    struct bench_requests *q = &b->requests;
    const struct bench_request *r = &q->list.data[n];
    *out = tc_buf_slice(&r->bytes);
    if (!r->parts.any)
        return true;
    tc_buf_clear(&q->scratch);
    tc_buf_clear(&q->made);
    placeholders_append(&r->parts, i, &b->rng, &q->scratch);
    *out = tc_buf_slice(&q->scratch);
    if (!q->json)
        return true;
    bool ok = request_read(&b->types, *out, r->at, &q->made) == 0;
    *out = tc_buf_slice(&q->made);
    return ok;
}

void bench_requests_fini(struct bench_requests *q)
{
    for (size_t i = 0; i < q->list.len; i++) {
        tc_buf_fini(&q->list.data[i].bytes);
        tc_buf_fini(&q->list.data[i].text);
        placeholders_fini(&q->list.data[i].parts);
    }
    tc_vec_fini(&q->list);
    tc_buf_fini(&q->scratch);
    tc_buf_fini(&q->made);
}
