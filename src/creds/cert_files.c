/* Certificate, key and roots in files, read when they are asked for.
 *
 * The files form two groups that are read and replaced together: roots, and certificate with key. A group is read again
 * when
 *
 *   - the stamp of a file (device, inode, size, times) has changed, and no attempt failed within RETRY_NS,
 *   - the refresh interval has passed, or
 *   - the last attempt failed, RETRY_NS ago or longer.
 *
 * New PEM files are tried with TLS before they are used, and bundle maps are parsed. Content that is unchanged keeps
 * its object and its id, so that connections which use it are not replaced. Stamps are taken before reading: a change
 * in between is seen the next time. A failure is logged unless the attempt before failed for the same reason. The first
 * success after a failure is logged. Both are logged without the lock.
 *
 * Any thread asks. The lock is held while files are read, so that one thread reads and the others wait. A caller gets a
 * reference to content, which does not change and may be used after the files have given it up. */
#include "creds/cert_files.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/fork.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "tls/tls.h"

enum { MAX_FILE_BYTES = 16 * 1024 * 1024 };
/* After a failure files are not read again for this long, unless the refresh interval is shorter. */
#define RETRY_NS (100 * TC_NS_PER_MS)

enum file { CA, CERTIFICATE, KEY, SPIFFE, FILES };

static const char *const file_names[FILES] = {"ca_certificate_file", "certificate_file", "private_key_file",
                                              "spiffe_trust_bundle_map_file"};

/* Shows whether a file has changed; zeros if stat fails. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec written, changed;
};

/* Files that are read and replaced together. */
struct cert_group {
    enum file files[2];
    size_t n; /* 0: not configured */
    struct stamp stamps[2];
    bool tried, failed; /* there was an attempt to read the files; the last one failed */
    uint64_t read_ns;   /* when the last attempt ended, monotonic */
    char *why;          /* why the last attempt failed; NULL: it did not fail */
};

struct tc_cert_files {
    struct tc_ref ref;
    struct tc_rstr *key; /* of tc_cert_files_key */
    char *paths[FILES];  /* NULL: not given */
    uint64_t refresh_ns;
    struct tc_lock lock;
    /* Under the lock, but for `files` and `n` of the groups, which never change. */
    struct cert_group roots_group, identity_group;
    struct tc_cert_roots *roots;       /* NULL: never a good one */
    struct tc_cert_identity *identity; /* NULL: never a good one */
};

void tc_cert_roots_unref(struct tc_cert_roots *r)
{
    if (!r || !tc_ref_dec(&r->ref))
        return;
    tc_rstr_unref(r->text);
    tc_spiffe_map_unref(r->spiffe);
    tc_free(r);
}

void tc_cert_identity_unref(struct tc_cert_identity *i)
{
    if (!i || !tc_ref_dec(&i->ref))
        return;
    tc_rstr_unref(i->certificate);
    tc_rstr_unref_secret(i->private_key);
    tc_free(i);
}

void tc_cert_paths_parse(const json_t *config, struct tc_cert_paths *out, struct tc_validation_errors *errors)
{
    const char *interval;
    *out = (struct tc_cert_paths){.refresh_interval_ns = TC_CERT_REFRESH_DEFAULT_NS};
    tc_json_get_str(config, "ca_certificate_file", &out->ca_certificate_file, errors);
    tc_json_get_str(config, "certificate_file", &out->certificate_file, errors);
    tc_json_get_str(config, "private_key_file", &out->private_key_file, errors);
    if (tc_json_get_str(config, "refresh_interval", &interval, errors) &&
        (tc_parse_duration_ns(tc_slice_str(interval), &out->refresh_interval_ns) != 0 || !out->refresh_interval_ns))
        tc_validation_add_at(errors, ".refresh_interval", "\"%s\" is not a duration above zero", interval);
    if (!out->certificate_file != !out->private_key_file)
        tc_validation_add(errors, "certificate_file and private_key_file must both be set, or neither");
}

