/* torc call: counts calls, and prints results, messages, events, channels and the summary, as text or JSON.
 *
 * JSON is for programs (torc(1)): members may be added, but not renamed. Text is for people; foreign text in it is
 * escaped by cli_append_shown. Each record is built in a buffer, written in one piece and flushed, so that a reader
 * sees it at once (put_line). A failed write is not an error here: cli_output_lost tells it later.
 *
 * Functions keep no reference to their arguments. One thread. */
#include <stdio.h>

#include "base/headers.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "call.h"
#include "cli.h"

/* Adds one to the count of this name. vec: a TC_VEC(struct call_count). */
static void count(void *vec, const char *name)
{
    TC_VEC(struct call_count) *v = vec;
    for (size_t i = 0; i < v->len; i++) {
        if (strcmp(v->data[i].name, name) == 0) {
            v->data[i].n++;
            return;
        }
    }
    struct call_count *c = tc_vec_push(v);
    c->name = tc_strdup(name);
    c->n = 1;
}

void call_totals_add(struct call_totals *t, const torc_result *result, uint64_t latency_us)
{
    t->calls++;
    if (torc_result_code(result) == TORC_STATUS_OK)
        t->ok++;
    count(&t->by_status, torc_status_code_name(torc_result_code(result)));
    if (torc_result_peer(result)[0])
        count(&t->by_peer, torc_result_peer(result));
    histogram_add(&t->latency_us, latency_us);
}

void call_totals_fini(struct call_totals *t)
{
    for (size_t i = 0; i < t->by_status.len; i++)
        tc_free(t->by_status.data[i].name);
    for (size_t i = 0; i < t->by_peer.len; i++)
        tc_free(t->by_peer.data[i].name);
    tc_vec_fini(&t->by_status);
    tc_vec_fini(&t->by_peer);
    histogram_fini(&t->latency_us);
}

/* Appends {"name":["value",...]}. The values of one name keep their order; those of -bin names are base64. */
static void append_metadata(struct tc_buf *out, const torc_metadata *md)
{
    size_t n = torc_metadata_count(md);
    bool first = true;
    tc_buf_append_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        const char *name, *other;
        const void *value;
        size_t len;
        bool seen = false;
        torc_metadata_at(md, i, &name, NULL, NULL);
        for (size_t j = 0; j < i && !seen; j++) {
            torc_metadata_at(md, j, &other, NULL, NULL);
            seen = strcmp(name, other) == 0;
        }
        if (seen)
            continue;
        tc_buf_append_str(out, first ? "" : ",");
        first = false;
        cli_json_string(out, name, strlen(name));
        tc_buf_append_str(out, ":[");
        for (size_t j = i; j < n; j++) {
            torc_metadata_at(md, j, &other, &value, &len);
            if (strcmp(name, other) != 0)
                continue;
            tc_buf_append_str(out, j == i ? "" : ",");
            if (tc_header_is_binary(tc_slice_str(name))) {
                tc_buf_append_char(out, '"');
                tc_base64_encode(out, value, len, true);
                tc_buf_append_char(out, '"');
            } else {
                cli_json_string(out, value, len);
            }
        }
        tc_buf_append_char(out, ']');
    }
    tc_buf_append_char(out, '}');
}

static void append_shown(struct tc_buf *b, const char *text)
{
    cli_append_shown(b, text, strlen(text));
}

static void append_shown_after(struct tc_buf *b, const char *before, const char *text)
{
    tc_buf_append_str(b, before);
    append_shown(b, text);
}

/* Appends the explanation of one call, without the member "channel" that --dry-run gives it: call_print_channel prints
 * the channel once, at the end. */
static void append_explanation(struct tc_buf *b, const char *json)
{
    json_t *o = json_loads(json, 0, NULL);
    json_object_del(o, "channel");
    char *text = o ? tc_json_text(o, false) : NULL;
    append_shown(b, text ? text : json);
    tc_free(text);
    json_decref(o);
}

/* Ends the record with a line end, writes it, and frees the buffer. */
static void put_line(struct tc_buf *b)
{
    tc_buf_append_char(b, '\n');
    fwrite(b->data, 1, b->len, stdout);
    cli_flush();
    tc_buf_fini(b);
}

static void append_hex(struct tc_buf *b, const torc_message *message)
{
    tc_buf_append_str(b, ",\"response_hex\":\"");
    tc_hex_encode(b, torc_message_data(message), torc_message_size(message));
    tc_buf_append_char(b, '"');
}

