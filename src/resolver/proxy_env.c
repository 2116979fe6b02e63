/* Parses the URLs of proxies and the lists of exempt hosts. */
#include "base/parse.h"
#include "resolver/proxy.h"

/* Appends the value of Proxy-Authorization for a percent-encoded user:password. Returns 0; or TORC_EPARSE, with nothing
 * appended. */
static int authorization_append(struct tc_buf *out, struct tc_slice user)
{
    struct tc_buf plain = {0};
    int rc = tc_uri_decode(&plain, user);
    if (rc == 0) {
        tc_buf_append_str(out, "Basic ");
        tc_base64_encode(out, plain.data, plain.len, true);
    }
    tc_buf_fini(&plain);
    return rc;
}

int tc_proxy_url_parse(const char *url, struct tc_buf *host_port, struct tc_buf *authorization)
{
    const struct tc_slice scheme = tc_slice_str("http://");
    struct tc_slice s = tc_slice_str(url);
    if (tc_slice_istarts(s, scheme))
        s = tc_slice_of(s.data + scheme.len, s.len - scheme.len);
    else if (tc_slice_find(s, tc_slice_str("://")) >= 0)
        return TORC_EPARSE;
    s.len = strcspn(s.data, "/?#");
    const char *at = s.len ? memrchr(s.data, '@', s.len) : NULL;
    struct tc_slice user = tc_slice_of(s.data, at ? (size_t)(at - s.data) : 0);
    if (at)
        s = tc_slice_of(at + 1, s.len - user.len - 1);
    if (s.len == 0 || s.len > 512 || s.data[0] == ':')
        return TORC_EPARSE;
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] <= ' ' || s.data[i] > '~')
            return TORC_EPARSE;
    if (user.len && authorization_append(authorization, user) != 0)
        return TORC_EPARSE;
    tc_buf_append_slice(host_port, s);
    return 0;
}

/* Returns the bytes of an IPv4 or IPv6 address, borrowed from *a, and stores the number of their bits in *bits. */
static const unsigned char *addr_bytes(const struct tc_addr *a, unsigned *bits)
{
    bool v4 = tc_addr_family(a) == AF_INET;
    *bits = v4 ? 32 : 128;
    return v4 ? (const unsigned char *)&a->sa.in.sin_addr : (const unsigned char *)&a->sa.in6.sin6_addr;
}

/* Returns whether an entry such as "10.0.0.0/8", "fd00::/8" or a single address has the host's address. */
static bool block_contains(struct tc_slice entry, const struct tc_addr *host)
{
    struct tc_addr block;
    const char *slash = entry.len ? memchr(entry.data, '/', entry.len) : NULL;
    struct tc_slice ip = tc_slice_of(entry.data, slash ? (size_t)(slash - entry.data) : entry.len);
    unsigned host_bits, bits;
    if (tc_addr_from_ip(&block, ip, 0) != 0)
        return false;
    const unsigned char *a = addr_bytes(host, &host_bits), *b = addr_bytes(&block, &bits);
    uint64_t prefix = bits;
    if (slash && tc_parse_u64(tc_slice_of(slash + 1, entry.len - ip.len - 1), bits, &prefix) != 0)
        return false;
    if (bits != host_bits)
        return false;
    size_t whole = (size_t)prefix / 8;
    unsigned rest = (unsigned)prefix % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

bool tc_proxy_exempt(struct tc_slice list, struct tc_slice host)
{
    struct tc_addr addr;
    bool literal = tc_addr_from_ip(&addr, host, 0) == 0, more = true;
    struct tc_slice entry;
    while (tc_slice_split(&list, &more, ',', &entry)) {
        entry = tc_slice_trim(entry);
        if (entry.len == 0)
            continue;
        if (tc_slice_eq_str(entry, "*") || tc_slice_iends(host, entry) || (literal && block_contains(entry, &addr)))
            return true;
    }
    return false;
}
