/* Application default credentials (AIP-4110): finds a file, or falls back to the metadata server, and makes the
 * credentials that the file describes.
 *
 * tc_adc_find has the order. A file that the options or GOOGLE_APPLICATION_CREDENTIALS name must exist; gcloud's file
 * may be absent. Files hold private keys and refresh tokens: jansson's reasons, which quote the text, are never shown,
 * and the text and the secrets in the parsed JSON are wiped. */
#include "creds/call/adc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/fork.h"
#include "base/json.h"
#include "base/mem.h"
#include "creds/call/oauth.h"
#include "creds/call/service_account.h"
#include "tls/openssl.h"

enum { MAX_FILE_BYTES = 65536 };
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA_HOST "metadata.google.internal"

/* Returns the text of a member, borrowed from `obj`. Adds an error if it is absent, empty or not a string. */
static const char *adc_required(const json_t *obj, const char *key, struct tc_validation_errors *f)
{
    const char *value = NULL;
    size_t before = f->count;
    if ((!tc_json_get_str(obj, key, &value, f) || !value[0]) && f->count == before)
        tc_validation_add(f, "%s is missing", key);
    return value;
}

/* Returns the RSA key of a PEM text, owned; NULL if there is none. The empty password keeps OpenSSL from asking for one
 * on the terminal. Called in a foreign section. */
static EVP_PKEY *adc_read_rsa(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* Returns the key, owned, to be freed in a foreign section; NULL with an error in `f`. */
static EVP_PKEY *adc_parse_key(const char *pem, struct tc_validation_errors *f)
{
    const char *missing = tc_openssl_load();
    if (missing) {
        tc_validation_add(f, "private_key cannot be read: %s", missing);
        return NULL;
    }
    if (!tc_foreign_enter()) {
        tc_validation_add(f, "private_key cannot be read: the process is exiting");
        return NULL;
    }
    EVP_PKEY *key = adc_read_rsa(pem);
    tc_foreign_leave();
    if (!key)
        tc_validation_add(f, "private_key is not an RSA key in PEM");
    return key;
}

static torc_call_credentials *service_account(const json_t *v, struct tc_validation_errors *f)
{
    const char *pem = adc_required(v, "private_key", f);
    struct tc_service_account account = {.email = adc_required(v, "client_email", f),
                                         .key_id = adc_required(v, "private_key_id", f)};
    if (tc_validation_any(f) || !(account.key = adc_parse_key(pem, f)))
        return NULL;
    torc_call_credentials *c = tc_service_account_creds(&account, &tc_system_clock);
    if (tc_foreign_enter()) {
        EVP_PKEY_free(account.key);
        tc_foreign_leave();
    }
    return c;
}

/* A refresh token is sent by https, or to this machine. A '@' or '\' before the path could hide another host. */
static bool uri_is_safe(const char *uri)
{
    static const char *const prefixes[] = {"http://127.0.0.1", "http://[::1]", "http://localhost"};
    struct tc_slice s = tc_slice_str(uri);
    if (tc_slice_istarts(s, tc_slice_str("https://")))
        return true;
    for (size_t i = 0; i < TC_ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (tc_slice_istarts(s, tc_slice_str(prefixes[i])) && (uri[n] == ':' || uri[n] == '/'))
            return !strpbrk(uri + n, "@\\") || strcspn(uri + n, "@\\") > strcspn(uri + n, "/");
    }
    return false;
}

static torc_call_credentials *authorized_user(const json_t *v, const char *roots_file, struct tc_validation_errors *f)
{
    struct tc_refresh_opts o = {.token_uri = TOKEN_URI, .roots_file = roots_file};
    o.client_id = adc_required(v, "client_id", f);
    o.client_secret = adc_required(v, "client_secret", f);
    o.refresh_token = adc_required(v, "refresh_token", f);
    if (tc_json_get_str(v, "token_uri", &o.token_uri, f) && !uri_is_safe(o.token_uri))
        tc_validation_add(f, "token_uri is neither https nor on this machine");
    return tc_validation_any(f) ? NULL : tc_refresh_token_creds(&o);
}

/* Wipes the secrets that the parsed JSON holds. */
static void wipe_members(const json_t *v)
{
    static const char *const secrets[] = {"private_key", "client_secret", "refresh_token"};
    for (size_t i = 0; i < TC_ARRAY_LEN(secrets); i++) {
        const char *text = json_string_value(json_object_get(v, secrets[i]));
        if (text)
            explicit_bzero((char *)(uintptr_t)text, strlen(text));
    }
}

torc_call_credentials *tc_adc_parse(struct tc_slice text, const char *roots_file, char **why)
{
    struct tc_validation_errors f = {0};
    torc_call_credentials *c = NULL;
    const char *type = NULL;
    json_t *v = tc_json_parse(text, NULL);
    if (!json_is_object(v))
        tc_validation_add(&f, "it is not a JSON object");
    else
        type = adc_required(v, "type", &f);
    if (type && strcmp(type, "service_account") == 0)
        c = service_account(v, &f);
    else if (type && strcmp(type, "authorized_user") == 0)
        c = authorized_user(v, roots_file, &f);
    else if (type)
        tc_validation_add(&f, "type \"" TC_SHOWN "\" is not supported", TC_SHOW(type));
    if (!c && why)
        *why = tc_strdup(tc_validation_text(&f));
    tc_validation_fini(&f);
    wipe_members(v);
    json_decref(v);
    return c;
}

/* Returns the credentials of a file, or NULL with the reason in *why. With may_be_absent, a file that does not exist
 * sets *absent and gives NULL without a reason. `why` may be NULL. */
static torc_call_credentials *adc_from_file(const char *path, const char *roots_file, bool may_be_absent, bool *absent,
                                            char **why)
{
    char scratch[128], *reason = NULL;
    struct tc_buf text = {0};
    torc_call_credentials *c = NULL;
    const char *what;
    int err = tc_file_read(path, MAX_FILE_BYTES, &text, &what, scratch);
    *absent = may_be_absent && (err == ENOENT || err == ENOTDIR);
    if (err == 0)
        c = tc_adc_parse(tc_buf_slice(&text), roots_file, &reason);
    if (!c && !*absent && why)
        *why = tc_asprintf("Google's credentials in " TC_SHOWN ": %s", TC_SHOW(path), err ? what : reason);
    tc_free(reason);
    tc_buf_wipe(&text);
    return c;
}

/* Returns gcloud's path of the file (tc_free), or NULL when the environment names no folder. */
static char *adc_gcloud_file(void)
{
    static const char name[] = "application_default_credentials.json";
    const char *folder = getenv("CLOUDSDK_CONFIG"), *home = getenv("HOME");
    if (folder && *folder)
        return tc_asprintf("%s/%s", folder, name);
    return home && *home ? tc_asprintf("%s/.config/gcloud/%s", home, name) : NULL;
}

torc_call_credentials *tc_adc_find(const struct tc_adc_opts *o, char **why)
{
    const char *file = o->credentials_file;
    const char *named = file && *file ? file : getenv("GOOGLE_APPLICATION_CREDENTIALS");
    bool absent = true;
    if (named && *named)
        return adc_from_file(named, o->roots_file, false, &absent, why);
    char *path = adc_gcloud_file();
    torc_call_credentials *c = path ? adc_from_file(path, o->roots_file, true, &absent, why) : NULL;
    tc_free(path);
    if (c || !absent)
        return c;
    const char *host = o->metadata_host ? o->metadata_host : getenv("GCE_METADATA_HOST");
    return tc_metadata_server_creds(host && *host ? host : METADATA_HOST, TC_TOKEN_FETCH_MS);
}