static struct tc_rstr *files_make_key(const struct tc_cert_files *f)
{
    struct tc_buf b = {0};
    for (int i = 0; i < FILES; i++)
        if (f->paths[i])
            tc_buf_printf(&b, "%d:%zu:%s;", i, strlen(f->paths[i]), f->paths[i]);
    tc_buf_printf(&b, "%llu", (unsigned long long)f->refresh_ns);
    return tc_rstr_of_buf(&b);
}

struct tc_cert_files *tc_cert_files_new(const struct tc_cert_paths *paths)
{
    struct tc_cert_files *f = TC_NEW(struct tc_cert_files);
    const char *const from[FILES] = {paths->ca_certificate_file, paths->certificate_file, paths->private_key_file,
                                     paths->spiffe_trust_bundle_map_file};
    tc_ref_init(&f->ref);
    tc_lock_init(&f->lock, TC_RANK_CERT_FILES);
    for (int i = 0; i < FILES; i++)
        f->paths[i] = from[i] ? tc_strdup(from[i]) : NULL;
    f->refresh_ns = paths->refresh_interval_ns;
    f->key = files_make_key(f);
    if (f->paths[SPIFFE])
        f->roots_group = (struct cert_group){.files = {SPIFFE}, .n = 1};
    else if (f->paths[CA])
        f->roots_group = (struct cert_group){.files = {CA}, .n = 1};
    if (f->paths[CERTIFICATE] && f->paths[KEY])
        f->identity_group = (struct cert_group){.files = {CERTIFICATE, KEY}, .n = 2};
    return f;
}

struct tc_cert_files *tc_cert_files_ref(struct tc_cert_files *f)
{
    tc_ref_inc(&f->ref);
    return f;
}

void tc_cert_files_unref(struct tc_cert_files *f)
{
    if (!f || !tc_ref_dec(&f->ref))
        return;
    for (int i = 0; i < FILES; i++)
        tc_free(f->paths[i]);
    tc_free(f->roots_group.why);
    tc_free(f->identity_group.why);
    tc_cert_roots_unref(f->roots);
    tc_cert_identity_unref(f->identity);
    tc_lock_fini(&f->lock);
    tc_rstr_unref(f->key);
    tc_free(f);
}

bool tc_cert_files_have_roots(const struct tc_cert_files *f)
{
    return f->roots_group.n > 0;
}

bool tc_cert_files_have_identity(const struct tc_cert_files *f)
{
    return f->identity_group.n > 0;
}

uint64_t tc_cert_files_refresh_ns(const struct tc_cert_files *f)
{
    return f->refresh_ns;
}

struct tc_rstr *tc_cert_files_key(const struct tc_cert_files *f)
{
    return f->key;
}

/* --- reading --- */

