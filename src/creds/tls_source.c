/* A TLS context that follows files.
 *
 * tc_tls_source_context looks at the files before it takes the lock. If their content is not what the context was made
 * of, it makes a new context. Two threads may read the files at once; the thread that read older content does not undo
 * the newer context (source_is_newer). The epoch is made of the contents' ids, so it is the same in every source of the
 * same struct tc_cert_files. */
#include "creds/tls_source.h"

#include "base/mem.h"

void tc_tls_source_init(struct tc_tls_source *s, const struct tc_tls_source_opts *opts)
{
    *s = (struct tc_tls_source){.opts = *opts};
    tc_lock_init(&s->lock, TC_RANK_TLS_SOURCE);
    if (opts->roots)
        tc_cert_files_ref(opts->roots);
    if (opts->identity)
        tc_cert_files_ref(opts->identity);
}

void tc_tls_source_fini(struct tc_tls_source *s)
{
    tc_tls_context_unref(s->context);
    tc_cert_roots_unref(s->from_roots);
    tc_cert_identity_unref(s->from_identity);
    tc_cert_files_unref(s->opts.roots);
    tc_cert_files_unref(s->opts.identity);
    tc_lock_fini(&s->lock);
}

/* The state that the callbacks of one context need. Freed with the context. */
struct check {
    tc_tls_verify_fn verify_fn;
    void *verify_arg;
    struct tc_spiffe_map *map; /* NULL: roots are PEM or the system's */
};

static bool check_on_verify(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    const struct check *check = arg;
    return check->verify_fn(check->verify_arg, leaf, name, why);
}

static struct stack_st_X509 *check_on_roots(void *arg, struct x509_st *leaf, struct tc_buf *why)
{
    return tc_spiffe_map_roots(((const struct check *)arg)->map, leaf, why);
}

static void check_free(void *arg)
{
    tc_spiffe_map_unref(((struct check *)arg)->map);
    tc_free(arg);
}

/* Returns a new context of `roots` and `identity`, each of which may be NULL. Returns NULL, with the reason in *why, if
 * none can be made. */
static struct tc_tls_context *source_make_context(const struct tc_tls_source *s, const struct tc_cert_roots *roots,
                                                  const struct tc_cert_identity *identity, char **why)
{
    struct check *check = TC_NEW(struct check);
    struct tc_status error = {0};
    check->verify_fn = s->opts.verify_fn;
    check->verify_arg = s->opts.verify_arg;
    check->map = roots && roots->spiffe ? tc_spiffe_map_ref(roots->spiffe) : NULL;
    struct tc_tls_opts opts = {
        .server = s->opts.server,
        .verify = s->opts.verify,
        .one_name = s->opts.one_name,
        .verify_fn = check->verify_fn ? check_on_verify : NULL,
        .roots_fn = check->map ? check_on_roots : NULL,
        .verify_arg = check,
        .verify_arg_free = check_free,
    };
    if (roots && !roots->spiffe)
        opts.roots_pem = tc_rstr_slice(roots->text);
    if (identity) {
        opts.certificate_pem = tc_rstr_slice(identity->certificate);
        opts.private_key_pem = tc_rstr_slice(identity->private_key);
    }
    struct tc_tls_context *context = tc_tls_context_new(&opts, &error);
    if (!context) {
        check_free(check);
        tc_refuse(why, "%s", tc_status_text(&error));
    }
    tc_status_fini(&error);
    return context;
}

/* Returns true if the context was made of newer roots than `roots`, or of a newer identity than `identity`: another
 * thread read the files later, but renewed the context first. Called with the lock. */
static bool source_is_newer(const struct tc_tls_source *s, const struct tc_cert_roots *roots,
                            const struct tc_cert_identity *identity)
{
    return s->context && ((roots && (int32_t)(roots->id - s->from_roots->id) < 0) ||
                          (identity && (int32_t)(identity->id - s->from_identity->id) < 0));
}

/* Replaces the context if the files' content has changed. Takes over the references. Returns false with the reason in
 * *why if no context can be made of the content. Called with the lock. */
static bool source_renew(struct tc_tls_source *s, struct tc_cert_roots *roots, struct tc_cert_identity *identity,
                         char **why)
{
    bool same = roots == s->from_roots && identity == s->from_identity;
    if (!s->context || (!same && !source_is_newer(s, roots, identity))) {
        struct tc_tls_context *context = source_make_context(s, roots, identity, why);
        if (context) {
            tc_tls_context_unref(s->context);
            tc_cert_roots_unref(s->from_roots);
            tc_cert_identity_unref(s->from_identity);
            s->context = context;
            s->from_roots = roots;
            s->from_identity = identity;
            s->epoch = (uint64_t)(roots ? roots->id : 0) << 32 | (identity ? identity->id : 0);
            return true;
        }
        tc_cert_roots_unref(roots);
        tc_cert_identity_unref(identity);
        return false;
    }
    tc_cert_roots_unref(roots);
    tc_cert_identity_unref(identity);
    return true;
}

struct tc_tls_context *tc_tls_source_context(struct tc_tls_source *s, uint64_t *epoch, char **why)
{
    struct tc_cert_roots *roots = NULL;
    struct tc_cert_identity *identity = NULL;
    bool ok = true;
    /* Read before the lock is taken, since reading may log. */
    if (s->opts.roots)
        ok = (roots = tc_cert_files_roots(s->opts.roots, why)) != NULL;
    if (ok && s->opts.identity)
        ok = (identity = tc_cert_files_identity(s->opts.identity, why)) != NULL;
    if (!ok)
        tc_cert_roots_unref(roots);
    tc_lock_take(&s->lock);
    ok = ok && source_renew(s, roots, identity, why);
    struct tc_tls_context *context = ok ? tc_tls_context_ref(s->context) : NULL;
    if (epoch)
        *epoch = s->epoch;
    tc_lock_give(&s->lock);
    return context;
}

uint64_t tc_tls_source_refresh_ns(const struct tc_tls_source *s)
{
    uint64_t roots_ns = s->opts.roots ? tc_cert_files_refresh_ns(s->opts.roots) : UINT64_MAX;
    uint64_t identity_ns = s->opts.identity ? tc_cert_files_refresh_ns(s->opts.identity) : UINT64_MAX;
    uint64_t refresh_ns = TC_MIN(roots_ns, identity_ns);
    return refresh_ns == UINT64_MAX ? 0 : refresh_ns;
}
