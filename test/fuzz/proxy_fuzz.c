/* Proxy settings. The input: the URL in the first line, the exemptions in the second, a host in the third. An accepted
 * URL gives a host and port, and credentials if any, that are valid in a header field. An empty list exempts no host,
 * the list "*" exempts every host. */
#include "base/headers.h"
#include "base/mem.h"
#include "fuzz.h"
#include "resolver/builtin.h"
#include "resolver/proxy.h"

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "dns");
}

static void check_url(const char *url)
{
    struct tc_buf host_port = {0}, authorization = {0};
    if (tc_proxy_url_parse(url, &host_port, &authorization) == 0) {
        TC_FUZZ_CHECK(host_port.len > 0 && tc_header_value_valid(tc_buf_slice(&host_port)));
        TC_FUZZ_CHECK(tc_header_value_valid(tc_buf_slice(&authorization)));
        TC_FUZZ_CHECK(authorization.len == 0 || tc_slice_starts(tc_buf_slice(&authorization), tc_slice_str("Basic ")));
    }
    tc_buf_fini(&host_port);
    tc_buf_fini(&authorization);
}

static void check_class(const char *url, const char *host)
{
    struct tc_target t;
    struct tc_proxy_class p = {.inner = NULL};
    char *text = tc_asprintf("dns:///%s", host);
    if (tc_target_parse(&t, text, known, NULL, NULL) == 0) {
        if (tc_proxy_class_init(&p, &t, &tc_resolver_dns, url))
            TC_FUZZ_CHECK(p.proxy.path && p.proxy.path[0] && p.base.create);
        tc_proxy_class_fini(&p);
        tc_target_fini(&t);
    }
    tc_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    char *url = tc_slice_dup(tc_fuzz_line(&in));
    struct tc_slice list = tc_fuzz_line(&in), host = tc_fuzz_line(&in);
    char *name = tc_slice_dup(host);
    bool exempt = tc_proxy_exempt(list, host);
    TC_FUZZ_CHECK(list.len || !exempt);
    TC_FUZZ_CHECK(tc_proxy_exempt(tc_slice_str("*"), host));
    check_url(url);
    check_class(url, name);
    tc_free(url);
    tc_free(name);
    return 0;
}