/* Appends the member "response" (--format text: "response_text"), or "response_error". For bytes, appends neither. */
static void append_response(struct tc_buf *b, const struct call_args *a, const char *json, const char *error)
{
    if (json && a->request.text) {
        tc_buf_append_str(b, ",\"response_text\":");
        cli_json_string(b, json, strlen(json));
    } else if (json) {
        append_shown_after(b, ",\"response\":", json);
    }
    if (error) {
        tc_buf_append_str(b, ",\"response_error\":");
        cli_json_string(b, error, strlen(error));
    }
}

static void append_explain_member(struct tc_buf *b, const char *explain)
{
    if (!explain)
        return;
    tc_buf_append_str(b, ",\"explain\":");
    append_explanation(b, explain);
}

static void print_result_json(const struct call_args *a, const struct call_outcome *o)
{
    struct tc_buf b = {0};
    const torc_result *r = o->result;
    tc_buf_printf(&b, "{\"call\":{\"i\":%llu,\"code\":%d,\"status\":\"%s\",\"message\":", (unsigned long long)o->i,
                  torc_result_code(r), torc_status_code_name(torc_result_code(r)));
    cli_json_string(&b, torc_result_text(r), strlen(torc_result_text(r)));
    tc_buf_append_str(&b, ",\"peer\":");
    cli_json_string(&b, torc_result_peer(r), strlen(torc_result_peer(r)));
    tc_buf_printf(&b, ",\"latency_us\":%llu,\"attempts\":%u", (unsigned long long)o->latency_us,
                  torc_result_attempts(r));
    append_hex(&b, o->response);
    append_response(&b, a, o->json, o->json_error);
    tc_buf_append_str(&b, ",\"headers\":");
    append_metadata(&b, torc_result_headers(r));
    tc_buf_append_str(&b, ",\"trailers\":");
    append_metadata(&b, torc_result_trailers(r));
    if (o->details)
        append_shown_after(&b, ",\"details\":", o->details);
    if (o->is_stream)
        tc_buf_printf(&b, ",\"messages\":{\"sent\":%llu,\"received\":%llu}", (unsigned long long)o->sent,
                      (unsigned long long)o->received);
    if (a->timing)
        tc_buf_printf(
            &b, ",\"timing\":{\"schema_us\":%llu,\"headers_us\":%llu,\"first_message_us\":%llu,\"total_us\":%llu}",
            (unsigned long long)o->schema_us, (unsigned long long)o->headers_us, (unsigned long long)o->first_us,
            (unsigned long long)o->latency_us);
    append_explain_member(&b, torc_result_explain(r));
    tc_buf_append_str(&b, "}}");
    put_line(&b);
}

static void print_message_json(const struct call_args *a, const struct call_message *m)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "{\"message\":{\"i\":%llu,\"n\":%llu", (unsigned long long)m->i, (unsigned long long)m->n);
    append_hex(&b, m->message);
    append_response(&b, a, m->json, m->json_error);
    append_explain_member(&b, m->explain);
    tc_buf_append_str(&b, "}}");
    put_line(&b);
}

/* Appends what a call of --dry-run would wait for. */
static void append_awaited(struct tc_buf *b, const json_t *explain, const char *endpoint)
{
    const json_t *list = json_object_get(explain, "waits_for"), *item;
    size_t i;
    if (*endpoint)
        append_shown_after(b, "  for a connection to ", endpoint);
    else if (json_array_size(list) == 0)
        tc_buf_append_str(b, "  until its endpoints are known");
    json_array_foreach(list, i, item)
        append_shown_after(b, i ? ", " : "  for a connection to ", json_string_value(item));
}

/* Appends the status (with --dry-run, the outcome), the peer and the latency. */
static void append_status(struct tc_buf *b, const char *status, bool bad, const char *peer, uint64_t latency_us)
{
    bool colour = cli_colour();
    struct tc_buf scratch = {0};
    tc_buf_printf(b, "%s%-18s%s %-22s ", colour ? (bad ? "\033[31m" : "\033[32m") : "", status, colour ? "\033[0m" : "",
                  *peer ? cli_shown(&scratch, peer) : "-");
    tc_buf_fini(&scratch);
    cli_format_us(b, latency_us);
}

static const char *string_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static void append_dry(struct tc_buf *b, const torc_result *r, uint64_t latency_us)
{
    json_t *explain = json_loads(torc_result_explain(r) ? torc_result_explain(r) : "{}", 0, NULL);
    const char *outcome = string_of(explain, "outcome"), *endpoint = string_of(explain, "endpoint");
    append_status(b, torc_result_code(r) ? torc_status_code_name(torc_result_code(r)) : outcome,
                  torc_result_code(r) != 0, endpoint, latency_us);
    if (strcmp(outcome, "wait") == 0)
        append_awaited(b, explain, endpoint);
    json_decref(explain);
}

