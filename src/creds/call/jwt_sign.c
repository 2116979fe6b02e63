/* Builds header and claims as JSON, signs them inside a foreign section (base/fork.h), and joins the three parts. The
 * buffer of the signature is wiped. */
#include "creds/call/jwt_sign.h"

#include <jansson.h>

#include "base/fork.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"

static void base64url_encode(struct tc_buf *out, const void *data, size_t len)
{
    size_t at = out->len;
    tc_base64_encode(out, data, len, false);
    for (; at < out->len; at++)
        out->data[at] = (char)(out->data[at] == '+' ? '-' : out->data[at] == '/' ? '_' : out->data[at]);
}

/* Appends the JSON text of `v` in base64url. Takes over the reference to `v`. */
static void jwt_append_json(struct tc_buf *out, json_t *v)
{
    char *text = tc_json_text(v, false);
    base64url_encode(out, text, strlen(text));
    tc_free(text);
    json_decref(v);
}

/* Appends the signature of the data. Returns false, with `signature` unchanged, if OpenSSL fails or the process is
 * exiting. */
static bool jwt_sign_rs256(EVP_PKEY *key, const char *data, size_t len, struct tc_buf *signature)
{
    if (!tc_foreign_enter())
        return false;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    size_t n = 0;
    bool ok = md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(md, NULL, &n, (const unsigned char *)data, len) == 1;
    if (ok) {
        char *at = tc_buf_reserve(signature, n);
        ok = EVP_DigestSign(md, (unsigned char *)at, &n, (const unsigned char *)data, len) == 1;
        signature->len += ok ? n : 0;
    }
    EVP_MD_CTX_free(md);
    tc_foreign_leave();
    return ok;
}

int tc_jwt_sign(struct tc_buf *out, EVP_PKEY *key, const struct tc_jwt_claims *c)
{
    struct tc_buf token = {0}, signature = {0};
    json_t *header = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (c->key_id)
        json_object_set_new(header, "kid", json_string(c->key_id));
    jwt_append_json(&token, header);
    tc_buf_append_char(&token, '.');
    jwt_append_json(&token, json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", c->issuer, "sub", c->issuer, "aud",
                                      c->audience, "iat", (json_int_t)c->issued_s, "exp", (json_int_t)c->expires_s));
    int rc = jwt_sign_rs256(key, token.data, token.len, &signature) ? 0 : TORC_EIO;
    if (rc == 0) {
        tc_buf_append_slice(out, tc_buf_slice(&token));
        tc_buf_append_char(out, '.');
        base64url_encode(out, signature.data, signature.len);
    }
    tc_buf_fini(&token); /* no secret without the signature */
    tc_buf_wipe(&signature);
    return rc;
}
