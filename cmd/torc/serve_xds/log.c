/* torc serve-xds --log json. */
#include <stdio.h>

#include "base/mem.h"
#include "cli.h"
#include "proto/json.h"
#include "serve_xds.h"

/* Prints and frees `b`. If that fails, the line is dropped and the server goes on. One message tells the first loss;
 * another counts the lost lines when writing works again. */
static void print_line(struct tc_buf *b)
{
    static uint64_t lost;
    tc_buf_append_char(b, '\n');
    if (cli_write(tc_buf_slice(b))) {
        if (lost)
            cli_fail("serve-xds", "the log can be written again; %llu lines were lost", (unsigned long long)lost);
        lost = 0;
    } else {
        if (lost++ == 0)
            cli_fail("serve-xds", "cannot write the log; its lines are lost until it can be written: %m");
        clearerr(stdout);
    }
    tc_buf_fini(b);
}

static void add_text(struct tc_buf *b, const char *key, struct tc_slice text)
{
    tc_buf_printf(b, "%s\"%s\":", b->data[b->len - 1] == '{' ? "" : ",", key);
    cli_json_string(b, text.data, text.len);
}

static void add_names(struct tc_buf *b, const char *key, const struct tc_slice *names, size_t n)
{
    tc_buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        tc_buf_append_str(b, i ? "," : "");
        cli_json_string(b, names[i].data, names[i].len);
    }
    tc_buf_append_char(b, ']');
}

void serve_log_ads(void *arg, const struct tc_ads_request *r)
{
    struct tc_buf b = {0};
    (void)arg;
    tc_buf_append_str(&b, "{\"ads\":{");
    add_text(&b, "node", r->node_id);
    add_text(&b, "type", r->type_url);
    add_text(&b, "version", r->version);
    add_text(&b, "nonce", r->nonce);
    add_names(&b, "names", r->names, r->n_names);
    if (r->has_error)
        add_text(&b, "error", r->error_text);
    else
        tc_buf_append_str(&b, ",\"error\":null");
    if (r->delta) {
        tc_buf_append_str(&b, ",\"delta\":true");
        add_names(&b, "unsubscribed", r->unsubscribed, r->n_unsubscribed);
        tc_buf_printf(&b, ",\"initial_versions\":%zu", r->n_initial);
    }
    tc_buf_printf(&b, ",\"stream\":%llu}}", (unsigned long long)r->stream);
    print_line(&b);
}

void serve_log_lrs(void *arg, const struct tc_lrs_report *r)
{
    struct tc_buf b = {0};
    (void)arg;
    tc_buf_append_str(&b, "{\"lrs\":{");
    add_text(&b, "node", r->node_id);
    tc_buf_printf(&b, ",\"stream\":%llu,\"cluster_stats\":[", (unsigned long long)r->stream);
    for (size_t i = 0; i < r->request->n_cluster_stats; i++) {
        json_t *stats = tc_proto_to_json(&r->request->cluster_stats[i]->base, NULL);
        char *text = stats ? tc_json_text(stats, false) : NULL;
        tc_buf_printf(&b, "%s%s", i ? "," : "", text ? text : "null");
        tc_free(text);
        json_decref(stats);
    }
    tc_buf_append_str(&b, "]}}");
    print_line(&b);
}
