/* TLS channel credentials, of two kinds: from texts, which never change and have one context, and from files, whose
 * context is replaced when they change (creds/tls_source.h).
 *
 * The key (base.key) says which connections may be shared. For texts it has a digest of the texts: equal texts share
 * connections, and the key holds no secret. For files it has the paths and the interval, since the content changes. In
 * both cases it says whether servers are verified. Credentials with a hook share connections with no other credentials.
 *
 * struct tc_tls_credentials serves servers too (server_tls.c). Once made, the credentials do not change, except for
 * `source`, which has a lock of its own, and for the hook's count of peers. Credentials are for any thread, a handshake
 * for its loop's (creds/handshake.h). */
#include <stdatomic.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/thread.h"
#include "creds/handshake.h"
#include "creds/tls.h"
#include "tls/openssl.h"
#include "tls/tls.h"

enum part { ROOTS, CERTIFICATE, KEY, PARTS };

/* The application's own check of a server, and the parts of Torc's check that are off. */
struct server_check {
    struct tc_tls_hook hook;
    bool skip_verify, skip_name;
};

static struct tc_tls_credentials *tls_of(torc_credentials *base)
{
    return TC_CONTAINER_OF(base, struct tc_tls_credentials, base);
}

static struct tc_creds_handshake *tls_start(torc_credentials *base, struct tc_loop *loop, struct tc_bytestream *bs,
                                            const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    struct tc_tls_credentials *c = tls_of(base);
    return c->fixed ? tc_creds_handshake_tls(loop, c->fixed, &c->hook, bs, peer, fn, arg)
                    : tc_creds_handshake_source(loop, &c->source, &c->hook, NULL, bs, peer, fn, arg);
}

static uint64_t tls_epoch(torc_credentials *base)
{
    uint64_t epoch = 0;
    if (!tls_of(base)->fixed)
        tc_tls_context_unref(tc_tls_source_context(&tls_of(base)->source, &epoch, NULL));
    return epoch;
}

static void tls_free(torc_credentials *base)
{
    struct tc_tls_credentials *c = tls_of(base);
    if (c->fixed)
        tc_tls_context_unref(c->fixed);
    else
        tc_tls_source_fini(&c->source);
    tc_rstr_unref(c->base.key);
    if (c->hook.release)
        c->hook.release(c->hook.arg);
    tc_free(c);
}

struct tc_tls_credentials *tc_tls_credentials_new(struct tc_rstr *key)
{
    static const struct tc_creds_ops ops = {
        .type = "tls", .start = tls_start, .cancel = tc_creds_handshake_cancel, .epoch = tls_epoch, .free = tls_free};
    struct tc_tls_credentials *c = TC_NEW(struct tc_tls_credentials);
    tc_ref_init(&c->base.ref);
    c->base.ops = &ops;
    c->base.scheme = "https";
    c->base.key = key;
    return c;
}

void tc_tls_credentials_set_hook(struct tc_tls_credentials *c, const struct tc_tls_hook *hook)
{
    c->hook = (struct tc_tls_hook){&c->base, hook->fn, hook->release, hook->arg, 0};
}

torc_credentials *tc_tls_credentials_refuse(torc_error **error, const char *why)
{
    if (tc_tls_check(error))
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_TLS, "%s", why);
    return NULL;
}

uint64_t tc_tls_refresh_ns(int64_t refresh_interval_ms)
{
    uint64_t ms = (uint64_t)refresh_interval_ms;
    return ms < UINT64_MAX / TC_NS_PER_MS ? ms * TC_NS_PER_MS : UINT64_MAX;
}

torc_credentials *tc_tls_credentials_of_files(struct tc_tls_credentials *c, torc_error **error)
{
    char *why = NULL;
    struct tc_tls_context *context = tc_tls_source_context(&c->source, NULL, &why);
    if (context) {
        tc_tls_context_unref(context);
        return &c->base;
    }
    torc_credentials_unref(&c->base);
    tc_tls_credentials_refuse(error, why);
    tc_free(why);
    return NULL;
}

static struct tc_slice text_or_none(const char *text)
{
    return text ? tc_slice_str(text) : tc_slice_of(NULL, 0);
}

/* Stores the SHA-256 of the texts and their lengths in `digest`, which has room for EVP_MAX_MD_SIZE bytes. A text that
 * is absent differs from an empty one. `md` may be NULL. Returns false if OpenSSL fails. Called in a foreign
 * section. */
static bool texts_digest(EVP_MD_CTX *md, const struct tc_slice texts[PARTS], uint8_t *digest, unsigned *len)
{
    bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    for (int i = 0; ok && i < PARTS; i++) {
        uint64_t n = texts[i].data ? texts[i].len : UINT64_MAX;
        ok = EVP_DigestUpdate(md, &n, sizeof(n)) == 1 && EVP_DigestUpdate(md, texts[i].data, texts[i].len) == 1;
    }
    return ok && EVP_DigestFinal_ex(md, digest, len) == 1;
}

/* Returns a key that is equal to no other. */
static struct tc_rstr *unique_key(void)
{
    static atomic_ullong unique;
    return tc_rstr_printf("tls-unique:%llu", atomic_fetch_add(&unique, 1));
}

/* Returns a unique key for credentials with a hook, which may tell servers apart by anything. Otherwise the key is
 * equal for equal texts with equal verification, and only for those; it is unique if no digest can be made (OpenSSL is
 * out of memory or has no SHA-256, or the process is exiting). */
