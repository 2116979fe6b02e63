/* The resolvers of unix:path, unix:///absolute/path and unix-abstract:name (gRPC's doc/naming.md). */
#include "resolver/builtin.h"

static bool class_is_abstract(const struct tc_resolver_class *cls)
{
    return cls == &tc_resolver_unix_abstract;
}

/* Makes the address of a target. Returns false with the reason in *why (NULL is allowed). */
static bool path_parse(const struct tc_resolver_class *cls, const struct tc_target *t, struct tc_addr *out, char **why)
{
    struct tc_buf path = {0};
    const char *reason = "the path is too long for a socket";
    int rc = TORC_EPARSE;
    if (t->has_authority && t->authority[0]) {
        reason = "a unix target has no authority";
        goto done;
    }
    /* The path behind "unix://" is absolute; tc_target_parse took its slash as the end of the authority. */
    if (t->has_authority && !class_is_abstract(cls))
        tc_buf_append_char(&path, '/');
    tc_buf_append_str(&path, t->path);
    rc = tc_addr_from_unix(out, tc_buf_slice(&path), class_is_abstract(cls));
done:
    if (rc != 0)
        tc_refuse(why, "target \"" TC_SHOWN "\": %s", TC_SHOW(t->text), reason);
    tc_buf_fini(&path);
    return rc == 0;
}

static bool unix_authority(const struct tc_resolver_class *cls, const struct tc_target *t, struct tc_buf *out,
                           char **why)
{
    struct tc_addr a;
    if (!path_parse(cls, t, &a, why))
        return false;
    tc_addr_fini(&a);
    tc_buf_append_str(out, "localhost");
    return true;
}

static struct tc_resolver *unix_create(const struct tc_resolver_class *cls, const struct tc_target *t,
                                       const struct tc_resolver_env *env)
{
    struct tc_addr a;
    bool ok = path_parse(cls, t, &a, NULL);
    struct tc_resolver *r = tc_fixed_resolver_new(env, tc_endpoints_of_addrs(&a, ok ? 1 : 0));
    if (ok)
        tc_addr_fini(&a);
    return r;
}

const struct tc_resolver_class tc_resolver_unix = {
    .scheme = "unix", .authority = unix_authority, .create = unix_create};
const struct tc_resolver_class tc_resolver_unix_abstract = {
    .scheme = "unix-abstract", .authority = unix_authority, .create = unix_create};
