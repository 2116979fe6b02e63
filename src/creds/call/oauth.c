/* Access tokens of OAuth 2.0 from two endpoints: the metadata server, which answers a GET, and a token endpoint, which
 * takes a refresh token by POST.
 *
 * A URL without TLS, such as the metadata server's, is asked without a proxy. A token of the metadata server counts
 * only with the header "Metadata-Flavor: Google", which another server at that address does not send: an answer of
 * status 200 without the header is UNAUTHENTICATED. A fetch that gets no answer, or one of more than
 * TC_HTTP_MAX_BODY_BYTES, is UNAVAILABLE. tc_oauth_token and tc_token_refuse_expired have the rest of the failures.
 * Texts name the endpoint, never the token.
 *
 * An endpoint is a token source (creds/call/token.h), and owns its strings, which do not change. A fetch has a thread
 * of its own; `stop` ends the fetch from another thread. Buffers with secrets are wiped. */
#include "creds/call/oauth.h"

#include "base/headers.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "creds/call/http.h"

/* The header of requests to a metadata server, and of its answers. */
#define FLAVOR "Metadata-Flavor: Google"
/* Longer lifetimes are cut to a thousand days. */
#define MAX_LIFETIME_S 86400e3

/* http-grpc-status-mapping.md */
static bool status_is_unavailable(int http_status)
{
    return http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504;
}

/* Appends the "error" of a JSON body as " (invalid_grant)", if the error is at most 64 bytes of printable ASCII. */
static void error_append(struct tc_buf *b, struct tc_slice body)
{
    json_t *v = tc_json_parse(body, NULL);
    const char *error = json_string_value(json_object_get(v, "error"));
    if (error && strlen(error) <= 64 && tc_header_value_valid(tc_slice_str(error)))
        tc_buf_printf(b, " (%s)", error);
    json_decref(v);
}

/* Reads the body of an answer of status 200 into *out, and wipes the token in the parsed JSON. Returns false with the
 * reason, a static text, in *why. */
static bool answer_parse(struct tc_slice body, int64_t now_ns, struct tc_token *out, const char **why)
{
    json_t *v = tc_json_parse(body, NULL);
    const char *token = json_string_value(json_object_get(v, "access_token"));
    const char *type = json_string_value(json_object_get(v, "token_type"));
    const json_t *lifetime = json_object_get(v, "expires_in");
    if (!type || tc_slice_ieq(tc_slice_str(type), tc_slice_str("bearer")))
        type = "Bearer";
    *why = NULL;
    if (!json_is_object(v))
        *why = "its answer is not a JSON object";
    else if (!token)
        *why = "its answer has no string access_token";
    else if (!json_is_number(lifetime))
        *why = "its answer has no number expires_in";
    else if (!(out->metadata = tc_auth_metadata_token(type, tc_slice_str(token))))
        *why = "its token cannot be sent in a header";
    else
        out->expires_ns =
            now_ns + (int64_t)(TC_MIN(TC_MAX(json_number_value(lifetime), -MAX_LIFETIME_S), MAX_LIFETIME_S) * 1e9);
    if (token)
        explicit_bzero((char *)(uintptr_t)token, strlen(token));
    json_decref(v);
    return !*why;
}

void tc_oauth_token(const char *who, int http_status, struct tc_slice body, int64_t now_ns, struct tc_token *out)
{
    const char *why;
    if (http_status != 200) {
        struct tc_buf error = {0};
        error_append(&error, body);
        tc_token_fail(out, tc_status_make(status_is_unavailable(http_status) ? TORC_STATUS_UNAVAILABLE
                                                                             : TORC_STATUS_UNAUTHENTICATED,
                                          TORC_LAYER_CREDENTIALS, "no token from %s: HTTP status %d%s", who,
                                          http_status, tc_buf_cstr(&error)));
        tc_buf_fini(&error);
    } else if (!answer_parse(body, now_ns, out, &why)) {
        tc_token_fail(
            out, tc_status_make(TORC_STATUS_UNAUTHENTICATED, TORC_LAYER_CREDENTIALS, "no token from %s: %s", who, why));
    }
}