static struct tc_rstr *texts_key(const struct tc_slice texts[PARTS], const struct server_check *check)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool ok = false;
    if (!check->hook.fn && tc_foreign_enter()) {
        EVP_MD_CTX *md = EVP_MD_CTX_new();
        ok = texts_digest(md, texts, digest, &len);
        EVP_MD_CTX_free(md);
        tc_foreign_leave();
    }
    if (!ok)
        return unique_key();
    struct tc_buf b = {0};
    tc_buf_append_str(&b, check->skip_verify ? "tls-unverified:" : "tls:");
    tc_hex_encode(&b, digest, len);
    return tc_rstr_of_buf(&b);
}

/* Returns false with an error if the check contradicts itself or the roots. `options_name` and `roots_name` are what
 * the error calls the struct and its field of roots. */
static bool check_accept(const struct server_check *check, const char *roots, const char *options_name,
                         const char *roots_name, torc_error **error)
{
    if (check->skip_verify && roots)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "%s: %s: must be NULL with skip_verify, which trusts no root", options_name, roots_name);
    if (check->skip_name && !check->hook.fn)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "%s: skip_name: needs verify, which checks the name instead", options_name);
    return true;
}

static enum tc_tls_verify check_verify(const struct server_check *check)
{
    return check->skip_verify ? TC_TLS_VERIFY_NONE : check->skip_name ? TC_TLS_VERIFY_CHAIN : TC_TLS_VERIFY_FULL;
}

static void warn_of_skipping(const struct server_check *check)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (check->skip_verify && tc_log_enabled(TC_LOG_TLS, TORC_LOG_WARN) && !atomic_flag_test_and_set(&told))
        TC_LOG(TC_LOG_TLS, TORC_LOG_WARN,
               "TLS credentials with skip_verify: the certificates of servers are not verified");
}

torc_credentials *torc_credentials_tls(const struct torc_tls_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_tls_options o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_TLS, &o, given, error))
        return NULL;
    const struct server_check check = {
        {NULL, o.verify, o.verify_release, o.verify_arg, 0}, o.skip_verify != 0, o.skip_name != 0};
    if (!check_accept(&check, o.roots_pem, "options", "roots_pem", error))
        return NULL;
    const struct tc_slice texts[PARTS] = {text_or_none(o.roots_pem), text_or_none(o.certificate_pem),
                                          text_or_none(o.private_key_pem)};
    struct tc_status fault = {0};
    struct tc_tls_opts opts = {
        .verify = check_verify(&check),
        .one_name = check.hook.fn != NULL,
        .roots_pem = texts[ROOTS],
        .certificate_pem = texts[CERTIFICATE],
        .private_key_pem = texts[KEY],
    };
    struct tc_tls_context *context = tc_tls_context_new(&opts, &fault);
    if (!context) {
        tc_tls_credentials_refuse(error, tc_status_text(&fault));
        tc_status_fini(&fault);
        return NULL;
    }
    warn_of_skipping(&check);
    struct tc_tls_credentials *c = tc_tls_credentials_new(texts_key(texts, &check));
    c->fixed = context;
    tc_tls_credentials_set_hook(c, &check.hook);
    return &c->base;
}

/* Makes credentials from files. The caller sets the check's hook. */
static struct tc_tls_credentials *files_new(const struct tc_cert_paths *paths, const struct server_check *check)
{
    struct tc_cert_files *files = tc_cert_files_new(paths);
    struct tc_rstr *key = check->hook.fn ? unique_key()
                                         : tc_rstr_printf("tls-files%s:%s", check->skip_verify ? "-unverified" : "",
                                                          tc_cert_files_key(files)->data);
    struct tc_tls_credentials *c = tc_tls_credentials_new(key);
    struct tc_tls_source_opts opts = {
        .verify = check_verify(check),
        .one_name = check->hook.fn != NULL,
        .roots = tc_cert_files_have_roots(files) ? files : NULL,
        .identity = tc_cert_files_have_identity(files) ? files : NULL,
    };
    tc_tls_source_init(&c->source, &opts);
    c->base.refresh_ns = tc_tls_source_refresh_ns(&c->source);
    tc_cert_files_unref(files);
    return c;
}

torc_credentials *tc_credentials_tls_files(const struct tc_cert_paths *paths)
{
    return &files_new(paths, &(struct server_check){0})->base;
}

/* Fills *out and *check. Returns false with an error if the options cannot be used. */
static bool files_accept(struct torc_tls_files *out, const struct torc_tls_files *given, struct server_check *check,
                         torc_error **error)
{
    if (!given)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "files: it is NULL");
    if (!tc_options_complete(TC_OPTIONS_TLS_FILES, out, given, error))
        return false;
    if (!out->certificate_file != !out->private_key_file)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "files: certificate_file and private_key_file must both be set, or neither");
    *check = (struct server_check){
        {NULL, out->verify, out->verify_release, out->verify_arg, 0}, out->skip_verify != 0, out->skip_name != 0};
    return check_accept(check, out->ca_certificate_file, "files", "ca_certificate_file", error);
}

torc_credentials *torc_credentials_tls_files(const struct torc_tls_files *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_tls_files files;
    struct server_check check;
    if (tc_error_pending(error) || !files_accept(&files, given, &check, error))
        return NULL;
    const struct tc_cert_paths paths = {
        .ca_certificate_file = files.ca_certificate_file,
        .certificate_file = files.certificate_file,
        .private_key_file = files.private_key_file,
        .refresh_interval_ns = tc_tls_refresh_ns(files.refresh_interval_ms),
    };
    torc_credentials *c = tc_tls_credentials_of_files(files_new(&paths, &check), error);
    if (c) {
        warn_of_skipping(&check);
        tc_tls_credentials_set_hook(tls_of(c), &check.hook);
    }
    return c;
}
