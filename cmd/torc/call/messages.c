/* torc call: the requests.
 *
 * Without types the request is one message of bytes. With types it is JSON values one after the other, each a message.
 * Where a method takes a stream and one call is made, standard input is read while the call runs, and each message is
 * sent when its value is complete; reading pauses while messages wait to be sent. */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "call/run.h"
#include "cli.h"

#define NAME "call"

enum { SEPARATOR = 0x1e };
enum { MAX_MESSAGE_TEXT = 64 * 1024 * 1024, LARGE_TEXT = 1024 * 1024 };

static void add_bytes(struct run *r, struct tc_slice bytes)
{
    struct tc_buf *m = tc_vec_push(&r->messages.list);
    *m = (struct tc_buf){0};
    tc_buf_append_slice(m, bytes);
}

/* torc_json_split for --format text, whose messages have the byte 0x1e between them. */
static int split_text(const char *text, size_t size, size_t *used)
{
    const char *end = size ? memchr(text, SEPARATOR, size) : NULL;
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    if (!end)
        return blank < size ? TORC_EAGAIN : TORC_ENOTFOUND;
    *used = (size_t)(end - text) + 1;
    return 0;
}

/* Reads the whole values at the beginning of the text; at its end, also one that could go on (a number). */
static int take_values(struct run *r, bool at_end)
{
    struct tc_buf *text = &r->messages.text;
    size_t used = 0;
    int rc = 0;
    while (rc == 0) {
        int split = (r->args.text ? split_text : torc_json_split)(text->data ? text->data : "", text->len, &used);
        if (split == TORC_ENOTFOUND || (split == TORC_EAGAIN && !at_end))
            return 0;
        if (split == TORC_EAGAIN)
            used = text->len;
        struct tc_buf message = {0};
        bool ends = r->args.text && text->data[used - 1] == SEPARATOR;
        rc = run_read_request(r, tc_slice_of(text->data, used - ends), &message);
        if (rc == 0)
            *tc_vec_push(&r->messages.list) = message;
        else
            tc_buf_fini(&message);
        tc_buf_consume(text, used);
    }
    return rc;
}

/* Checks the number of messages for a method that takes one. */
static int check_count(struct run *r)
{
    size_t n = r->messages.list.len;
    if (torc_schema_method_client_streams(r->method))
        return 0;
    if (n == 0)
        add_bytes(r, tc_slice_str(""));
    if (n > 1)
        return cli_fail(NAME, "%s takes one message, and %zu were given", torc_schema_method_path(r->method) + 1, n);
    return 0;
}

int run_read_messages(struct run *r)
{
    struct call_args *a = &r->args;
    struct call_messages *m = &r->messages;
    bool json = r->method && !a->raw && a->kind != CALL_HEX;
    int rc = 0;
    m->shared = a->count != 1;
    if (a->kind == CALL_STDIN && json && !m->shared && torc_schema_method_client_streams(r->method))
        return 0; /* run_read_stdin reads it */
    m->ended = true;
    if (a->kind == CALL_STDIN && !a->dry_run && (rc = cli_read_file(NAME, "-", &a->data)) != 0)
        return rc;
    if (json) {
        m->text = a->data;
        a->data = (struct tc_buf){0};
        rc = take_values(r, true);
    } else if (!r->method || a->kind != CALL_NO_DATA) {
        add_bytes(r, tc_buf_slice(&a->data));
    }
    return rc == 0 && r->method ? check_count(r) : rc;
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
    /* A large value is looked at again only where it may have come to its end. */
    bool may_end = n == 0 || text->len < LARGE_TEXT || strchr("}]\" \n", text->data[text->len - 1]);
    if (rc == 0 && may_end)
        rc = take_values(r, n == 0);
    if (rc != 0) {
        r->failed = true;
        if (r->live)
            torc_stream_cancel(r->live->stream);
    }
    r->messages.ended = rc != 0 || n == 0;
}

void run_messages_fini(struct run *r)
{
    for (size_t i = 0; i < r->messages.list.len; i++)
        tc_buf_fini(&r->messages.list.data[i]);
    tc_vec_fini(&r->messages.list);
    tc_buf_fini(&r->messages.text);
}
