#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "creds/files.h"
#include "tls/tls.h"

/* A certificate file that is larger is none. */
#define MAX_FILE_BYTES (16u * 1024u * 1024u)

enum part { ROOTS, CERTIFICATE, KEY, PARTS };

static const char *const part_names[PARTS] = {"ca_certificate_file", "certificate_file", "private_key_file"};

struct tls_credentials {
    torc_credentials base;
    /* Under the mutex: handshakes of several loops may find that files have changed. */
    pthread_mutex_t mutex;
    struct tc_tls_context *context;
    char *paths[PARTS]; /* all NULL: from texts, never read again */
    bool from_files;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_len;
    uint64_t refresh_ns, read_ns;
};

static void digest_of(const struct tc_slice texts[PARTS], uint8_t out[EVP_MAX_MD_SIZE], unsigned *len)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    *len = 0;
    if (md && EVP_DigestInit_ex(md, EVP_sha256(), NULL)) {
        for (int i = 0; i < PARTS; i++) {
            uint64_t n = texts[i].data ? texts[i].len : UINT64_MAX;
            EVP_DigestUpdate(md, &n, sizeof(n));
            EVP_DigestUpdate(md, texts[i].data, texts[i].len);
        }
        EVP_DigestFinal_ex(md, out, len);
    }
    EVP_MD_CTX_free(md);
}

static struct tc_tls_context *make_context(const struct tc_slice texts[PARTS], struct tc_status *error)
{
    struct tc_tls_opts opts = {
        .verify = TC_TLS_VERIFY_FULL,
        .roots_pem = texts[ROOTS],
        .certificate_pem = texts[CERTIFICATE],
        .private_key_pem = texts[KEY],
    };
    return tc_tls_context_new(&opts, error);
}

static bool read_file(const char *path, const char *what, struct tc_buf *out, char **why)
{
    FILE *f = fopen(path, "re");
    bool ok = f != NULL;
    while (ok && !feof(f)) {
        char *at = tc_buf_reserve(out, 16384);
        out->len += fread(at, 1, 16384, f);
        ok = !ferror(f) && out->len <= MAX_FILE_BYTES;
    }
    if (!ok && why)
        *why = tc_asprintf("%s \"%s\": %s", what, path,
                           out->len > MAX_FILE_BYTES ? "too large" : strerror(errno ? errno : EIO));
    if (f)
        fclose(f);
    return ok;
}

/* Reads what there is to read. The context is new only when the content is. */
static bool load(struct tls_credentials *c, char **why)
{
    struct tc_buf bufs[PARTS] = {{0}};
    struct tc_slice texts[PARTS] = {{0}};
    bool ok = true;
    for (int i = 0; ok && i < PARTS; i++) {
        if (!c->paths[i])
            continue;
        ok = read_file(c->paths[i], part_names[i], &bufs[i], why);
        tc_buf_cstr(&bufs[i]);
        texts[i] = tc_buf_slice(&bufs[i]);
    }
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (ok)
        digest_of(texts, digest, &len);
    if (ok && (len != c->digest_len || memcmp(digest, c->digest, len) != 0 || !c->context)) {
        struct tc_status error = {0};
        struct tc_tls_context *context = make_context(texts, &error);
        if (context) {
            tc_tls_context_unref(c->context);
            c->context = context;
            memcpy(c->digest, digest, len);
            c->digest_len = len;
        } else {
            ok = false;
            if (why)
                *why = tc_asprintf("%s", tc_status_text(&error));
        }
        tc_status_fini(&error);
    }
    for (int i = 0; i < PARTS; i++)
        tc_buf_fini(&bufs[i]);
    c->read_ns = tc_system_clock.monotonic_ns(NULL);
    return ok;
}

static struct tc_tls_context *current(struct tls_credentials *c)
{
    pthread_mutex_lock(&c->mutex);
    if (c->from_files && tc_system_clock.monotonic_ns(NULL) - c->read_ns >= c->refresh_ns) {
        char *why = NULL;
        if (!load(c, &why))
            TC_LOG(TC_LOG_TLS, TORC_LOG_WARN, "%s: the last good files stay in use", why);
        tc_free(why);
    }
    struct tc_tls_context *context = tc_tls_context_ref(c->context);
    pthread_mutex_unlock(&c->mutex);
    return context;
}

