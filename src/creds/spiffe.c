#include "creds/spiffe.h"

#include <limits.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/rstr.h"
#include "tls/openssl.h"
#include "tls/san.h"

#define SCHEME "spiffe://"
#define MAX_ID_BYTES 2048u
#define MAX_DOMAIN_BYTES 255u

struct bundle {
    struct tc_rstr *domain;
    STACK_OF(X509) * roots;
};

struct tc_spiffe_map {
    struct tc_ref ref;
    TC_VEC(struct bundle) bundles; /* sorted by domain */
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
    for (size_t i = 0; i < m->bundles.len; i++) {
        tc_rstr_unref(m->bundles.data[i].domain);
        sk_X509_pop_free(m->bundles.data[i].roots, X509_free);
    }
    tc_vec_fini(&m->bundles);
    tc_free(m);
}

/* --- ids --- */

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static const char *check_domain(struct tc_slice domain)
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

/* Behind the first '/'. */
static const char *check_path(struct tc_slice path)
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
    const char *why = check_domain(name);
    if (!why && more)
        why = check_path(rest);
    if (!why)
        *domain = name;
    return why;
}

/* --- maps --- */

static X509 *read_certificate(const char *base64)
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

/* One entry of a JWK set: what X.509 verification needs of it. */
static void read_key(const json_t *key, STACK_OF(X509) * roots, struct tc_faults *f)
{
    const char *kty = NULL, *use = NULL;
    const json_t *x5c = NULL;
    if (!json_is_object(key)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    size_t before = f->count;
    tc_json_get_str(key, "kty", &kty, f);
    tc_json_get_str(key, "use", &use, f);
    tc_json_get_arr(key, "x5c", &x5c, f);
    if (f->count != before)
        return;
    if (!kty || (strcmp(kty, "RSA") != 0 && strcmp(kty, "EC") != 0))
        tc_faults_add_at(f, ".kty", "must be RSA or EC");
    if (!use || strcmp(use, "x509-svid") != 0)
        tc_faults_add_at(f, ".use", "must be x509-svid");
    const char *text = json_array_size(x5c) == 1 ? json_string_value(json_array_get(x5c, 0)) : NULL;
    X509 *cert = text ? read_certificate(text) : NULL;
    if (!text)
        tc_faults_add_at(f, ".x5c", "must be one certificate");
    else if (!cert)
        tc_faults_add_at(f, ".x5c", "is no X.509 certificate in base64");
    if (cert && sk_X509_push(roots, cert) == 0)
        X509_free(cert);
}

static void read_bundle(const char *domain, const json_t *json, struct tc_spiffe_map *m, struct tc_faults *f)
{
    const char *why = check_domain(tc_slice_str(domain));
    const json_t *keys = NULL, *key;
    uint64_t sequence;
    size_t i, before = f->count;
    if (why)
        tc_faults_add(f, "%s", why);
    if (!json_is_object(json)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    tc_json_get_u64(json, "spiffe_sequence", UINT64_MAX, &sequence, f);
    if (!tc_json_get_arr(json, "keys", &keys, f)) {
        if (f->count == before)
            tc_faults_add_at(f, ".keys", "field not present");
        return;
    }
    struct bundle *b = tc_vec_push(&m->bundles);
    b->domain = tc_rstr_str(domain);
    b->roots = sk_X509_new_null();
    json_array_foreach(keys, i, key)
    {
        tc_faults_push(f, ".keys[%zu]", i);
        read_key(key, b->roots, f);
        tc_faults_pop(f);
    }
}

static int by_domain(const void *pa, const void *pb)
{
    const struct bundle *a = pa, *b = pb;
    return strcmp(a->domain->data, b->domain->data);
}

static void read_domains(const json_t *root, struct tc_spiffe_map *m, struct tc_faults *f)
{
    const json_t *domains = NULL;
    const char *name;
    json_t *bundle;
    size_t before = f->count;
    if (!json_is_object(root)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    if (!tc_json_get_obj(root, "trust_domains", &domains, f)) {
        if (f->count == before)
            tc_faults_add_at(f, ".trust_domains", "field not present");
        return;
    }
    json_object_foreach((json_t *)domains, name, bundle)
    {
        tc_faults_push(f, ".trust_domains[\"%s\"]", name);
        read_bundle(name, bundle, m, f);
        tc_faults_pop(f);
    }
    if (m->bundles.len > 1)
        qsort(m->bundles.data, m->bundles.len, sizeof(m->bundles.data[0]), by_domain);
}

struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json, struct tc_faults *faults)
{
    char *why = NULL;
    size_t before = faults->count;
    json_t *root = tc_json_parse(json, &why);
    struct tc_spiffe_map *m = TC_NEW(struct tc_spiffe_map);
    tc_ref_init(&m->ref);
    const char *missing = tc_openssl_load();
    if (missing)
        tc_faults_add(faults, "cannot be read: %s", missing);
    else if (root)
        read_domains(root, m, faults);
    else
        tc_faults_add(faults, "not JSON: %s", why);
    tc_free(why);
    json_decref(root);
    if (faults->count == before)
        return m;
    tc_spiffe_map_unref(m);
    return NULL;
}

static STACK_OF(X509) * find(const struct tc_spiffe_map *m, struct tc_slice domain)
{
    size_t lo = 0, hi = m->bundles.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct tc_slice name = tc_rstr_slice(m->bundles.data[mid].domain);
        size_t n = TC_MIN(name.len, domain.len);
        int c = memcmp(name.data, domain.data, n);
        if (c == 0)
            c = name.len < domain.len ? -1 : name.len > domain.len;
        if (c == 0)
            return m->bundles.data[mid].roots;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The URIs of a leaf. */
struct uris {
    struct tc_buf first;
    size_t n;
};

static bool on_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
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
    tc_san_find(leaf, on_name, &uris, NULL);
    const char *bad = uris.n == 1 ? tc_spiffe_id_parse(tc_buf_slice(&uris.first), &domain) : NULL;
    if (uris.n != 1)
        tc_buf_printf(why, "no SPIFFE certificate: it has %zu URIs among its names, not one", uris.n);
    else if (bad)
        tc_buf_printf(why, "no SPIFFE certificate: \"%s\" is no SPIFFE id: %s", tc_buf_cstr(&uris.first), bad);
    else if (!(roots = find(m, domain)))
        tc_buf_printf(why, "the trust domain \"%.*s\" is not in the SPIFFE trust bundle map", (int)domain.len,
                      domain.data);
    tc_buf_fini(&uris.first);
    return roots;
}
