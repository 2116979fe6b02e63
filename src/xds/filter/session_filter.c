/* Stateful sessions at work (A55, A60, A61).
 *
 *   request    cookie "base64(1.1.1.1:80[,...];cluster:NAME)": the RPC goes to that cluster of its route, and
 *              xds_override_host picks that endpoint if it can be used
 *   response   set-cookie with the picked endpoint and the cluster, if the request had no cookie or another value
 *
 * A cookie that cannot be followed does not change the route: the RPC is routed as usual, a line in the log says why,
 * and the response replaces the cookie unless its value is that of the pick. Cookies name IP addresses only, so an
 * endpoint that has none gets no sessions. If a chain has several session filters, the last one whose cookie can be
 * followed gives the session; without such a cookie the first one whose path matches does.
 *
 * Sessions, decoded cookies and new headers live in the call's arena. Loop thread only. Read session_start and
 * session_response first. */
#include "xds/filter/session_filter.h"

#include "base/log.h"
#include "base/parse.h"
#include "lb/session_affinity.h"
#include "xds/resource/session_filter.h"

enum {
    /* TC_SESSION_ADDRS_MAX IPv6 addresses take 4 KB in base64; the rest is for the cluster's name. */
    MAX_COOKIE_BYTES = 16384,
};

static const struct tc_slice cluster_prefix = {"cluster:", sizeof("cluster:") - 1};

/* Returns whether the cookie belongs to the request's path by RFC 6265 5.1.4. The query does not count. The cookie's
 * path is not empty. */
static bool cookie_path_matches(struct tc_slice cookie, struct tc_slice request)
{
    ptrdiff_t query = tc_slice_find(request, tc_slice_str("?"));
    if (query >= 0)
        request.len = (size_t)query;
    if (!tc_slice_starts(request, cookie))
        return false;
    return request.len == cookie.len || cookie.data[cookie.len - 1] == '/' || request.data[cookie.len] == '/';
}

/* Stores the value of the first cookie of that name in a field like "a=1; b=2", borrowed from the field. Returns false
 * if there is none. */
static bool cookie_find_in_field(struct tc_slice field, struct tc_slice name, struct tc_slice *value)
{
    bool more = true;
    struct tc_slice pair;
    while (tc_slice_split(&field, &more, ';', &pair)) {
        pair = tc_slice_trim(pair);
        if (!tc_slice_starts(pair, name) || pair.len == name.len || pair.data[name.len] != '=')
            continue;
        *value = tc_slice_of(pair.data + name.len + 1, pair.len - name.len - 1);
        return true;
    }
    return false;
}

/* Stores the value of the first cookie of that name in all "cookie" fields, borrowed from the headers. Returns false if
 * there is none. */
static bool cookie_find(const struct tc_headers *headers, struct tc_slice name, struct tc_slice *value)
{
    for (size_t i = 0; i < headers->len; i++)
        if (tc_slice_eq_str(headers->data[i].name, "cookie") &&
            cookie_find_in_field(headers->data[i].value, name, value))
            return true;
    return false;
}

/* Reads "1.1.1.1:80,2.2.2.2:80" into the session. Returns false, and leaves the session unchanged, if a part is not an
 * IP address with a port, or if there are more than TC_SESSION_ADDRS_MAX parts. */
static bool session_read_addresses(struct tc_slice text, struct tc_arena *arena, struct tc_session *s)
{
    size_t n = 1, i = 0;
    for (size_t k = 0; k < text.len; k++)
        n += text.data[k] == ',';
    if (n > TC_SESSION_ADDRS_MAX)
        return false;
    struct tc_addr *addrs = tc_arena_calloc(arena, n, sizeof(*addrs));
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&text, &more, ',', &part)) {
        /* Only IP addresses: a path of a unix socket could hold the separators. */
        if (tc_slice_starts(part, tc_slice_str("unix")) || tc_addr_parse(&addrs[i++], part) != 0)
            return false;
    }
    s->addrs = addrs;
    s->n = n;
    return true;
}

/* Follows the cookie: stores its addresses in the session, and sends the RPC to its cluster. Returns NULL; or, if the
 * cookie cannot be followed, the reason, a static text, with the level at which to log it in *level. Sets s->cookie in
 * either case, unless the value is too long or is not base64. */
static const char *cookie_follow(struct tc_filter_call *call, struct tc_slice value, struct tc_session *s,
                                 enum torc_log_level *level)
{
    struct tc_buf raw = {0};
    *level = TORC_LOG_WARN;
    if (value.len > MAX_COOKIE_BYTES)
        return "the cookie is too long";
    if (tc_base64_decode(&raw, value) != 0) {
        tc_buf_fini(&raw);
        return "the cookie is not base64";
    }
    struct tc_slice text = tc_slice_of(tc_arena_dup(call->arena, tc_buf_slice(&raw)), raw.len);
    tc_buf_fini(&raw);
    struct tc_slice addrs = text, cluster = {0};
    ptrdiff_t semicolon = tc_slice_find(text, tc_slice_str(";"));
    if (semicolon >= 0) {
        addrs.len = (size_t)semicolon;
        cluster = tc_slice_of(text.data + semicolon + 1, text.len - (size_t)semicolon - 1);
    }
    s->cookie = text;
    struct tc_session read = *s;
    if (!session_read_addresses(addrs, call->arena, &read))
        return "the cookie names no IP addresses with ports";
    if (semicolon >= 0) { /* A60's form; a cookie without a cluster has A55's form */
        if (!tc_slice_starts(cluster, cluster_prefix))
            return "the cookie names no cluster";
        cluster = tc_slice_of(cluster.data + cluster_prefix.len, cluster.len - cluster_prefix.len);
        if (!tc_slice_eq(cluster, call->config->cluster) && !tc_http_filter_chain_use_cluster(call, cluster)) {
            *level = TORC_LOG_DEBUG; /* not the client's fault: routes change */
            return "the route has no such cluster";
        }
    }
    *s = read;
    return NULL;
}

