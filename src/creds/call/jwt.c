/* JSON Web Tokens: the expiry of a token that was read, and RS256 signatures. Texts never quote a token, and buffers
 * that held one are wiped. Only base64 without padding, in the alphabet for URLs, is accepted; other characters are an
 * error, not skipped. */
#include "creds/call/jwt.h"

#include <jansson.h>

#include "base/fork.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"

#define MAX_EXP_S INT64_C(253402300799)

/* Base64 with RFC 4648's alphabet for URLs and file names, without padding. */
static int base64url_decode(struct tc_buf *out, struct tc_slice s)
{
    struct tc_buf plain = {0};
    int rc = s.len ? 0 : TORC_EPARSE;
    tc_buf_append_slice(&plain, s);
    for (size_t i = 0; i < plain.len && rc == 0; i++) {
        char c = plain.data[i];
        if (c == '+' || c == '/' || c == '=')
            rc = TORC_EPARSE;
        plain.data[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    if (rc == 0)
        rc = tc_base64_decode(out, tc_buf_slice(&plain));
    tc_buf_fini(&plain);
    return rc;
}

static void base64url_encode(struct tc_buf *out, const void *data, size_t len)
{
    size_t at = out->len;
    tc_base64_encode(out, data, len, false);
    for (; at < out->len; at++)
        out->data[at] = (char)(out->data[at] == '+' ? '-' : out->data[at] == '/' ? '_' : out->data[at]);
}

int tc_jwt_expiry(struct tc_slice token, int64_t *exp_s, const char **why)
{
    struct tc_slice parts[3], rest = token;
    size_t n = 0;
    bool more = true;
    while (n < TC_ARRAY_LEN(parts) && tc_slice_split(&rest, &more, '.', &parts[n]))
        n++;
    if (n != TC_ARRAY_LEN(parts) || more) {
        *why = "not a JWT: expected three parts separated by dots";
        return TORC_EPARSE;
    }
    struct tc_buf payload = {0};
    int rc = base64url_decode(&payload, parts[1]);
    json_t *claims = rc == 0 ? tc_json_parse(tc_buf_slice(&payload), NULL) : NULL;
    const json_t *exp = json_object_get(claims, "exp");
    if (rc != 0)
        *why = "its payload is not base64url";
    else if (!json_is_object(claims))
        *why = "its payload is not a JSON object";
    else if (!json_is_number(exp))
        *why = "its payload has no number \"exp\"";
    else if (!(json_number_value(exp) >= 1))
        *why = "its \"exp\" is not positive";
    else
        *exp_s = json_number_value(exp) < (double)MAX_EXP_S ? (int64_t)json_number_value(exp) : MAX_EXP_S;
    if (rc == 0 && !(json_number_value(exp) >= 1))
        rc = TORC_EPARSE;
    json_decref(claims);
    tc_buf_fini(&payload);
    return rc;
}

static void jwt_append_json(struct tc_buf *out, json_t *v)
{
    char *text = tc_json_text(v, false);
    base64url_encode(out, text, strlen(text));
    tc_free(text);
    json_decref(v);
}

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