/* A source of tokens: either endpoint. */
struct endpoint {
    struct tc_token_source base;
    struct tc_http_stop stop;
    char *url;
    char *form;       /* NULL: a metadata server */
    char *roots_file; /* NULL: the system's */
    uint64_t timeout_ms;
};

static void endpoint_fetch(struct tc_token_source *s, struct tc_token *out)
{
    struct endpoint *e = TC_CONTAINER_OF(s, struct endpoint, base);
    struct tc_http_request request = {
        .url = e->url,
        .header = e->form ? NULL : FLAVOR,
        .marked = e->form ? NULL : FLAVOR,
        .form = e->form,
        .roots_file = e->roots_file,
        /* Without TLS a proxy would read the token. */
        .direct = tc_slice_istarts(tc_slice_str(e->url), tc_slice_str("http://")),
        .timeout_ms = e->timeout_ms,
    };
    struct tc_buf body = {0};
    char *why = NULL;
    int status = 0;
    /* Reserved at once: a buffer that grows would leave parts of the token in freed memory. */
    tc_buf_reserve(&body, TC_HTTP_MAX_BODY_BYTES);
    int rc = tc_http_fetch(&request, &e->stop, &status, &body, &why);
    if (rc == 0)
        tc_oauth_token(e->url, status, tc_buf_slice(&body), tc_system_clock.realtime_ns(NULL), out);
    else
        tc_token_fail(out, tc_status_make(rc == TORC_EPARSE ? TORC_STATUS_UNAUTHENTICATED : TORC_STATUS_UNAVAILABLE,
                                          TORC_LAYER_CREDENTIALS, "no token from %s: %s", e->url, why));
    tc_free(why);
    tc_buf_wipe(&body);
}

static void endpoint_stop(struct tc_token_source *s)
{
    tc_http_stop_now(&TC_CONTAINER_OF(s, struct endpoint, base)->stop);
}

static void endpoint_free(struct tc_token_source *s)
{
    struct endpoint *e = TC_CONTAINER_OF(s, struct endpoint, base);
    tc_http_stop_fini(&e->stop);
    tc_free(e->url);
    tc_free_secret(e->form); /* the client's secret and the refresh token */
    tc_free(e->roots_file);
    tc_free(e);
}

/* Makes credentials with tokens of an endpoint. Takes over the url and the form, and copies roots_file. */
static torc_call_credentials *endpoint_new(char *url, char *form, const char *roots_file, uint64_t timeout_ms)
{
    static const struct tc_token_source_ops ops = {
        .type = "google_default", .fetch = endpoint_fetch, .abort = endpoint_stop, .free = endpoint_free};
    struct endpoint *e = TC_NEW(struct endpoint);
    e->base.ops = &ops;
    tc_http_stop_init(&e->stop);
    e->base.from = e->url = url;
    e->timeout_ms = timeout_ms;
    e->form = form;
    e->roots_file = roots_file ? tc_strdup(roots_file) : NULL;
    return tc_token_creds_new(&e->base, &tc_system_clock);
}

torc_call_credentials *tc_metadata_server_creds(const char *host, uint64_t timeout_ms)
{
    char *url = tc_asprintf("http://%s/computeMetadata/v1/instance/service-accounts/default/token", host);
    return endpoint_new(url, NULL, NULL, timeout_ms);
}

static void form_append_member(struct tc_buf *form, const char *name, const char *value)
{
    tc_buf_printf(form, "&%s=", name);
    tc_uri_encode(form, tc_slice_str(value), "");
}

torc_call_credentials *tc_refresh_token_creds(const struct tc_refresh_opts *o)
{
    struct tc_buf form = {0};
    /* Reserved at once: a buffer that grows would leave secrets in freed memory. Percent-encoding makes at most three
     * bytes of one. */
    tc_buf_reserve(&form, 128 + 3 * (strlen(o->client_id) + strlen(o->client_secret) + strlen(o->refresh_token)));
    tc_buf_append_str(&form, "grant_type=refresh_token");
    form_append_member(&form, "client_id", o->client_id);
    form_append_member(&form, "client_secret", o->client_secret);
    form_append_member(&form, "refresh_token", o->refresh_token);
    return endpoint_new(tc_strdup(o->token_uri), tc_buf_take(&form), o->roots_file, TC_TOKEN_FETCH_MS);
}
