#include "creds/cert_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tls/tls.h"

/* A certificate file that is larger is none. */
#define MAX_FILE_BYTES (16u * 1024u * 1024u)
/* Files that could not be used are not read again sooner, however many ask. */
#define RETRY_NS (100 * TC_NS_PER_MS)

enum file { CA, CERTIFICATE, KEY, SPIFFE, FILES };

static const char *const file_names[FILES] = {"ca_certificate_file", "certificate_file", "private_key_file",
                                              "spiffe_trust_bundle_map_file"};

/* By what a change of a file is seen. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec written, changed;
};

/* What is read together and replaced together. */
struct group {
    enum file files[2];
    size_t n; /* 0: not configured */
    struct stamp stamps[2];
    bool tried, failed;
    uint64_t read_ns;
    char *why; /* of the last failure */
};

struct tc_cert_files {
    struct tc_ref ref;
    struct tc_rstr *key;
    char *paths[FILES];
    uint64_t refresh_ns;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct group roots_group, identity_group;
    struct tc_cert_roots *roots;       /* NULL: never a good one */
    struct tc_cert_identity *identity; /* likewise */
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

static struct tc_rstr *make_key(const struct tc_cert_files *f)
{
    struct tc_buf b = {0};
    for (int i = 0; i < FILES; i++)
        if (f->paths[i])
            tc_buf_printf(&b, "%d:%zu:%s;", i, strlen(f->paths[i]), f->paths[i]);
    tc_buf_printf(&b, "%llu", (unsigned long long)f->refresh_ns);
    struct tc_rstr *key = tc_rstr_new(b.data, b.len);
    tc_buf_fini(&b);
    return key;
}

struct tc_cert_files *tc_cert_files_new(const struct tc_cert_paths *paths)
{
    struct tc_cert_files *f = TC_NEW(struct tc_cert_files);
    const char *const from[FILES] = {paths->ca_certificate_file, paths->certificate_file, paths->private_key_file,
                                     paths->spiffe_trust_bundle_map_file};
    tc_ref_init(&f->ref);
    pthread_mutex_init(&f->mutex, NULL);
    for (int i = 0; i < FILES; i++)
        f->paths[i] = from[i] ? tc_strdup(from[i]) : NULL;
    f->refresh_ns = paths->refresh_interval_ns;
    f->key = make_key(f);
    if (f->paths[SPIFFE])
        f->roots_group = (struct group){.files = {SPIFFE}, .n = 1};
    else if (f->paths[CA])
        f->roots_group = (struct group){.files = {CA}, .n = 1};
    if (f->paths[CERTIFICATE] && f->paths[KEY])
        f->identity_group = (struct group){.files = {CERTIFICATE, KEY}, .n = 2};
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
    pthread_mutex_destroy(&f->mutex);
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

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && same_time(&a->written, &b->written) &&
           same_time(&a->changed, &b->changed);
}

static bool due(const struct tc_cert_files *f, const struct group *g, const struct stamp stamps[2])
{
    if (!g->tried)
        return true;
    uint64_t age_ns = tc_system_clock.monotonic_ns(NULL) - g->read_ns;
    if (age_ns >= f->refresh_ns)
        return true;
    for (size_t i = 0; i < g->n; i++)
        if (!same_stamp(&g->stamps[i], &stamps[i]))
            return !g->failed || age_ns >= RETRY_NS;
    return g->failed && age_ns >= RETRY_NS;
}

static bool read_file(const struct tc_cert_files *f, enum file which, struct tc_buf *out, char **why)
{
    char scratch[128];
    const char *reason;
    int rc = tc_file_read(f->paths[which], MAX_FILE_BYTES, out, &reason, scratch);
    if (rc != 0)
        *why = tc_asprintf("%s \"%s\": %s", file_names[which], f->paths[which], reason);
    return rc == 0;
}

/* Whether TLS can make something of the texts. */
static bool usable(const struct tc_tls_opts *opts, char **why)
{
    struct tc_status error = {0};
    struct tc_tls_context *context = tc_tls_context_new(opts, &error);
    if (!context)
        *why = tc_strdup(tc_status_text(&error));
    tc_status_fini(&error);
    tc_tls_context_unref(context);
    return context != NULL;
}

static struct tc_spiffe_map *read_map(struct tc_slice text, char **why)
{
    struct tc_faults faults;
    tc_faults_init(&faults);
    struct tc_spiffe_map *map = tc_spiffe_map_parse(text, &faults);
    if (!map)
        *why = tc_strdup(tc_faults_text(&faults));
    tc_faults_fini(&faults);
    return map;
}

static uint32_t next_id(void)
{
    static atomic_uint last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static bool take_roots(struct tc_cert_files *f, const struct tc_buf *text, char **why)
{
    struct tc_slice s = tc_buf_slice(text);
    if (f->roots && tc_slice_eq(tc_rstr_slice(f->roots->text), s))
        return true; /* the same object for the same content */
    bool by_map = f->paths[SPIFFE] != NULL;
    struct tc_spiffe_map *map = by_map ? read_map(s, why) : NULL;
    struct tc_tls_opts opts = {.verify = TC_TLS_VERIFY_CHAIN, .roots_pem = s};
    if (by_map ? !map : !usable(&opts, why))
        return false;
    struct tc_cert_roots *roots = TC_NEW(struct tc_cert_roots);
    tc_ref_init(&roots->ref);
    roots->id = next_id();
    roots->spiffe = map;
    roots->text = tc_rstr_new(s.data, s.len);
    tc_cert_roots_unref(f->roots);
    f->roots = roots;
    return true;
}

static bool take_identity(struct tc_cert_files *f, const struct tc_buf texts[2], char **why)
{
    struct tc_slice certificate = tc_buf_slice(&texts[0]), key = tc_buf_slice(&texts[1]);
    struct tc_tls_opts opts = {.verify = TC_TLS_VERIFY_NONE, .certificate_pem = certificate, .private_key_pem = key};
    if (f->identity && tc_slice_eq(tc_rstr_slice(f->identity->certificate), certificate) &&
        tc_slice_eq(tc_rstr_slice(f->identity->private_key), key))
        return true;
    if (!usable(&opts, why))
        return false;
    struct tc_cert_identity *identity = TC_NEW(struct tc_cert_identity);
    tc_ref_init(&identity->ref);
    identity->id = next_id();
    identity->certificate = tc_rstr_new(certificate.data, certificate.len);
    identity->private_key = tc_rstr_new(key.data, key.len);
    tc_cert_identity_unref(f->identity);
    f->identity = identity;
    return true;
}

/* "ca_certificate_file "x"": what a text of TLS is about. */
static char *about(const struct tc_cert_files *f, const struct group *g, char *why)
{
    char *text = g->n == 1 ? tc_asprintf("%s \"%s\": %s", file_names[g->files[0]], f->paths[g->files[0]], why)
                           : tc_asprintf("%s \"%s\", %s \"%s\": %s", file_names[g->files[0]], f->paths[g->files[0]],
                                         file_names[g->files[1]], f->paths[g->files[1]], why);
    tc_free(why);
    return text;
}

static void note(struct tc_cert_files *f, struct group *g, bool have, char *why)
{
    if (why && (!g->why || strcmp(why, g->why) != 0))
        TC_LOG(TC_LOG_TLS, TORC_LOG_WARN, "%s%s", why, have ? ": the last good content stays in use" : "");
    else if (!why && g->failed)
        TC_LOG(TC_LOG_TLS, TORC_LOG_INFO, "%s \"%s\" can be used again", file_names[g->files[0]],
               f->paths[g->files[0]]);
    g->failed = why != NULL;
    tc_free(g->why);
    g->why = why;
}

/* Reads the group again when there is reason to. */
static void refresh(struct tc_cert_files *f, struct group *g)
{
    struct stamp stamps[2];
    struct tc_buf texts[2] = {{0}};
    char *why = NULL;
    /* Before reading: what changes in between is seen the next time. */
    for (size_t i = 0; i < g->n; i++)
        stamp_of(f->paths[g->files[i]], &stamps[i]);
    if (!due(f, g, stamps))
        return;
    bool ok = true, roots = g == &f->roots_group;
    for (size_t i = 0; ok && i < g->n; i++) {
        ok = read_file(f, g->files[i], &texts[i], &why);
        tc_buf_cstr(&texts[i]); /* an empty file is an empty text, not an absent one */
    }
    if (ok) {
        ok = roots ? take_roots(f, &texts[0], &why) : take_identity(f, texts, &why);
        if (!ok)
            why = about(f, g, why);
    }
    note(f, g, roots ? f->roots != NULL : f->identity != NULL, why);
    memcpy(g->stamps, stamps, g->n * sizeof(stamps[0]));
    g->tried = true;
    g->read_ns = tc_system_clock.monotonic_ns(NULL);
    /* A private key was in one of them. */
    for (size_t i = 0; i < g->n; i++)
        tc_buf_wipe(&texts[i]);
}

struct tc_cert_roots *tc_cert_files_roots(struct tc_cert_files *f, char **why)
{
    pthread_mutex_lock(&f->mutex);
    if (f->roots_group.n)
        refresh(f, &f->roots_group);
    struct tc_cert_roots *roots = f->roots;
    if (roots)
        tc_ref_inc(&roots->ref);
    else if (why)
        *why = tc_strdup(f->roots_group.n ? f->roots_group.why : "no ca_certificate_file is configured");
    pthread_mutex_unlock(&f->mutex);
    return roots;
}

struct tc_cert_identity *tc_cert_files_identity(struct tc_cert_files *f, char **why)
{
    pthread_mutex_lock(&f->mutex);
    if (f->identity_group.n)
        refresh(f, &f->identity_group);
    struct tc_cert_identity *identity = f->identity;
    if (identity)
        tc_ref_inc(&identity->ref);
    else if (why)
        *why = tc_strdup(f->identity_group.n ? f->identity_group.why : "no certificate_file is configured");
    pthread_mutex_unlock(&f->mutex);
    return identity;
}