/* Appends a message: its JSON or text on lines of its own, else its bytes if they are short UTF-8, else its size. Bytes
 * that are absent or empty add nothing. Then appends the error. */
static void append_body(struct tc_buf *b, const torc_message *message, const char *json, const char *error)
{
    size_t size = torc_message_size(message);
    struct tc_slice text = tc_slice_of(torc_message_data(message), size);
    if (json) {
        tc_buf_append_char(b, '\n');
        cli_append_lines(b, json);
    } else if (size && size <= 200 && tc_utf8_valid(text)) {
        tc_buf_append_str(b, "  ");
        cli_json_string(b, text.data, text.len);
    } else if (size) {
        tc_buf_printf(b, "  (%zu bytes)", size);
    }
    if (error)
        append_shown_after(b, "\n       cannot be shown: ", error);
}

static void append_note(struct tc_buf *b, const char *explain)
{
    if (!explain)
        return;
    tc_buf_append_str(b, "\n       ");
    append_explanation(b, explain);
}

static void append_fields(struct tc_buf *b, const char *kind, const torc_metadata *md)
{
    for (size_t i = 0; i < torc_metadata_count(md); i++) {
        const char *name;
        const void *value;
        size_t len;
        torc_metadata_at(md, i, &name, &value, &len);
        tc_buf_printf(b, "\n       %s ", kind);
        append_shown_after(b, name, ": ");
        if (tc_header_is_binary(tc_slice_str(name)))
            tc_base64_encode(b, value, len, true);
        else
            cli_append_shown(b, value, len);
    }
}

static void append_time(struct tc_buf *b, const char *what, uint64_t us)
{
    if (!us)
        return;
    tc_buf_printf(b, "%s ", what);
    cli_format_us(b, us);
}

/* Appends a line for each item of a JSON array; `details` may be NULL. Copies the items' text, so that numbers keep
 * their digits. */
static void append_details(struct tc_buf *b, const char *details)
{
    struct tc_slice rest = tc_slice_str(details ? details : "");
    size_t used;
    while (rest.len && torc_json_split(++rest.data, --rest.len, &used) == 0 && *rest.data != ']') {
        tc_buf_append_str(b, "\n       detail ");
        cli_append_shown(b, rest.data, used);
        rest = tc_slice_of(rest.data + used, rest.len - used);
    }
}

static void print_result_text(const struct call_args *a, const struct call_outcome *o)
{
    struct tc_buf b = {0};
    const torc_result *r = o->result;
    tc_buf_printf(&b, "#%-5llu ", (unsigned long long)o->i);
    if (a->dry_run)
        append_dry(&b, r, o->latency_us);
    else
        append_status(&b, torc_status_code_name(torc_result_code(r)), torc_result_code(r) != 0, torc_result_peer(r),
                      o->latency_us);
    if (torc_result_attempts(r) > 1)
        tc_buf_printf(&b, "  %u attempts", torc_result_attempts(r));
    if (o->is_stream)
        tc_buf_printf(&b, "  %llu sent, %llu received", (unsigned long long)o->sent, (unsigned long long)o->received);
    if (torc_result_code(r))
        append_shown_after(&b, "  ", torc_result_text(r));
    append_details(&b, o->details);
    if (a->show_metadata) {
        append_fields(&b, "header", torc_result_headers(r));
        append_fields(&b, "trailer", torc_result_trailers(r));
    }
    if (a->timing) {
        append_time(&b, "\n       types", o->schema_us);
        append_time(&b, "\n       headers", o->headers_us);
        append_time(&b, "\n       first message", o->first_us);
        append_time(&b, "\n       end", o->latency_us);
    }
    append_note(&b, torc_result_explain(r));
    append_body(&b, o->response, o->json, o->json_error);
    put_line(&b);
}

static void print_message_text(const struct call_message *m)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "#%-5llu message %llu", (unsigned long long)m->i, (unsigned long long)m->n);
    append_note(&b, m->explain);
    append_body(&b, m->message, m->json, m->json_error);
    put_line(&b);
}

void call_print_result(const struct call_args *a, const struct call_outcome *o)
{
    if (a->quiet)
        return;
    if (a->json)
        print_result_json(a, o);
    else
        print_result_text(a, o);
}

void call_print_message(const struct call_args *a, const struct call_message *m)
{
    if (a->quiet)
        return;
    if (a->json)
        print_message_json(a, m);
    else
        print_message_text(m);
}