static enum tc_filter_verdict session_start(const struct tc_call_filter *f, struct tc_filter_call *call, void **state)
{
    const struct tc_session_config *config = f->config;
    struct tc_slice value;
    if (!cookie_path_matches(config->path, call->path))
        return TC_FILTER_NEXT;
    struct tc_session *s = tc_arena_calloc(call->arena, 1, sizeof(*s));
    *state = s;
    if (cookie_find(call->metadata, config->name, &value)) {
        enum torc_log_level level;
        s->has_cookie = true;
        s->passed_over = cookie_follow(call, value, s, &level);
        if (s->passed_over)
            TC_LOG(TC_LOG_MESH, level, "the cookie \"%.*s\" of %.*s is ignored: %s",
                   (int)TC_MIN(config->name.len, (size_t)256), config->name.data,
                   (int)TC_MIN(call->path.len, (size_t)256), call->path.data, s->passed_over);
    }
    /* A filter whose cookie cannot be followed does not replace the session of a filter before it. */
    if (!call->config->session || s->n)
        call->config->session = s;
    return TC_FILTER_NEXT;
}

/* Returns "NAME=BASE64; HttpOnly; Path=/; Max-Age=60", in the arena. No Max-Age without a ttl. */
static struct tc_slice cookie_format(const struct tc_session_config *config, struct tc_slice value,
                                     struct tc_arena *arena)
{
    struct tc_buf b = {0};
    tc_buf_append_slice(&b, config->name);
    tc_buf_append_char(&b, '=');
    tc_base64_encode(&b, value.data, value.len, true);
    tc_buf_append_str(&b, "; HttpOnly; Path=");
    tc_buf_append_slice(&b, config->path);
    if (config->ttl_s)
        tc_buf_printf(&b, "; Max-Age=%llu", (unsigned long long)config->ttl_s);
    struct tc_slice out = tc_slice_of(tc_arena_dup(arena, tc_buf_slice(&b)), b.len);
    tc_buf_fini(&b);
    return out;
}

/* Returns the headers (NULL: none) and a set-cookie behind them, in the arena. The names and values of `headers` are
 * not copied. */
static const struct tc_headers *headers_with_cookie(const struct tc_headers *headers, struct tc_slice value,
                                                    struct tc_arena *arena)
{
    struct tc_headers *out = tc_arena_calloc(arena, 1, sizeof(*out));
    tc_headers_init(out, arena);
    for (size_t i = 0; headers && i < headers->len; i++)
        tc_headers_add(out, headers->data[i].name, headers->data[i].value);
    tc_headers_add(out, tc_slice_str("set-cookie"), value);
    return out;
}

/* A60: sets a cookie if the request had none, or if its value is not that of the picked endpoint and cluster. Sets none
 * if the filter's path does not match the request's (*state is NULL then), if the pick did not pass xds_override_host,
 * or if it chose an endpoint that xds_override_host does not know or that has no IP address. */
static const struct tc_headers *session_response(const struct tc_call_filter *f, struct tc_filter_call *call,
                                                 void **state, const struct tc_headers *headers)
{
    const struct tc_session *s = *state;
    struct tc_slice picked = call->config->session ? call->config->session->picked : tc_slice_of(NULL, 0);
    if (!s || !picked.len)
        return headers;
    struct tc_buf value = {0};
    tc_buf_append_slice(&value, picked);
    tc_buf_append_char(&value, ';');
    tc_buf_append_slice(&value, cluster_prefix);
    tc_buf_append_slice(&value, call->config->cluster);
    if (!s->has_cookie || !tc_slice_eq(s->cookie, tc_buf_slice(&value)))
        headers =
            headers_with_cookie(headers, cookie_format(f->config, tc_buf_slice(&value), call->arena), call->arena);
    tc_buf_fini(&value);
    return headers;
}

static bool session_applies(const void *config)
{
    return ((const struct tc_session_config *)config)->on;
}

static const struct tc_call_filter_ops ops = {.start = session_start, .response = session_response};

const struct tc_http_filter_type tc_http_filter_session = {
    .config_name = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession",
    .override_name = "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute",
    .on_clients = true,
    .parse = tc_session_config_parse,
    .parse_override = tc_session_override_parse,
    .ops = &ops,
    .applies = session_applies,
};

bool tc_listener_has_sessions(const struct tc_listener *listener)
{
    for (size_t i = 0; listener && i < listener->n_filters; i++)
        if (listener->filters[i].type == &tc_http_filter_session)
            return true;
    return false;
}
