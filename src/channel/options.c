/* The checks of channel options that the table of base/options.c cannot express: credentials, texts, and options that
 * depend on one another. The errors go to the application. */
#include "channel/options.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/headers.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "creds/creds.h"
#include "io/addr.h"
#include "resolver/proxy.h"
#include "ring/ring.h"

enum { MIN_KEEPALIVE_MS = 10000 };

/* Warns of a malformed value once in a process. */
uint32_t tc_channel_default_ring_cap(void)
{
    const char *text = getenv("GRPC_RING_HASH_CAP");
    uint64_t cap;
    if (!text)
        return TC_RING_DEFAULT_CAP;
    if (tc_parse_u64(tc_slice_str(text), TC_RING_SIZE_MAX, &cap) == 0 && cap > 0)
        return (uint32_t)cap;
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (tc_log_enabled(TC_LOG_CHANNEL, TORC_LOG_WARN) && !atomic_flag_test_and_set(&told))
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "GRPC_RING_HASH_CAP=\"%s\" is not in 1..%u: ignored", text,
               TC_RING_SIZE_MAX);
    return TC_RING_DEFAULT_CAP;
}

static bool proxy_is_valid(const char *url)
{
    struct tc_buf host_port = {0}, authorization = {0};
    bool ok = !*url || tc_proxy_url_parse(url, &host_port, &authorization) == 0;
    tc_buf_fini(&host_port);
    tc_buf_fini(&authorization);
    return ok;
}

/* Accepts "host", "host:80", "[::1]", "[::1]:80" and "::1". Strict, because the authority becomes a header, and the
 * name that the server's certificate must have. A NUL must follow `s`. */
static bool authority_is_valid(struct tc_slice s)
{
    struct tc_slice host, rest;
    uint64_t port;
    if (!tc_addr_split(s, &host, &rest) || !tc_header_value_valid(s) || strpbrk(s.data, " /?#"))
        return false;
    return rest.len == 0 ||
           (rest.data[0] == ':' && tc_parse_u64(tc_slice_of(rest.data + 1, rest.len - 1), UINT16_MAX, &port) == 0);
}

/* Returns the static text of a fault in the options, or NULL. */
static const char *options_fault(const struct torc_channel_options *o)
{
    if (!o->credentials)
        return "credentials: is NULL, as a function that could not make credentials returned; for plaintext give "
               "torc_credentials_insecure()";
    if (tc_creds_channel(o->credentials)->for_servers)
        return "credentials: these are for servers";
    if (o->backoff_max_ms < o->backoff_initial_ms)
        return "backoff_initial_ms: must be at most backoff_max_ms";
    if (o->http_proxy && !proxy_is_valid(o->http_proxy))
        return "http_proxy: must be http://[user:password@]host[:port]";
    if (o->user_agent && !tc_header_value_valid(tc_slice_str(o->user_agent)))
        return "user_agent: must be printable ASCII";
    return NULL;
}

bool tc_channel_options_complete(struct torc_channel_options *out, const struct torc_channel_options *given,
                                 torc_error **error)
{
    if (!tc_options_complete(TC_OPTIONS_CHANNEL, out, given, error))
        return false;
    if (!given)
        out->credentials = torc_credentials_insecure();
    if (out->authority && !authority_is_valid(tc_slice_str(out->authority)))
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "options: authority: \"" TC_SHOWN "\" must be host[:port]", TC_SHOW(out->authority));
    const char *text = options_fault(out);
    if (text)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "options: %s", text);
    /* A8: clients must not ping more often than every 10 s. */
    if (out->keepalive_time_ms && out->keepalive_time_ms < MIN_KEEPALIVE_MS)
        out->keepalive_time_ms = MIN_KEEPALIVE_MS;
    if (out->ring_size_cap == 0)
        out->ring_size_cap = tc_channel_default_ring_cap();
    return true;
}