void call_print_event(const struct call_args *a, uint64_t t_ms, const char *kind, const char *detail,
                      const char *reason)
{
    struct tc_buf b = {0};
    bool state = strcmp(kind, "state") == 0;
    if (a->json) {
        tc_buf_printf(&b, "{\"event\":{\"t_ms\":%llu,\"kind\":\"%s\",\"%s\":", (unsigned long long)t_ms, kind,
                      state ? "state" : "address");
        cli_json_string(&b, detail, strlen(detail));
        if (reason && *reason) {
            tc_buf_append_str(&b, ",\"reason\":");
            cli_json_string(&b, reason, strlen(reason));
        }
        tc_buf_append_str(&b, "}}");
    } else {
        tc_buf_printf(&b, "%8.3f s  %-14s ", (double)t_ms / 1000.0, kind);
        append_shown(&b, detail);
        if (reason && *reason) {
            append_shown_after(&b, "  (", reason);
            tc_buf_append_char(&b, ')');
        }
    }
    put_line(&b);
}

void call_print_channel(const struct call_args *a, const char *json)
{
    struct tc_buf b = {0};
    json_t *o = a->json ? NULL : json_loads(json, 0, NULL);
    char *text = o ? tc_json_text(o, true) : NULL;
    if (text) {
        cli_append_lines(&b, text);
    } else {
        append_shown_after(&b, "{\"channel\":", json);
        tc_buf_append_char(&b, '}');
    }
    put_line(&b);
    tc_free(text);
    json_decref(o);
}

static void append_counts(struct tc_buf *b, const struct call_count *counts, size_t n)
{
    tc_buf_append_char(b, '{');
    for (size_t i = 0; i < n; i++) {
        tc_buf_append_str(b, i ? "," : "");
        cli_json_string(b, counts[i].name, strlen(counts[i].name));
        tc_buf_printf(b, ":%llu", (unsigned long long)counts[i].n);
    }
    tc_buf_append_char(b, '}');
}

static void print_summary_json(const struct call_totals *t)
{
    struct tc_buf b = {0};
    const struct histogram *h = &t->latency_us;
    tc_buf_printf(&b, "{\"summary\":{\"calls\":%llu,\"ok\":%llu,\"by_status\":", (unsigned long long)t->calls,
                  (unsigned long long)t->ok);
    append_counts(&b, t->by_status.data, t->by_status.len);
    tc_buf_append_str(&b, ",\"by_peer\":");
    append_counts(&b, t->by_peer.data, t->by_peer.len);
    tc_buf_printf(&b, ",\"latency_us\":{\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"max\":%llu}",
                  (unsigned long long)histogram_at(h, 0.5), (unsigned long long)histogram_at(h, 0.9),
                  (unsigned long long)histogram_at(h, 0.99), (unsigned long long)h->max);
    tc_buf_printf(&b, ",\"seconds\":%.3f,\"cpu_seconds\":%.3f}}", t->seconds, t->cpu_seconds);
    put_line(&b);
}

static void append_table(struct tc_buf *b, const char *title, const struct call_count *counts, size_t n, uint64_t all)
{
    struct tc_buf scratch = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(b, "%-10s %-24s %10llu  %5.1f %%\n", i ? "" : title, cli_shown(&scratch, counts[i].name),
                      (unsigned long long)counts[i].n, 100.0 * (double)counts[i].n / (double)all);
    tc_buf_fini(&scratch);
}

/* The summary of --dry-run as text. It has no peers and latencies, since nothing was sent. */
static void print_summary_dry(const struct call_totals *t)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "%llu calls, none sent: %llu would fail", (unsigned long long)t->calls,
                  (unsigned long long)(t->calls - t->ok));
    put_line(&b);
}

static void print_summary_text(const struct call_totals *t)
{
    struct tc_buf b = {0};
    const struct histogram *h = &t->latency_us;
    tc_buf_printf(&b, "%llu calls, %llu OK, %.3f s, %.3f s CPU\n", (unsigned long long)t->calls,
                  (unsigned long long)t->ok, t->seconds, t->cpu_seconds);
    append_table(&b, "status", t->by_status.data, t->by_status.len, t->calls);
    append_table(&b, "peer", t->by_peer.data, t->by_peer.len, t->calls);
    tc_buf_append_str(&b, "latency    p50 ");
    cli_format_us(&b, histogram_at(h, 0.5));
    tc_buf_append_str(&b, ", p90 ");
    cli_format_us(&b, histogram_at(h, 0.9));
    tc_buf_append_str(&b, ", p99 ");
    cli_format_us(&b, histogram_at(h, 0.99));
    tc_buf_append_str(&b, ", max ");
    cli_format_us(&b, h->max);
    put_line(&b);
}

void call_print_summary(const struct call_args *a, const struct call_totals *t)
{
    if (a->json)
        print_summary_json(t);
    else if (a->dry_run && (a->quiet || t->calls > 1))
        print_summary_dry(t);
    else if (a->quiet || t->calls > 1)
        print_summary_text(t);
}
