/* torc call: the requests.
 *
 * Without types, and with --raw or --data-hex, the request is one message of bytes. Otherwise it is a sequence of
 * values (JSON or --format text), one for each message. Standard input with such a sequence is read while the call
 * runs, if there is one call and its method takes a stream: each message is sent when its value is complete, and
 * reading pauses while messages wait to be sent.
 *
 * All calls send the messages of the run (run->messages). If the text has {i}, each call makes messages of its own
 * instead (one_call.own). One thread. */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "call/run.h"
#include "cli.h"

#define NAME "call"

enum { MAX_MESSAGE_TEXT = 64 * 1024 * 1024 };

static void add_bytes(struct call_messages *to, struct tc_slice bytes)
{
    struct tc_buf *m = tc_vec_push(&to->list);
    *m = (struct tc_buf){0};
    tc_buf_append_slice(m, bytes);
}

/* Moves the complete values at the beginning of m->text to m->list, as messages. at_end: no more text comes, so the
 * rest is a value too. Returns 0 or the exit status, with the error printed. */
static int take_values(struct run *r, struct call_messages *m, bool at_end)
{
    struct tc_slice rest = tc_buf_slice(&m->text), value;
    size_t used = 0;
    int rc = 0;
    while (rc == 0 && request_next_value(&r->args.request, rest, at_end, &used, &value) == 0) {
        struct tc_buf message = {0};
        rc = request_read(&r->types, value, m->at, &message);
        if (rc == 0)
            *tc_vec_push(&m->list) = message;
        else
            tc_buf_fini(&message);
        request_pass(&m->at, tc_slice_of(rest.data, used));
        rest = tc_slice_of(rest.data + used, rest.len - used);
    }
    tc_buf_consume(&m->text, m->text.len - rest.len);
    return rc;
}

/* For a method that takes one message: adds an empty one if there is none, and rejects several. Returns 0, or
 * CLI_FAILED with the error printed. */
static int check_count(struct run *r, struct call_messages *m)
{
    if (torc_schema_method_client_streams(r->types.method))
        return 0;
    if (m->list.len == 0)
        add_bytes(m, tc_slice_str(""));
    if (m->list.len > 1)
        return cli_fail(NAME, "%s takes one message, and %zu were given", torc_schema_method_path(r->types.method) + 1,
                        m->list.len);
    return 0;
}

/* Makes all messages from a complete text, of which they borrow nothing. Returns 0 or the exit status, with the error
 * printed. */
static int make(struct run *r, struct call_messages *m, struct tc_slice text)
{
    const struct request_args *a = &r->args.request;
    int rc = 0;
    m->ended = true;
    m->shared = r->args.count != 1;
    if (request_is_typed_data(a, r->types.method)) {
        tc_buf_append_slice(&m->text, text);
        rc = take_values(r, m, true);
    } else if (!r->types.method || a->kind != REQUEST_NONE) {
        add_bytes(m, text);
    }
    return rc == 0 && r->types.method ? check_count(r, m) : rc;
}

int run_read_messages(struct run *r)
{
    struct request_args *a = &r->args.request;
    bool json = request_is_typed_data(a, r->types.method);
    int rc = 0;
    if (a->kind == REQUEST_STDIN && json && r->args.count == 1 && torc_schema_method_client_streams(r->types.method))
        return 0; /* run_read_stdin reads it later */
    if (a->kind == REQUEST_STDIN && !r->args.dry_run && (rc = cli_read_file(NAME, "-", &a->data)) != 0)
        return rc;
    if (a->kind == REQUEST_TEXT && !a->raw)
        rc = placeholders_parse(NAME, "-d", tc_buf_slice(&a->data), false, &r->request);
    struct call_messages first = {0}; /* of call 0: made once here, so that an error shows before a call starts */
    if (rc == 0)
        rc = r->request.any ? run_own_messages(r, 0, &first) : make(r, &r->messages, tc_buf_slice(&a->data));
    r->messages.ended = true;
    run_messages_fini(&first);
    return rc;
}

int run_own_messages(struct run *r, uint64_t i, struct call_messages *own)
{
    struct tc_buf text = {0};
    placeholders_append(&r->request, i, NULL, &text);
    int rc = make(r, own, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return rc;
}

/* Scans the new bytes of the text. Returns false if no value can end in them: then splitting the text would find none.
 * Without this, each read would split a long unfinished value from its beginning. */
static bool look(struct run *r)
{
    struct call_messages *m = &r->messages;
    bool may_end = r->args.request.text;
    for (; m->seen < m->text.len && !r->args.request.text; m->seen++) {
        char c = m->text.data[m->seen];
        if (m->escaped) {
            m->escaped = false;
        } else if (m->in_string) {
            m->escaped = c == '\\';
            m->in_string = c != '"';
        } else {
            m->in_string = c == '"';
            m->depth += c == '{' || c == '[';
            m->depth -= m->depth && (c == '}' || c == ']');
        }
        may_end |= !m->depth && !m->in_string;
    }
    return may_end;
}

void run_read_stdin(struct run *r)
{
    struct tc_buf *text = &r->messages.text;
    ssize_t n = read(STDIN_FILENO, tc_buf_reserve(text, 65536), 65536);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0)
        cli_fail(NAME, "cannot read standard input: %s", strerror(errno));
    text->len += n > 0 ? (size_t)n : 0;
    int rc = n < 0 ? CLI_FAILED : 0;
    if (rc == 0 && text->len > MAX_MESSAGE_TEXT)
        rc = cli_fail(NAME, "a message on standard input is larger than 64 MiB");
    if (rc == 0 && (look(r) || n == 0)) {
        rc = take_values(r, &r->messages, n == 0);
        r->messages.seen = r->messages.depth = 0;
        r->messages.in_string = r->messages.escaped = false;
        look(r);
    }
    if (rc != 0) {
        r->failed = true;
        if (r->live)
            torc_stream_cancel(r->live->stream);
    }
    r->messages.ended = rc != 0 || n == 0;
}

void run_messages_fini(struct call_messages *m)
{
    for (size_t i = 0; i < m->list.len; i++)
        tc_buf_fini(&m->list.data[i]);
    tc_vec_fini(&m->list);
    tc_buf_fini(&m->text);
}
