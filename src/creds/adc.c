#include "creds/adc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "creds/oauth.h"
#include "creds/service_account.h"
#include "tls/openssl.h"

#define MAX_FILE_BYTES 65536
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA_HOST "metadata.google.internal"

static const char *required(const json_t *obj, const char *key, struct tc_faults *f)
{
    const char *value = NULL;
    size_t before = f->count;
    if ((!tc_json_get_str(obj, key, &value, f) || !value[0]) && f->count == before)
        tc_faults_add(f, "%s is missing", key);
    return value;
}

static EVP_PKEY *parse_key(const char *pem, struct tc_faults *f)
{
    const char *missing = tc_openssl_load();
    if (missing) {
        tc_faults_add(f, "private_key cannot be read: %s", missing);
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return key;
    EVP_PKEY_free(key);
    tc_faults_add(f, "private_key is no RSA key in PEM");
    return NULL;
}

static torc_call_credentials *service_account(const json_t *v, struct tc_faults *f)
{
    const char *pem = required(v, "private_key", f);
    struct tc_service_account account = {.email = required(v, "client_email", f),
                                         .key_id = required(v, "private_key_id", f)};
    if (tc_faults_any(f) || !(account.key = parse_key(pem, f)))
        return NULL;
    torc_call_credentials *c = tc_service_account_creds(&account, &tc_system_clock);
    EVP_PKEY_free(account.key);
    return c;
}

/* A refresh token goes to https, or stays on this machine. */
static bool is_safe_uri(const char *uri)
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

static torc_call_credentials *authorized_user(const json_t *v, const char *roots_file, struct tc_faults *f)
{
    struct tc_refresh_opts o = {.token_uri = TOKEN_URI, .roots_file = roots_file};
    o.client_id = required(v, "client_id", f);
    o.client_secret = required(v, "client_secret", f);
    o.refresh_token = required(v, "refresh_token", f);
    if (tc_json_get_str(v, "token_uri", &o.token_uri, f) && !is_safe_uri(o.token_uri))
        tc_faults_add(f, "token_uri is neither https nor on this machine");
    return tc_faults_any(f) ? NULL : tc_refresh_token_creds(&o);
}

/* What jansson has copied out of the text. */
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
    struct tc_faults f;
    torc_call_credentials *c = NULL;
    const char *type = NULL;
    tc_faults_init(&f);
    /* Without jansson's reason, which quotes the text. */
    json_t *v = tc_json_parse(text, NULL);
    if (!json_is_object(v))
        tc_faults_add(&f, "it is no JSON object");
    else
        type = required(v, "type", &f);
    if (type && strcmp(type, "service_account") == 0)
        c = service_account(v, &f);
    else if (type && strcmp(type, "authorized_user") == 0)
        c = authorized_user(v, roots_file, &f);
    else if (type)
        tc_faults_add(&f, "type \"%s\" is not supported", type);
    if (!c && why)
        *why = tc_strdup(tc_faults_text(&f));
    tc_faults_fini(&f);
    wipe_members(v);
    json_decref(v);
    return c;
}

static torc_call_credentials *from_file(const char *path, const char *roots_file, bool may_be_absent, bool *absent,
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
        *why = tc_asprintf("Google's credentials in %s: %s", path, err ? what : reason);
    tc_free(reason);
    tc_buf_wipe(&text);
    return c;
}

/* NULL: there is no place for it. */
static char *gcloud_file(void)
{
    static const char name[] = "application_default_credentials.json";
    const char *folder = getenv("CLOUDSDK_CONFIG"), *home = getenv("HOME");
    if (folder && *folder)
        return tc_asprintf("%s/%s", folder, name);
    return home && *home ? tc_asprintf("%s/.config/gcloud/%s", home, name) : NULL;
}

torc_call_credentials *tc_adc_find(const struct tc_adc_opts *o, char **why)
{
    const char *named = o->credentials_file ? o->credentials_file : getenv("GOOGLE_APPLICATION_CREDENTIALS");
    bool absent = true;
    if (named && *named)
        return from_file(named, o->roots_file, false, &absent, why);
    char *path = gcloud_file();
    torc_call_credentials *c = path ? from_file(path, o->roots_file, true, &absent, why) : NULL;
    tc_free(path);
    if (c || !absent)
        return c;
    const char *host = o->metadata_host ? o->metadata_host : getenv("GCE_METADATA_HOST");
    return tc_metadata_server_creds(host && *host ? host : METADATA_HOST, TC_TOKEN_FETCH_MS);
}