static void stamp_of(const char *path, struct stamp *s)
{
    struct stat st;
    memset(s, 0, sizeof(*s));
    if (stat(path, &st) == 0)
        *s = (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
}

static bool time_equals(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool stamp_equals(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && time_equals(&a->written, &b->written) &&
           time_equals(&a->changed, &b->changed);
}

/* `stamps`: those that the group's files have now. */
static bool group_is_due(const struct tc_cert_files *f, const struct cert_group *g, const struct stamp stamps[2])
{
    if (!g->tried)
        return true;
    uint64_t age_ns = tc_system_clock.monotonic_ns(NULL) - g->read_ns;
    if (age_ns >= f->refresh_ns)
        return true;
    for (size_t i = 0; i < g->n; i++)
        if (!stamp_equals(&g->stamps[i], &stamps[i]))
            return !g->failed || age_ns >= RETRY_NS;
    return g->failed && age_ns >= RETRY_NS;
}

/* Appends a file's content to `out`. Returns false with the reason in *why (tc_free). */
static bool files_read_one(const struct tc_cert_files *f, enum file which, struct tc_buf *out, char **why)
{
    char scratch[128];
    const char *reason;
    int rc = tc_file_read(f->paths[which], MAX_FILE_BYTES, out, &reason, scratch);
    if (rc != 0)
        *why = tc_asprintf("%s \"%s\": %s", file_names[which], f->paths[which], reason);
    return rc == 0;
}

/* Returns true when TLS accepts the texts; else the reason goes to *why (tc_free). */
static bool texts_are_usable(const struct tc_tls_opts *opts, char **why)
{
    struct tc_status error = {0};
    struct tc_tls_context *context = tc_tls_context_new(opts, &error);
    if (!context)
        *why = tc_strdup(tc_status_text(&error));
    tc_status_fini(&error);
    tc_tls_context_unref(context);
    return context != NULL;
}

/* Returns the map with one reference, or NULL with the reason in *why (tc_free). */
static struct tc_spiffe_map *spiffe_map_read(struct tc_slice text, char **why)
{
    struct tc_validation_errors errors = {0};
    struct tc_spiffe_map *map = tc_spiffe_map_parse(text, &errors);
    if (!map)
        *why = tc_strdup(tc_validation_text(&errors));
    tc_validation_fini(&errors);
    return map;
}

static uint32_t content_next_id(void)
{
    static atomic_uint last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* Makes a text the roots, if it is not that already. Returns false, with the roots unchanged and the reason in *why
 * (tc_free), if the text cannot be used. Called with the lock. */
static bool files_take_roots(struct tc_cert_files *f, const struct tc_buf *text, char **why)
{
    struct tc_slice s = tc_buf_slice(text);
    if (f->roots && tc_slice_eq(tc_rstr_slice(f->roots->text), s))
        return true; /* the same object for the same content */
    bool by_map = f->paths[SPIFFE] != NULL;
    struct tc_spiffe_map *map = by_map ? spiffe_map_read(s, why) : NULL;
    struct tc_tls_opts opts = {.verify = TC_TLS_VERIFY_CHAIN, .roots_pem = s};
    if (by_map ? !map : !texts_are_usable(&opts, why))
        return false;
    struct tc_cert_roots *roots = TC_NEW(struct tc_cert_roots);
    tc_ref_init(&roots->ref);
    roots->id = content_next_id();
    roots->spiffe = map;
    roots->text = tc_rstr_new(s.data, s.len);
    tc_cert_roots_unref(f->roots);
    f->roots = roots;
    return true;
}

/* Makes texts the certificate and key, if they are not that already. Returns false, with both unchanged and the reason
 * in *why (tc_free), if the texts cannot be used. Called with the lock. */
static bool files_take_identity(struct tc_cert_files *f, const struct tc_buf texts[2], char **why)
{
    struct tc_slice certificate = tc_buf_slice(&texts[0]), key = tc_buf_slice(&texts[1]);
    struct tc_tls_opts opts = {.verify = TC_TLS_VERIFY_NONE, .certificate_pem = certificate, .private_key_pem = key};
    if (f->identity && tc_slice_eq(tc_rstr_slice(f->identity->certificate), certificate) &&
        tc_slice_eq(tc_rstr_slice(f->identity->private_key), key))
        return true;
    if (!texts_are_usable(&opts, why))
        return false;
    struct tc_cert_identity *identity = TC_NEW(struct tc_cert_identity);
    tc_ref_init(&identity->ref);
    identity->id = content_next_id();
    identity->certificate = tc_rstr_new(certificate.data, certificate.len);
    identity->private_key = tc_rstr_new(key.data, key.len);
    tc_cert_identity_unref(f->identity);
    f->identity = identity;
    return true;
}

/* Returns a text (tc_free) with the files' names and paths before a reason, which is taken over. */
static char *group_describe_failure(const struct tc_cert_files *f, const struct cert_group *g, char *why)
{
    char *text = g->n == 1 ? tc_asprintf("%s \"%s\": %s", file_names[g->files[0]], f->paths[g->files[0]], why)
                           : tc_asprintf("%s \"%s\", %s \"%s\": %s", file_names[g->files[0]], f->paths[g->files[0]],
                                         file_names[g->files[1]], f->paths[g->files[1]], why);
    tc_free(why);
    return text;
}

/* A log line, written after the lock is released: the application's sink may do anything, fork included. */
struct cert_news {
    char *why;                           /* why a group cannot be used; NULL: it can, or the reason was logged before */
    bool kept;                           /* with `why`: the last good content stays in use */
    const char *again_name, *again_path; /* of the first file of a group that can be used again, borrowed from the
                                            files; NULL: none */
};

/* Writes the line, if there is one, and frees its texts. */
static void news_log(struct cert_news *n)
{
    if (n->why && n->kept)
        TC_LOG(TC_LOG_TLS, TORC_LOG_WARN, "cannot use %s: the last good content stays in use", n->why);
    else if (n->why)
        TC_LOG(TC_LOG_TLS, TORC_LOG_WARN, "cannot use %s", n->why);
    else if (n->again_path)
        TC_LOG(TC_LOG_TLS, TORC_LOG_INFO, "%s \"%s\" can be used again", n->again_name, n->again_path);
    tc_free(n->why);
}

/* Records the outcome of reading a group, and in *news what is to be logged. `have`: the group has good content. Takes
 * over `why`; NULL: success. */
static void group_note(struct tc_cert_files *f, struct cert_group *g, bool have, char *why, struct cert_news *news)
{
    if (why && (!g->why || strcmp(why, g->why) != 0))
        *news = (struct cert_news){.why = tc_strdup(why), .kept = have};
    else if (!why && g->failed)
        *news = (struct cert_news){.again_name = file_names[g->files[0]], .again_path = f->paths[g->files[0]]};
    g->failed = why != NULL;
    tc_free(g->why);
    g->why = why;
}

/* Reads the group again if that is due. Called with the lock. */
static void group_refresh(struct tc_cert_files *f, struct cert_group *g, struct cert_news *news)
{
    struct stamp stamps[2];
    struct tc_buf texts[2] = {{0}};
    char *why = NULL;
    for (size_t i = 0; i < g->n; i++)
        stamp_of(f->paths[g->files[i]], &stamps[i]);
    if (!group_is_due(f, g, stamps))
        return;
    bool ok = true, roots = g == &f->roots_group;
    for (size_t i = 0; ok && i < g->n; i++) {
        ok = files_read_one(f, g->files[i], &texts[i], &why);
        tc_buf_cstr(&texts[i]); /* an empty file is an empty text, not an absent one */
    }
    if (ok) {
        ok = roots ? files_take_roots(f, &texts[0], &why) : files_take_identity(f, texts, &why);
        if (!ok)
            why = group_describe_failure(f, g, why);
    }
    group_note(f, g, roots ? f->roots != NULL : f->identity != NULL, why, news);
    memcpy(g->stamps, stamps, g->n * sizeof(stamps[0]));
    g->tried = true;
    g->read_ns = tc_system_clock.monotonic_ns(NULL);
    /* One of the texts may be a private key. */
    for (size_t i = 0; i < g->n; i++)
        tc_buf_wipe(&texts[i]);
}

struct tc_cert_roots *tc_cert_files_roots(struct tc_cert_files *f, char **why)
{
    struct cert_news news = {0};
    tc_lock_take(&f->lock);
    if (f->roots_group.n)
        group_refresh(f, &f->roots_group, &news);
    struct tc_cert_roots *roots = f->roots;
    if (roots)
        tc_ref_inc(&roots->ref);
    else if (why)
        *why = tc_strdup(f->roots_group.n ? f->roots_group.why : "no ca_certificate_file is configured");
    tc_lock_give(&f->lock);
    news_log(&news);
    return roots;
}

struct tc_cert_identity *tc_cert_files_identity(struct tc_cert_files *f, char **why)
{
    struct cert_news news = {0};
    tc_lock_take(&f->lock);
    if (f->identity_group.n)
        group_refresh(f, &f->identity_group, &news);
    struct tc_cert_identity *identity = f->identity;
    if (identity)
        tc_ref_inc(&identity->ref);
    else if (why)
        *why = tc_strdup(f->identity_group.n ? f->identity_group.why : "no certificate_file is configured");
    tc_lock_give(&f->lock);
    news_log(&news);
    return identity;
}
