/* SPIFFE ids and trust bundle maps (A87). The input: an id, up to a newline, then a map. An id is accepted exactly if
 * the model (model_domain) accepts it. An accepted map gives a peer with that id as many roots as the JSON has keys for
 * the id's trust domain. */
#include <openssl/x509v3.h>

#include "base/json.h"
#include "base/mem.h"
#include "creds/spiffe.h"
#include "fuzz.h"

static bool in_set(char c, const char *more)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(more, c));
}

/* Returns the id's trust domain, to be freed with tc_free, or NULL if the id is invalid. */
static char *model_domain(struct tc_slice id)
{
    const char *upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
    size_t at = 9, start;
    if (id.len > 2048 || id.len < at || memcmp(id.data, "spiffe://", at) != 0)
        return NULL;
    while (at < id.len && in_set(id.data[at], ".-_"))
        at++;
    size_t domain = at - 9;
    while (at < id.len && id.data[at] == '/') {
        start = ++at;
        while (at < id.len && in_set(id.data[at], upper))
            at++;
        if (at == start || (at - start <= 2 && memcmp(id.data + start, "..", at - start) == 0))
            return NULL;
    }
    return domain && domain <= 255 && at == id.len ? tc_strndup(id.data + 9, domain) : NULL;
}

/* Returns a certificate whose one URI name is the id, to be freed with X509_free. */
static X509 *peer_of(struct tc_slice id)
{
    X509 *cert = X509_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    TC_FUZZ_CHECK(cert && names && name && text && ASN1_STRING_set(text, id.data, (int)id.len) == 1);
    GENERAL_NAME_set0_value(name, GEN_URI, text);
    TC_FUZZ_CHECK(sk_GENERAL_NAME_push(names, name) > 0);
    TC_FUZZ_CHECK(X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0) == 1);
    GENERAL_NAMES_free(names);
    return cert;
}

/* Checks that a peer has roots exactly if its trust domain has a bundle, and one root for each key. */
static void check_peer(const struct tc_spiffe_map *map, const json_t *json, struct tc_slice id, const char *domain)
{
    const json_t *bundle = domain ? json_object_get(json_object_get(json, "trust_domains"), domain) : NULL;
    struct tc_buf why = {0};
    X509 *peer = peer_of(id);
    STACK_OF(X509) *roots = tc_spiffe_map_roots(map, peer, &why);
    TC_FUZZ_CHECK((roots != NULL) == (bundle != NULL) && (roots != NULL) == (why.len == 0));
    if (roots)
        TC_FUZZ_CHECK((size_t)sk_X509_num(roots) == json_array_size(json_object_get(bundle, "keys")));
    X509_free(peer);
    tc_buf_fini(&why);
}

static void check_map(struct tc_slice text, struct tc_slice id, const char *domain)
{
    struct tc_validation_errors errors = {0};
    struct tc_spiffe_map *map = tc_spiffe_map_parse(text, &errors);
    TC_FUZZ_CHECK((map != NULL) == !tc_validation_any(&errors) && errors.path.len == 0);
    if (map) {
        json_t *json = tc_json_parse(text, NULL);
        TC_FUZZ_CHECK(json_is_object(json));
        check_peer(map, json, id, domain);
        json_decref(json);
    }
    tc_spiffe_map_unref(map);
    tc_validation_fini(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_slice id = tc_fuzz_line(&in), found = {0};
    if (id.len == 0)
        id = tc_slice_str("");
    char *domain = model_domain(id);
    const char *why = tc_spiffe_id_parse(id, &found);
    TC_FUZZ_CHECK((why == NULL) == (domain != NULL));
    TC_FUZZ_CHECK(!domain || tc_slice_eq_str(found, domain));
    check_map(tc_slice_of(in.data, in.len), id, domain);
    tc_free(domain);
    return 0;
}
