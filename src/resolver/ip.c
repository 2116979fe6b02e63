/* ipv4:a:p,b:p and ipv6:[a]:p,[b]:p (gRPC's doc/naming.md): each address is an endpoint of its own. The port is 443
 * when it is left out. */
#include "base/vec.h"
#include "resolver/builtin.h"

typedef TC_VEC(struct tc_addr) addr_vec;

/* Parses "1.2.3.4:80" or "[::1]:80". Without a port, the port is 443, and the brackets may be left out. Returns 0, or
 * TORC_EPARSE with nothing in *a to end. */
static int addr_parse(struct tc_addr *a, struct tc_slice text, int family)
{
    int rc = tc_addr_parse(a, text);
    if (rc != 0) {
        if (text.len > 2 && text.data[0] == '[' && text.data[text.len - 1] == ']')
            text = tc_slice_of(text.data + 1, text.len - 2);
        rc = tc_addr_from_ip(a, text, 443);
    }
    if (rc == 0 && tc_addr_family(a) != family) {
        tc_addr_fini(a);
        rc = TORC_EPARSE;
    }
    return rc;
}

static void addrs_fini(addr_vec *v)
{
    for (size_t i = 0; i < v->len; i++)
        tc_addr_fini(&v->data[i]);
    tc_vec_fini(v);
}

/* Stores in *why which part of "address[:port]" is malformed. Returns false. */
static bool addr_refuse(const struct tc_target *t, struct tc_slice text, int family, char **why)
{
    struct tc_addr a;
    struct tc_slice host, port;
    bool ipv4 = family == AF_INET;
    if (tc_addr_split(text, &host, &port) && tc_slice_starts(port, tc_slice_str(":")) &&
        addr_parse(&a, host, family) == 0) {
        tc_addr_fini(&a);
        port = tc_slice_of(port.data + 1, port.len - 1);
        return tc_refuse(why, "target \"" TC_SHOWN "\": the port \"%.*s\" is not a number from 0 to 65535",
                         TC_SHOW(t->text), (int)TC_MIN(port.len, (size_t)TC_SHOW_MAX), port.data);
    }
    return tc_refuse(why, "target \"" TC_SHOWN "\": \"%.*s\" is not an %s address; a port may follow: %s",
                     TC_SHOW(t->text), (int)TC_MIN(text.len, (size_t)TC_SHOW_MAX), text.data, ipv4 ? "IPv4" : "IPv6",
                     ipv4 ? "192.0.2.1:443" : "[2001:db8::1]:443");
}

/* Parses the whole list. Returns false with the reason in *why (NULL is allowed). */
static bool addrs_parse(const struct tc_target *t, int family, addr_vec *out, char **why)
{
    struct tc_slice rest = tc_slice_str(t->path), part;
    bool more = true;
    if (t->has_authority && t->authority[0])
        return tc_refuse(why, "target \"" TC_SHOWN "\": %s has no authority", TC_SHOW(t->text), t->scheme);
    while (tc_slice_split(&rest, &more, ',', &part)) {
        struct tc_addr a;
        part = tc_slice_trim(part);
        if (addr_parse(&a, part, family) != 0) {
            addrs_fini(out);
            return addr_refuse(t, part, family, why);
        }
        *tc_vec_push(out) = a;
    }
    return true;
}

static int class_family(const struct tc_resolver_class *cls)
{
    return cls == &tc_resolver_ipv4 ? AF_INET : AF_INET6;
}

static bool ip_authority(const struct tc_resolver_class *cls, const struct tc_target *t, struct tc_buf *out, char **why)
{
    addr_vec v = {0};
    if (!addrs_parse(t, class_family(cls), &v, why))
        return false;
    tc_addr_format(&v.data[0], out);
    addrs_fini(&v);
    return true;
}

static struct tc_resolver *ip_create(const struct tc_resolver_class *cls, const struct tc_target *t,
                                     const struct tc_resolver_env *env)
{
    addr_vec v = {0};
    addrs_parse(t, class_family(cls), &v, NULL);
    struct tc_resolver *r = tc_fixed_resolver_new(env, tc_endpoints_of_addrs(v.data, v.len));
    addrs_fini(&v);
    return r;
}

const struct tc_resolver_class tc_resolver_ipv4 = {.scheme = "ipv4", .authority = ip_authority, .create = ip_create};
const struct tc_resolver_class tc_resolver_ipv6 = {.scheme = "ipv6", .authority = ip_authority, .create = ip_create};
