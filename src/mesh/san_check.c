#include "mesh/san_check.h"

#include "base/buf.h"

/* How many names of a certificate a text shows, and how much of each. */
enum { SHOWN_NAMES = 4, SHOWN_BYTES = 100 };

bool tc_san_matches(const struct tc_string_matcher *m, enum tc_san_kind kind, struct tc_slice name, uint64_t *steps)
{
    if (name.len == 0 || memchr(name.data, '\0', name.len))
        return false;
    /* A29: an exact name is what a DNS name of the certificate covers, wildcards included. */
    if (kind == TC_SAN_DNS && m->kind == TC_MATCH_EXACT)
        return tc_san_covers(name, m->text);
    return tc_string_matcher_match(m, name, steps);
}

struct search {
    const struct tc_san_check *check;
    struct tc_slice sni; /* empty: the matchers */
    struct tc_buf seen;  /* the names so far, for the text */
    size_t n_seen;
    uint64_t steps; /* that the matchers may take yet */
};

static void show(struct search *s, struct tc_slice name)
{
    if (s->n_seen++ >= SHOWN_NAMES)
        return;
    tc_buf_append_str(&s->seen, s->seen.len ? ", \"" : "\"");
    for (size_t i = 0; i < TC_MIN(name.len, (size_t)SHOWN_BYTES); i++)
        tc_buf_append_char(&s->seen, name.data[i] > 0x20 && name.data[i] < 0x7f ? name.data[i] : '?');
    tc_buf_append_char(&s->seen, '"');
}

static bool on_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    struct search *s = arg;
    show(s, name);
    if (s->sni.len)
        return kind == TC_SAN_DNS && tc_san_covers(name, s->sni);
    for (size_t i = 0; i < s->check->n; i++)
        if (tc_san_matches(&s->check->matchers[i], kind, name, &s->steps))
            return true;
    return false;
}

bool tc_san_check(const struct tc_san_check *c, struct x509_st *leaf, struct tc_slice sni, struct tc_buf *why)
{
    struct search s = {.check = c, .sni = c->by_sni ? sni : tc_slice_of(NULL, 0), .steps = TC_REGEX_MATCH_STEPS};
    size_t n = 0;
    if (c->n == 0 && s.sni.len == 0)
        return true;
    bool ok = tc_san_find(leaf, on_name, &s, &n);
    if (!ok && n == 0)
        tc_buf_append_str(why, "the certificate has no subject alternative names");
    else if (!ok)
        tc_buf_printf(why,
                      "none of the certificate's subject alternative names (%s%s) is one that the cluster asks for",
                      tc_buf_cstr(&s.seen), n > SHOWN_NAMES ? ", ..." : "");
    tc_buf_fini(&s.seen);
    return ok;
}
