/* ipv4:a:p,b:p and ipv6:[a]:p,[b]:p: each address an endpoint of its own (gRPC doc/naming.md). The port is 443 when it
 * is left out. */
#include "base/mem.h"
#include "base/vec.h"
#include "resolver/builtin.h"

typedef TC_VEC(struct tc_addr) addr_vec;

static int parse_one(struct tc_addr *a, struct tc_slice text, int family)
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

static void fini_addrs(addr_vec *v)
{
    for (size_t i = 0; i < v->len; i++)
        tc_addr_fini(&v->data[i]);
    tc_vec_fini(v);
}

static bool parse_list(const struct tc_target *t, int family, addr_vec *out, char **why)
{
    struct tc_slice rest = tc_slice_str(t->path), part;
    bool more = true;
    if (t->has_authority && t->authority[0]) {
        if (why)
            *why = tc_asprintf("target \"" TC_SHOWN "\": %s has no authority", TC_SHOW(t->text), t->scheme);
        return false;
    }
    while (tc_slice_split(&rest, &more, ',', &part)) {
        struct tc_addr a;
        if (parse_one(&a, tc_slice_trim(part), family) != 0) {
            if (why)
                *why = tc_asprintf("target \"" TC_SHOWN "\": \"%.*s\" is no %s address with a port", TC_SHOW(t->text),
                                   (int)TC_MIN(part.len, (size_t)TC_SHOW_MAX), part.data,
                                   family == AF_INET ? "IPv4" : "IPv6");
            fini_addrs(out);
            return false;
        }
        *tc_vec_push(out) = a;
    }
    return true;
}

static int family_of(const struct tc_resolver_class *cls)
{
    return cls == &tc_resolver_ipv4 ? AF_INET : AF_INET6;
}

static bool ip_authority(const struct tc_resolver_class *cls, const struct tc_target *t, struct tc_buf *out, char **why)
{
    addr_vec v = {0};
    if (!parse_list(t, family_of(cls), &v, why))
        return false;
    tc_addr_format(&v.data[0], out);
    fini_addrs(&v);
    return true;
}

static struct tc_resolver *ip_create(const struct tc_resolver_class *cls, const struct tc_target *t,
                                     const struct tc_resolver_env *env)
{
    addr_vec v = {0};
    parse_list(t, family_of(cls), &v, NULL);
    struct tc_resolver *r = tc_fixed_resolver_new(env, tc_endpoints_of_addrs(v.data, v.len));
    fini_addrs(&v);
    return r;
}

const struct tc_resolver_class tc_resolver_ipv4 = {.scheme = "ipv4", .authority = ip_authority, .create = ip_create};
const struct tc_resolver_class tc_resolver_ipv6 = {.scheme = "ipv6", .authority = ip_authority, .create = ip_create};
