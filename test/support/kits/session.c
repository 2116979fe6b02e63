/* A set-cookie is read from the response headers or, if they have none, from the trailers. */
#include "support/kits/session.h"

#include <stdarg.h>
#include <string.h>

#include "support/cmocka.h"

#include "base/mem.h"
#include "base/parse.h"

void kit_session_answer_fini(struct kit_session_answer *a)
{
    tc_free(a->set_cookie);
}

/* Returns the one "set-cookie" of the metadata, which the caller frees with tc_free; NULL: there is none. `md` may be
 * NULL. Fails the test if there are several. */
static char *set_cookie_of(const torc_metadata *md)
{
    char *found = NULL;
    for (size_t i = 0; md && i < torc_metadata_count(md); i++) {
        const char *name;
        const void *value;
        size_t size;
        assert_int_equal(torc_metadata_at(md, i, &name, &value, &size), 0);
        if (strcmp(name, "set-cookie") != 0)
            continue;
        assert_null(found);
        found = tc_asprintf("%.*s", (int)size, (const char *)value);
    }
    return found;
}

struct kit_session_answer kit_session_call_with(struct kit_mesh_world *w, const char *method, const char *request,
                                                const char *const *cookies)
{
    torc_result *r;
    struct kit_session_answer a = {.backend = SIZE_MAX};
    torc_metadata *md = torc_metadata_new();
    for (size_t i = 0; cookies[i]; i++)
        assert_int_equal(torc_metadata_add(md, "cookie", cookies[i], strlen(cookies[i])), 0);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = md, .timeout_ms = 60000};
    r = torc_unary(w->ch, method, request, strlen(request), &o);
    const char *address;
    for (size_t i = 0; i < KIT_MESH_MAX && (address = kit_mesh_address(w->k, i)); i++)
        if (strcmp(address, torc_result_peer(r)) == 0)
            a.backend = i;
    a.code = torc_result_code(r);
    a.set_cookie = set_cookie_of(torc_result_headers(r));
    if (!a.set_cookie)
        a.set_cookie = set_cookie_of(torc_result_trailers(r));
    torc_result_free(r);
    torc_metadata_free(md);
    return a;
}

struct kit_session_answer kit_session_call(struct kit_mesh_world *w, const char *cookie)
{
    struct kit_session_answer a = kit_session_call_with(w, KIT_SESSION_METHOD, "", (const char *const[]){cookie, NULL});
    assert_int_equal(a.code, TORC_STATUS_OK);
    return a;
}

size_t kit_session_reaches(struct kit_mesh_world *w, const char *cookie)
{
    struct kit_session_answer a = kit_session_call(w, cookie);
    if (a.set_cookie)
        fail_msg("a cookie was set: %s", a.set_cookie);
    return a.backend;
}

char *kit_session_cookie(const char *fmt, ...)
{
    struct tc_buf text = {0}, out = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    tc_buf_append_str(&out, "s=");
    tc_base64_encode(&out, text.data, text.len, true);
    tc_buf_fini(&text);
    return tc_buf_take(&out);
}

char *kit_session_read_cookie(const char *set_cookie, char **cookie)
{
    struct tc_buf plain = {0};
    assert_non_null(set_cookie);
    assert_int_equal(strncmp(set_cookie, "s=", 2), 0);
    size_t n = strcspn(set_cookie, ";");
    assert_int_equal(tc_base64_decode(&plain, tc_slice_of(set_cookie + 2, n - 2)), 0);
    *cookie = tc_asprintf("%.*s", (int)n, set_cookie);
    return tc_buf_take(&plain);
}

size_t kit_session_begin(struct kit_mesh_world *w, const char *old, const char *cluster, char **cookie)
{
    struct kit_session_answer a = kit_session_call(w, old);
    char *plain = kit_session_read_cookie(a.set_cookie, cookie);
    char *expected = tc_asprintf("%s;cluster:%s", kit_mesh_address(w->k, a.backend), cluster);
    assert_string_equal(plain, expected);
    tc_free(expected);
    tc_free(plain);
    kit_session_answer_fini(&a);
    return a.backend;
}

void kit_session_wait(struct kit_mesh_world *w, const char *cookie, size_t i)
{
    for (unsigned n = 0; n < 100000; n++) {
        struct kit_session_answer a =
            kit_session_call_with(w, KIT_SESSION_METHOD, "", (const char *const[]){cookie, NULL});
        bool there = a.code == TORC_STATUS_OK && a.backend == i;
        if (a.code != TORC_STATUS_OK) /* a backend stopped during the call */
            assert_int_equal(a.code, TORC_STATUS_UNAVAILABLE);
        kit_session_answer_fini(&a);
        if (there)
            return;
    }
    fail_msg("backend %zu is not reached", i);
}

void kit_session_wait_leaves(struct kit_mesh_world *w, const char *cookie, size_t i)
{
    struct kit_session_answer a = kit_session_call(w, cookie);
    while (a.backend == i) {
        kit_session_answer_fini(&a);
        a = kit_session_call(w, cookie);
    }
    kit_session_answer_fini(&a);
}
