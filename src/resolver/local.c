/* vsock:CID:PORT, a socket to a virtual machine or its host (vsock(7)), and fd:N, a socket that the application has
 * connected. Neither needs a look-up. This file checks the descriptor, and keeps only its number; the channel takes the
 * descriptor over (io/dialer.h). */
#include "base/parse.h"
#include "io/dialer.h"
#include "resolver/builtin.h"

/* Parses the path as n decimal numbers of at most `most`, divided by ':'. Returns false if it is anything else, or if
 * the target has an authority. */
static bool numbers_parse(const struct tc_target *t, uint64_t most, uint64_t *numbers, size_t n)
{
    struct tc_slice rest = tc_slice_str(t->path), part;
    bool more = true;
    size_t i = 0;
    while (more && tc_slice_split(&rest, &more, ':', &part)) {
        if (i == n || tc_parse_u64(part, most, &numbers[i]) != 0)
            return false;
        i++;
    }
    return i == n && !t->has_authority;
}

/* Makes the address of a target. Returns false with the reason in *why (NULL is allowed). The address holds nothing
 * that must be freed. */
static bool vsock_parse(const struct tc_target *t, struct tc_addr *out, char **why)
{
    uint64_t numbers[2];
    if (!numbers_parse(t, UINT32_MAX - 1, numbers, 2)) /* UINT32_MAX stands for any CID or port */
        return tc_refuse(why, "target \"" TC_SHOWN "\": must be vsock:CID:PORT, two decimal numbers below 4294967295",
                         TC_SHOW(t->text));
    if (tc_addr_from_vsock(out, (uint32_t)numbers[0], (uint32_t)numbers[1]) != 0)
        return tc_refuse(why, "target \"" TC_SHOWN "\": this system has no vsock", TC_SHOW(t->text));
    return true;
}

static bool vsock_authority(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t,
                            struct tc_buf *out, char **why)
{
    struct tc_addr a;
    if (!vsock_parse(t, &a, why))
        return false;
    tc_buf_append_str(out, "localhost");
    return true;
}

static struct tc_resolver *vsock_create(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t,
                                        const struct tc_resolver_env *env)
{
    struct tc_addr a;
    bool ok = vsock_parse(t, &a, NULL);
    return tc_fixed_resolver_new(env, tc_endpoints_of_addrs(&a, ok ? 1 : 0));
}

int tc_resolver_fd_of(const struct tc_target *t)
{
    uint64_t number;
    return numbers_parse(t, INT32_MAX, &number, 1) ? (int)number : -1;
}

static bool fd_authority(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t, struct tc_buf *out,
                         char **why)
{
    char scratch[128];
    int fd = tc_resolver_fd_of(t);
    const char *fault = fd < 0 ? "must be fd:N, the number of a descriptor" : tc_dialer_fd_fault(fd, scratch);
    if (fault)
        return tc_refuse(why, "target \"" TC_SHOWN "\": %s", TC_SHOW(t->text), fault);
    tc_buf_append_str(out, "localhost");
    return true;
}

static struct tc_resolver *fd_create(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t,
                                     const struct tc_resolver_env *env)
{
    struct tc_addr a;
    tc_addr_from_fd(&a, tc_resolver_fd_of(t));
    return tc_fixed_resolver_new(env, tc_endpoints_of_addrs(&a, 1));
}

const struct tc_resolver_class tc_resolver_vsock = {
    .scheme = "vsock", .authority = vsock_authority, .create = vsock_create};
const struct tc_resolver_class tc_resolver_fd = {.scheme = "fd", .authority = fd_authority, .create = fd_create};
