/* SPIFFE (A87): ids in certificates, and trust bundle maps.
 *
 * An id is "spiffe://DOMAIN[/path]" (section 2 of SPIFFE-ID), of at most 2048 bytes. The domain has 1 to 255 of the
 * characters a-z, 0-9, '.', '-' and '_'. The segments of the path may also have A-Z; none is empty, "." or "..".
 *
 * A map has for each trust domain the certificates (x5c) of its JWK set. One bad entry refuses the whole map, so that a
 * typing error does not quietly drop a trust domain.
 *
 * A peer's certificate must have exactly one URI among its names, a SPIFFE id; the roots of that id's domain then
 * verify the certificate.
 *
 * A map does not change after tc_spiffe_map_parse: any thread. The certificates belong to the map, and are made, read
 * and freed in foreign sections (base/fork.h). */
#include "creds/spiffe.h"

#include <limits.h>
#include <stdlib.h>

#include "base/fork.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/rstr.h"
#include "tls/openssl.h"
#include "tls/san.h"

#define SCHEME "spiffe://"
enum { MAX_ID_BYTES = 2048, MAX_DOMAIN_BYTES = 255 };

struct bundle {
    struct tc_rstr *domain;
    STACK_OF(X509) * roots;
};

struct tc_spiffe_map {
    struct tc_ref ref;
    TC_VEC(struct bundle) bundles; /* sorted by domain, for map_find */
};

struct tc_spiffe_map *tc_spiffe_map_ref(struct tc_spiffe_map *m)
{
    tc_ref_inc(&m->ref);
    return m;
}

void tc_spiffe_map_unref(struct tc_spiffe_map *m)
{
    if (!m || !tc_ref_dec(&m->ref))
        return;
    bool inside = tc_foreign_enter();
    for (size_t i = 0; i < m->bundles.len; i++) {
        tc_rstr_unref(m->bundles.data[i].domain);
        if (inside)
            sk_X509_pop_free(m->bundles.data[i].roots, X509_free);
    }
    if (inside)
        tc_foreign_leave();
    tc_vec_fini(&m->bundles);
    tc_free(m);
}

/* --- ids --- */

/* Returns true for the characters of a trust domain. */
static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

/* Returns the reason why a trust domain is refused, or NULL. */
static const char *id_check_domain(struct tc_slice domain)
{
    if (domain.len == 0)
        return "the trust domain is empty";
    if (domain.len > MAX_DOMAIN_BYTES)
        return "the trust domain is longer than 255 bytes";
    for (size_t i = 0; i < domain.len; i++)
        if (!is_lower_or_digit(domain.data[i]))
            return "the trust domain has characters other than a-z, 0-9, '.', '-' and '_'";
    return NULL;
}

/* Checks the path after the first '/'. Returns the reason why it is refused, or NULL. */
static const char *id_check_path(struct tc_slice path)
{
    struct tc_slice segment;
    bool more = true;
    while (tc_slice_split(&path, &more, '/', &segment)) {
        if (segment.len == 0)
            return "the path has an empty segment";
        if (tc_slice_eq_str(segment, ".") || tc_slice_eq_str(segment, ".."))
            return "the path has a relative segment";
        for (size_t i = 0; i < segment.len; i++)
            if (!is_lower_or_digit(segment.data[i]) && !(segment.data[i] >= 'A' && segment.data[i] <= 'Z'))
                return "the path has characters other than letters, digits, '.', '-' and '_'";
    }
    return NULL;
}

const char *tc_spiffe_id_parse(struct tc_slice id, struct tc_slice *domain)
{
    if (id.len > MAX_ID_BYTES)
        return "it is longer than 2048 bytes";
    if (!tc_slice_starts(id, tc_slice_str(SCHEME)))
        return "it does not begin with \"" SCHEME "\"";
    struct tc_slice rest = tc_slice_of(id.data + strlen(SCHEME), id.len - strlen(SCHEME)), name;
    bool more = true;
    tc_slice_split(&rest, &more, '/', &name);
    const char *why = id_check_domain(name);
    if (!why && more)
        why = id_check_path(rest);
    if (!why)
        *domain = name;
    return why;
}

/* --- maps ---
 *
 * map_read_domains and what it calls run in the foreign section of tc_spiffe_map_parse. */

/* Returns a certificate that the caller owns; NULL if the text is not one DER certificate in base64. */
static X509 *bundle_read_certificate(const char *base64)
{
    struct tc_buf der = {0};
    X509 *cert = NULL;
    if (tc_base64_decode(&der, tc_slice_str(base64)) == 0 && der.len > 0 && der.len <= LONG_MAX) {
        const unsigned char *at = (const unsigned char *)der.data, *end = at + der.len;
        cert = d2i_X509(NULL, &at, (long)der.len);
        if (cert && at != end) {
            X509_free(cert);
            cert = NULL;
        }
    }
    ERR_clear_error();
    tc_buf_fini(&der);
    return cert;
}

