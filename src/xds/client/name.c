/* Resource names.
 *
 * Two spellings of one xdstp: name get one canonical text (A47): escapes are decoded and encoded again, query
 * parameters are sorted and each key stands once, the fragment is left out. Other names are taken as they are, except
 * "*", which is refused: a request for "*" would ask for all resources of the type. */
#include "xds/client/name.h"

#include <stdlib.h>

#include "base/parse.h"

#define SCHEME "xdstp:"
/* RFC 3986 3.3 and 3.4: the characters, besides the unreserved ones, that are not escaped in a path, and in a key or
 * value of a query. KEEP_QUERY lacks & and =, which separate, and +, which some readers take for a space. */
#define KEEP_PATH "!$&'()*+,;=:@/"
#define KEEP_QUERY "!$'()*,;:@/?"

struct param {
    struct tc_buf key, value; /* canonical */
    size_t place;             /* in the name: parameters with one key keep their order */
};

/* Appends the canonical spelling of `s`. Returns false if `s` has an invalid escape. */
static bool uri_normalize(struct tc_buf *out, struct tc_slice s, const char *keep)
{
    struct tc_buf decoded = {0};
    bool ok = tc_uri_decode(&decoded, s) == 0;
    if (ok)
        tc_uri_encode(out, tc_buf_slice(&decoded), keep);
    tc_buf_fini(&decoded);
    return ok;
}

static int compare_params(const void *a, const void *b)
{
    const struct param *x = a, *y = b;
    int order = tc_slice_cmp(tc_buf_slice(&x->key), tc_buf_slice(&y->key));
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Appends '?' and the canonical query, or nothing if it has no parameter. Returns false, and has then appended nothing,
 * if a key or value has an invalid escape. */
static bool append_query(struct tc_buf *out, struct tc_slice query)
{
    TC_VEC(struct param) params = {0};
    struct tc_slice part;
    bool more = query.len != 0, ok = true;
    while (ok && tc_slice_split(&query, &more, '&', &part)) {
        struct tc_slice key, value = part;
        bool has_value = true;
        tc_slice_split(&value, &has_value, '=', &key);
        struct param *p = tc_vec_push(&params);
        p->place = params.len;
        ok = uri_normalize(&p->key, key, KEEP_QUERY) && (!has_value || uri_normalize(&p->value, value, KEEP_QUERY));
    }
    if (params.len)
        qsort(params.data, params.len, sizeof(*params.data), compare_params);
    for (size_t i = 0, kept = 0; i < params.len; i++) {
        struct param *p = &params.data[i];
        /* A key with several values is undefined in A47, which suggests the last value. */
        if (ok && (i + 1 == params.len || tc_slice_cmp(tc_buf_slice(&p->key), tc_buf_slice(&p[1].key)) != 0)) {
            tc_buf_append_char(out, kept++ ? '&' : '?');
            tc_buf_append_slice(out, tc_buf_slice(&p->key));
            tc_buf_append_char(out, '=');
            tc_buf_append_slice(out, tc_buf_slice(&p->value));
        }
        tc_buf_fini(&p->key);
        tc_buf_fini(&p->value);
    }
    tc_vec_fini(&params);
    return ok;
}

/* Cuts *s before the first `c`. Returns the text behind that `c`; empty if there is no `c`. */
static struct tc_slice slice_cut_before(struct tc_slice *s, char c)
{
    const char *at = s->len ? memchr(s->data, c, s->len) : NULL;
    struct tc_slice rest = {0};
    if (at) {
        rest = tc_slice_of(at + 1, s->len - (size_t)(at + 1 - s->data));
        s->len = (size_t)(at - s->data);
    }
    return rest;
}

/* Appends the authority to `authority`, and the name's canonical text to `text`. `rest` is the name behind the scheme.
 * Returns NULL, or the reason why the name is invalid, a literal. */
static const char *parse_federated(const struct tc_xds_resource_type *type, struct tc_slice rest,
                                   struct tc_buf *authority, struct tc_buf *text)
{
    static const char type_prefix[] = "type.googleapis.com/";
    const char *full = type->type_url;
    if (strncmp(full, type_prefix, sizeof(type_prefix) - 1) == 0)
        full += sizeof(type_prefix) - 1;

    slice_cut_before(&rest, '#'); /* the fragment has directives (xRFC TP1), and is not a part of the name */
    struct tc_slice query = slice_cut_before(&rest, '?'), host = {0};
    if (tc_slice_starts(rest, tc_slice_str("//"))) {
        rest = tc_slice_of(rest.data + 2, rest.len - 2);
        host = rest;
        slice_cut_before(&host, '/');
        rest = tc_slice_of(rest.data + host.len, rest.len - host.len);
    }
    if (rest.len && rest.data[0] == '/')
        rest = tc_slice_of(rest.data + 1, rest.len - 1);
    struct tc_slice first = rest, id = slice_cut_before(&first, '/');
    if (!tc_slice_eq_str(first, full))
        return "its path does not begin with the resource type";
    if (tc_uri_decode(authority, host) != 0)
        return "its authority has an invalid escape";
    tc_buf_append_str(text, SCHEME "//");
    tc_uri_encode(text, tc_buf_slice(authority), "!$&'()*+,;=:@[]");
    tc_buf_printf(text, "/%s/", full);
    if (!uri_normalize(text, id, KEEP_PATH))
        return "its path has an invalid escape";
    if (!append_query(text, query))
        return "its query has an invalid escape";
    return NULL;
}

/* Stores the reason why the name is refused. Returns false. */
static bool refuse_name(struct tc_slice text, const char *fault, char **why)
{
    struct tc_rstr *name = tc_rstr_new(text.data, text.len);
    *why = tc_asprintf("resource name \"" TC_SHOWN "\": %s", TC_SHOW(name->data), fault);
    tc_rstr_unref(name);
    return false;
}

bool tc_xds_name_parse(const struct tc_xds_resource_type *type, struct tc_slice text, struct tc_xds_name *out,
                       char **why)
{
    if (tc_slice_eq_str(text, "*"))
        return refuse_name(text, "is the wildcard", why);
    if (!tc_slice_starts(text, tc_slice_str(SCHEME))) {
        *out = (struct tc_xds_name){.text = tc_rstr_new(text.data, text.len)};
        return true;
    }
    struct tc_buf authority = {0}, canonical = {0};
    struct tc_slice rest = tc_slice_of(text.data + strlen(SCHEME), text.len - strlen(SCHEME));
    const char *fault = parse_federated(type, rest, &authority, &canonical);
    if (!fault)
        *out = (struct tc_xds_name){
            .federated = true,
            .authority = tc_rstr_new(authority.data, authority.len),
            .text = tc_rstr_new(canonical.data, canonical.len),
        };
    tc_buf_fini(&authority);
    tc_buf_fini(&canonical);
    return fault ? refuse_name(text, fault, why) : true;
}

void tc_xds_name_fini(struct tc_xds_name *n)
{
    tc_rstr_unref(n->authority);
    tc_rstr_unref(n->text);
    *n = (struct tc_xds_name){0};
}
