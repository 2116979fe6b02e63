/* A JWT in a file (A97): read for each fetch, so that a rotated token comes into use. Space around the token is
 * dropped, since editors add it. A fetch fails with UNAUTHENTICATED when the file is not a JWT with an expiry, or a
 * header cannot carry it; with UNAVAILABLE when the file cannot be read or its JWT has expired
 * (tc_token_refuse_expired). RPCs fail with that status if no cached token serves. */
#include "creds/call/jwt_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread.h"
#include "creds/call/jwt.h"

/* More than most servers accept of headers. */
enum { MAX_TOKEN_FILE_BYTES = 65536 };

struct jwt_file {
    struct tc_token_source base;
    char *path;
};

static struct tc_slice token_trim(struct tc_slice s)
{
    while (s.len && (unsigned char)s.data[s.len - 1] <= ' ')
        s.len--;
    while (s.len && (unsigned char)s.data[0] <= ' ') {
        s.data++;
        s.len--;
    }
    return s;
}

void tc_jwt_file_token(const char *path, struct tc_slice content, struct tc_token *out)
{
    const char *why = "it has bytes that no header may have";
    struct tc_slice token = token_trim(content);
    int64_t exp_s;
    struct tc_auth_metadata *m = NULL;
    if (tc_jwt_expiry(token, &exp_s, &why) == 0)
        m = tc_auth_metadata_token("Bearer", token);
    if (!m) {
        tc_token_fail(out, tc_status_make(TORC_STATUS_UNAUTHENTICATED, TORC_LAYER_CREDENTIALS,
                                          "the JWT of %s cannot be used: %s", path, why));
        return;
    }
    out->metadata = m;
    /* An int64_t of nanoseconds since 1970 ends in the year 2262. */
    out->expires_ns = exp_s < INT64_MAX / (int64_t)TC_NS_PER_S ? exp_s * (int64_t)TC_NS_PER_S : INT64_MAX;
}

static void jwt_file_fetch(struct tc_token_source *s, struct tc_token *out)
{
    const char *path = TC_CONTAINER_OF(s, struct jwt_file, base)->path;
    char scratch[128];
    struct tc_buf content = {0};
    const char *why;
    if (tc_file_read(path, MAX_TOKEN_FILE_BYTES, &content, &why, scratch) == 0)
        tc_jwt_file_token(path, tc_buf_slice(&content), out);
    else
        tc_token_fail(out, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CREDENTIALS,
                                          "the JWT file %s cannot be read: %s", path, why));
    tc_buf_wipe(&content);
}

static void jwt_file_free(struct tc_token_source *s)
{
    struct jwt_file *f = TC_CONTAINER_OF(s, struct jwt_file, base);
    tc_free(f->path);
    tc_free(f);
}

torc_call_credentials *tc_call_creds_jwt_file(const char *path)
{
    static const struct tc_token_source_ops ops = {
        .type = "jwt_token_file", .fetch = jwt_file_fetch, .free = jwt_file_free};
    struct jwt_file *f = TC_NEW(struct jwt_file);
    f->base.ops = &ops;
    f->base.from = f->path = tc_strdup(path);
    return tc_token_creds_new(&f->base, &tc_system_clock);
}

torc_call_credentials *torc_call_credentials_jwt_token_file(const char *path, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    if (path && path[0])
        return tc_call_creds_jwt_file(path);
    tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "path: must name a file");
    return NULL;
}