/* Appends the certificate of a JWK set's entry to `roots`. Adds validation errors for what is wrong in the entry. */
static void bundle_read_key(const json_t *key, STACK_OF(X509) * roots, struct tc_validation_errors *e)
{
    const char *kty = NULL, *use = NULL;
    const json_t *x5c = NULL;
    if (!json_is_object(key)) {
        tc_validation_add(e, "must be an object");
        return;
    }
    size_t before = e->count;
    tc_json_get_str(key, "kty", &kty, e);
    tc_json_get_str(key, "use", &use, e);
    tc_json_get_arr(key, "x5c", &x5c, e);
    if (e->count != before)
        return;
    if (!kty || (strcmp(kty, "RSA") != 0 && strcmp(kty, "EC") != 0))
        tc_validation_add_at(e, ".kty", "must be RSA or EC");
    if (!use || strcmp(use, "x509-svid") != 0)
        tc_validation_add_at(e, ".use", "must be x509-svid");
    const char *text = json_array_size(x5c) == 1 ? json_string_value(json_array_get(x5c, 0)) : NULL;
    X509 *cert = text ? bundle_read_certificate(text) : NULL;
    if (!text)
        tc_validation_add_at(e, ".x5c", "must be one certificate");
    else if (!cert)
        tc_validation_add_at(e, ".x5c", "is not an X.509 certificate in base64");
    if (cert && sk_X509_push(roots, cert) == 0) {
        tc_validation_add_at(e, ".x5c", "OpenSSL is out of memory");
        X509_free(cert);
    }
}

/* Appends the bundle of a trust domain to the map. Adds validation errors for what is wrong in the bundle. */
static void map_read_bundle(const char *domain, const json_t *json, struct tc_spiffe_map *m,
                            struct tc_validation_errors *e)
{
    const char *why = id_check_domain(tc_slice_str(domain));
    const json_t *keys = NULL, *key;
    uint64_t sequence;
    size_t i, before = e->count;
    if (why)
        tc_validation_add(e, "%s", why);
    if (!json_is_object(json)) {
        tc_validation_add(e, "must be an object");
        return;
    }
    tc_json_get_u64(json, "spiffe_sequence", UINT64_MAX, &sequence, e);
    if (!tc_json_get_arr(json, "keys", &keys, e)) {
        if (e->count == before)
            tc_validation_add_at(e, ".keys", "field not present");
        return;
    }
    struct bundle *b = tc_vec_push(&m->bundles);
    b->domain = tc_rstr_str(domain);
    b->roots = sk_X509_new_null();
    json_array_foreach(keys, i, key)
    {
        tc_validation_push(e, ".keys[%zu]", i);
        bundle_read_key(key, b->roots, e);
        tc_validation_pop(e);
    }
}

static int bundle_by_domain(const void *pa, const void *pb)
{
    const struct bundle *a = pa, *b = pb;
    return strcmp(a->domain->data, b->domain->data);
}

static void map_read_domains(const json_t *root, struct tc_spiffe_map *m, struct tc_validation_errors *e)
{
    const json_t *domains = NULL;
    const char *name;
    json_t *bundle;
    size_t before = e->count;
    if (!json_is_object(root)) {
        tc_validation_add(e, "must be an object");
        return;
    }
    if (!tc_json_get_obj(root, "trust_domains", &domains, e)) {
        if (e->count == before)
            tc_validation_add_at(e, ".trust_domains", "field not present");
        return;
    }
    json_object_foreach((json_t *)domains, name, bundle)
    {
        tc_validation_push_key(e, ".trust_domains", name);
        map_read_bundle(name, bundle, m, e);
        tc_validation_pop(e);
    }
    if (m->bundles.len > 1)
        qsort(m->bundles.data, m->bundles.len, sizeof(m->bundles.data[0]), bundle_by_domain);
}

struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json, struct tc_validation_errors *errors)
{
    char *why = NULL;
    size_t before = errors->count;
    json_t *root = tc_json_parse(json, &why);
    struct tc_spiffe_map *m = TC_NEW(struct tc_spiffe_map);
    tc_ref_init(&m->ref);
    const char *missing = tc_openssl_load();
    bool inside = !missing && tc_foreign_enter();
    if (!inside)
        tc_validation_add(errors, "cannot be read: %s", missing ? missing : "the process is exiting");
    else if (root)
        map_read_domains(root, m, errors);
    else
        tc_validation_add(errors, "not JSON: %s", why);
    if (inside)
        tc_foreign_leave();
    tc_free(why);
    json_decref(root);
    if (errors->count == before)
        return m;
    tc_spiffe_map_unref(m);
    return NULL;
}

/* Returns the roots of a trust domain, borrowed from the map, or NULL. */
static STACK_OF(X509) * map_find(const struct tc_spiffe_map *m, struct tc_slice domain)
{
    size_t lo = 0, hi = m->bundles.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = tc_slice_cmp(tc_rstr_slice(m->bundles.data[mid].domain), domain);
        if (c == 0)
            return m->bundles.data[mid].roots;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The URIs among the names of a leaf: how many, and the first one. */
struct uris {
    struct tc_buf first;
    size_t n;
};

static bool uris_on_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    struct uris *u = arg;
    if (kind == TC_SAN_URI && u->n++ == 0)
        tc_buf_append_slice(&u->first, name);
    return false;
}

struct stack_st_X509 *tc_spiffe_map_roots(const struct tc_spiffe_map *m, struct x509_st *leaf, struct tc_buf *why)
{
    struct uris uris = {0};
    struct tc_slice domain;
    STACK_OF(X509) *roots = NULL;
    tc_san_find(leaf, uris_on_name, &uris, NULL);
    const char *bad = uris.n == 1 ? tc_spiffe_id_parse(tc_buf_slice(&uris.first), &domain) : NULL;
    if (uris.n != 1)
        tc_buf_printf(why, "no SPIFFE certificate: it has %zu URIs among its names, not one", uris.n);
    else if (bad)
        tc_buf_printf(why, "no SPIFFE certificate: \"%s\" is not a SPIFFE id: %s", tc_buf_cstr(&uris.first), bad);
    else if (!(roots = map_find(m, domain)))
        tc_buf_printf(why, "the trust domain \"%.*s\" is not in the SPIFFE trust bundle map", (int)domain.len,
                      domain.data);
    tc_buf_fini(&uris.first);
    return roots;
}