struct tc_creds_handshake {
    struct tc_tls_handshake *tls;
    tc_creds_fn fn;
    void *arg;
};

static void on_tls(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_creds_handshake h = *(struct tc_creds_handshake *)arg;
    tc_free(arg);
    h.fn(h.arg, bs, error);
}

static struct tc_creds_handshake *tls_start(torc_credentials *base, struct tc_loop *loop, struct tc_bytestream *bs,
                                            const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    struct tc_creds_handshake *h = TC_NEW(struct tc_creds_handshake);
    struct tc_tls_context *context = current(TC_CONTAINER_OF(base, struct tls_credentials, base));
    h->fn = fn;
    h->arg = arg;
    h->tls = tc_tls_handshake(loop, context, bs, peer->server_name, peer->timeout_ms, on_tls, h);
    tc_tls_context_unref(context);
    return h;
}

static void tls_cancel(struct tc_creds_handshake *h)
{
    tc_tls_handshake_cancel(h->tls);
    tc_free(h);
}

static void tls_free(torc_credentials *base)
{
    struct tls_credentials *c = TC_CONTAINER_OF(base, struct tls_credentials, base);
    tc_tls_context_unref(c->context);
    for (int i = 0; i < PARTS; i++)
        tc_free(c->paths[i]);
    pthread_mutex_destroy(&c->mutex);
    tc_rstr_unref(c->base.key);
    tc_free(c);
}

static const struct tc_creds_ops tls_ops = {
    .type = "tls",
    .start = tls_start,
    .cancel = tls_cancel,
    .free = tls_free,
};

static struct tls_credentials *new_credentials(void)
{
    struct tls_credentials *c = TC_NEW(struct tls_credentials);
    tc_ref_init(&c->base.ref);
    c->base.ops = &tls_ops;
    c->base.scheme = "https";
    pthread_mutex_init(&c->mutex, NULL);
    return c;
}

static void set_key(struct tls_credentials *c, const char *kind, const void *data, size_t len)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, kind);
    tc_hex_encode(&b, data, len);
    c->base.key = tc_rstr_new(b.data, b.len);
    tc_buf_fini(&b);
}

void torc_tls_options_init(struct torc_tls_options *options)
{
    *options = (struct torc_tls_options){.size = sizeof(*options)};
}

static struct tc_slice optional(const char *text)
{
    return text ? tc_slice_str(text) : tc_slice_of(NULL, 0);
}

torc_credentials *torc_credentials_tls(const struct torc_tls_options *given, char **why)
{
    struct torc_tls_options options;
    torc_tls_options_init(&options);
    if (given && given->size < sizeof(given->size)) {
        if (why)
            *why = tc_asprintf("options: size is %zu: call torc_tls_options_init first", given->size);
        return NULL;
    }
    if (given)
        memcpy(&options, given, TC_MIN(given->size, sizeof(options)));
    const struct tc_slice texts[PARTS] = {optional(options.roots_pem), optional(options.certificate_pem),
                                          optional(options.private_key_pem)};
    struct tc_status error = {0};
    struct tc_tls_context *context = make_context(texts, &error);
    if (!context) {
        if (why)
            *why = tc_asprintf("%s", tc_status_text(&error));
        tc_status_fini(&error);
        return NULL;
    }
    struct tls_credentials *c = new_credentials();
    c->context = context;
    digest_of(texts, c->digest, &c->digest_len);
    set_key(c, "tls:", c->digest, c->digest_len);
    return &c->base;
}

torc_credentials *tc_credentials_tls_files(const struct tc_tls_files *files, char **why)
{
    struct tls_credentials *c = new_credentials();
    const char *const paths[PARTS] = {files->ca_certificate_file, files->certificate_file, files->private_key_file};
    struct tc_buf names = {0};
    for (int i = 0; i < PARTS; i++) {
        c->paths[i] = paths[i] ? tc_strdup(paths[i]) : NULL;
        /* A NUL behind each, and a mark for those that are absent. */
        tc_buf_append_str(&names, paths[i] ? paths[i] : "\n");
        tc_buf_append_char(&names, '\0');
    }
    c->from_files = true;
    c->refresh_ns = files->refresh_interval_ns;
    /* By path, not by content: the content changes. */
    set_key(c, "tls-files:", names.data, names.len);
    tc_buf_fini(&names);
    if (load(c, why))
        return &c->base;
    tls_free(&c->base);
    return NULL;
}
