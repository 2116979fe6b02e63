/* Walks the names of a certificate until one passes. All comparisons with matchers share one budget of steps, so that a
 * peer's certificate has a bounded cost. Once the budget is used up no name matches, and the certificate is refused as
 * if it had none of the names. */
#include "xds/lb/san_matcher.h"

#include "base/buf.h"

enum {
    SHOWN_NAMES = 4,   /* names of a certificate in a text, at most */
    SHOWN_BYTES = 100, /* bytes of each of these names, at most */
    NAME_STEPS = 32,   /* steps of a comparison, plus one for each byte of the name, plus those of a regex */
};

bool tc_san_matches(const struct tc_string_matcher *m, enum tc_san_kind kind, struct tc_slice name, uint64_t *steps)
{
    if (name.len == 0 || memchr(name.data, '\0', name.len))
        return false;
    /* A29: an exact matcher takes each DNS name that covers its text, so wildcards of the certificate count. */
    if (kind == TC_SAN_DNS && m->kind == TC_MATCH_EXACT)
        return tc_san_covers(name, m->text);
    return tc_string_matcher_match(m, name, steps);
}

struct san_search {
    const struct tc_san_check *check;
    struct tc_slice sni; /* empty: the matchers decide */
    struct tc_buf seen;  /* names so far, for the text */
    size_t n_seen;
    uint64_t steps; /* the rest of the budget */
};

/* Adds a name to the text of a failure. A certificate may hold any bytes: bytes other than visible ASCII become '?'. */
static void search_show(struct san_search *s, struct tc_slice name)
{
    if (s->n_seen++ >= SHOWN_NAMES)
        return;
    tc_buf_append_str(&s->seen, s->seen.len ? ", \"" : "\"");
    for (size_t i = 0; i < TC_MIN(name.len, (size_t)SHOWN_BYTES); i++)
        tc_buf_append_char(&s->seen, name.data[i] > 0x20 && name.data[i] < 0x7f ? name.data[i] : '?');
    tc_buf_append_char(&s->seen, '"');
}

static bool search_on_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    struct san_search *s = arg;
    search_show(s, name);
    if (s->sni.len)
        return kind == TC_SAN_DNS && tc_san_covers(name, s->sni);
    for (size_t i = 0; i < s->check->n && tc_regex_take_steps(&s->steps, NAME_STEPS + name.len); i++)
        if (tc_san_matches(&s->check->matchers[i], kind, name, &s->steps))
            return true;
    return false;
}

bool tc_san_check(const struct tc_san_check *c, struct x509_st *leaf, struct tc_slice sni, struct tc_buf *why)
{
    struct san_search s = {.check = c, .sni = c->by_sni ? sni : tc_slice_of(NULL, 0), .steps = TC_REGEX_MATCH_STEPS};
    size_t n = 0;
    if (c->n == 0 && s.sni.len == 0)
        return true;
    bool ok = tc_san_find(leaf, search_on_name, &s, &n);
    if (!ok && n == 0)
        tc_buf_append_str(why, "the certificate has no subject alternative names");
    else if (!ok)
        tc_buf_printf(why,
                      "none of the certificate's subject alternative names (%s%s) is one that the cluster asks for",
                      tc_buf_cstr(&s.seen), n > SHOWN_NAMES ? ", ..." : "");
    tc_buf_fini(&s.seen);
    return ok;
}
