/* JSON Web Tokens: the expiry of a token. Only the payload is decoded, which is not a secret without the signature. */
#include "creds/call/jwt.h"

#include <jansson.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"

#define MAX_EXP_S INT64_C(253402300799)

/* Decodes base64 with RFC 4648's alphabet for URLs and file names, without padding. Other characters, and an empty
 * text, are errors: TORC_EPARSE. */
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
