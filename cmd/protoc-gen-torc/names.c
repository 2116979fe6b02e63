/* Names in C.
 *
 * protoc-gen-c writes the types, functions and constants of messages, so the names here must follow its rules:
 *
 *   all         The parts of a full name are joined by "__".
 *   lower case  A '_' comes before a capital letter that is neither the first character nor behind another capital
 *               letter: "SayHTTPHello" becomes "say_httphello".
 *   camel case  The first letter and the letter behind a '_' become capitals, and the '_' is dropped: "say_hello"
 *               becomes "SayHello".
 *
 * The member of a field follows another rule: it is in lower case without any new '_' ("barBaz" becomes "barbaz"), and
 * protobuf-c appends '_' if that is a word of `keywords`. `taken_members` are further words that cannot be members.
 *
 * Functions that make a name append it to the caller's buffer. The only state is in the sets of names (pgt_name_take),
 * which find two things of one name. The caller owns a set and empties it before it frees the arena of the set's
 * names. */
#include "names.h"

#include <stdlib.h>

#include "base/table.h"

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char to_lower(char c)
{
    return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

static char to_upper(char c)
{
    return is_lower(c) ? (char)(c - 'a' + 'A') : c;
}

bool pgt_is_identifier(struct tc_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_upper(s.data[i]) && !is_lower(s.data[i]) && s.data[i] != '_' && (i == 0 || !is_digit(s.data[i])))
            return false;
    return s.len > 0;
}

bool pgt_is_full_name(struct tc_slice s)
{
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&s, &more, '.', &part))
        if (!pgt_is_identifier(part))
            return false;
    return true;
}

bool pgt_is_file_name(struct tc_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.data[i] < ' ' || s.data[i] == 0x7f || s.data[i] == '"' || s.data[i] == '\\')
            return false;
    return s.len > 0 && tc_slice_find(s, tc_slice_str("*/")) < 0 && tc_slice_find(s, tc_slice_str("/*")) < 0 &&
           tc_slice_find(s, tc_slice_str("?\?")) < 0;
}

static void lower_part(struct tc_buf *out, struct tc_slice part)
{
    bool was_upper = true;
    for (size_t i = 0; i < part.len; i++) {
        bool upper = is_upper(part.data[i]);
        if (upper && !was_upper)
            tc_buf_append_char(out, '_');
        tc_buf_append_char(out, to_lower(part.data[i]));
        was_upper = upper;
    }
}

static void camel_part(struct tc_buf *out, struct tc_slice part)
{
    bool next_is_upper = true;
    for (size_t i = 0; i < part.len; i++) {
        if (part.data[i] == '_') {
            next_is_upper = true;
            continue;
        }
        tc_buf_append_char(out, next_is_upper ? to_upper(part.data[i]) : part.data[i]);
        next_is_upper = false;
    }
}

static void each_part(struct tc_buf *out, struct tc_slice full_name, void (*append)(struct tc_buf *, struct tc_slice))
{
    bool more = true, first = true;
    struct tc_slice part;
    while (tc_slice_split(&full_name, &more, '.', &part)) {
        if (!part.len)
            continue;
        if (!first)
            tc_buf_append_str(out, "__");
        append(out, part);
        first = false;
    }
}

void pgt_field_lower(struct tc_buf *out, const char *name)
{
    for (; name && *name; name++)
        tc_buf_append_char(out, to_lower(*name));
}

void pgt_lower(struct tc_buf *out, struct tc_slice full_name)
{
    each_part(out, full_name, lower_part);
}

void pgt_camel(struct tc_buf *out, struct tc_slice full_name)
{
    each_part(out, full_name, camel_part);
}

static int words_compare(const void *key, const void *word)
{
    return strcmp(key, *(const char *const *)word);
}

/* Macros of compilers and of C's headers, keywords that protobuf-c 1.4 does not know, and the types of other members.
 * In the order of strcmp, for bsearch. */
static const char *const taken_members[] = {
    "alignas",   "alignof",
    "char16_t",  "char32_t",
    "char8_t",   "co_await",
    "co_return", "co_yield",
    "concept",   "consteval",
    "constexpr", "constinit",
    "decltype",  "errno",
    "export",    "i386",
    "int32_t",   "int64_t",
    "linux",     "noexcept",
    "nullptr",   "protobuf_c_boolean",
    "requires",  "restrict",
    "size_t",    "static_assert",
    "stderr",    "stdin",
    "stdout",    "thread_local",
    "typeof",    "typeof_unqual",
    "uint32_t",  "uint64_t",
    "unix",
};

/* Keywords that protobuf-c 1.4 knows: it appends '_' to a field of that name. In the order of strcmp. */
static const char *const keywords[] = {
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "const_cast",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "not_eq",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};

static bool is_among(const char *name, const char *const *words, size_t n)
{
    return bsearch(name, words, n, sizeof(words[0]), words_compare) != NULL;
}

static bool is_keyword(const char *lower)
{
    return is_among(lower, keywords, TC_ARRAY_LEN(keywords));
}

bool pgt_is_taken_member(const char *lower)
{
    return is_among(lower, taken_members, TC_ARRAY_LEN(taken_members));
}

void pgt_field_member(struct tc_buf *out, const char *name)
{
    size_t at = out->len;
    pgt_field_lower(out, name);
    if (is_keyword(tc_buf_cstr(out) + at))
        tc_buf_append_char(out, '_');
}

void pgt_member(struct tc_buf *out, struct tc_slice name)
{
    size_t at = out->len;
    pgt_lower(out, name);
    const char *member = tc_buf_cstr(out) + at;
    /* "size" is the struct's first member. */
    if (is_keyword(member) || pgt_is_taken_member(member) || strcmp(member, "size") == 0)
        tc_buf_append_char(out, '_');
}

struct pgt_name {
    UT_hash_handle hh; /* by the name */
    const char *owner;
};

const char *pgt_name_take(struct pgt_name **names, struct tc_arena *arena, const char *name, const char *owner)
{
    struct pgt_name *known;
    size_t len = strlen(name);
    HASH_FIND(hh, *names, name, len, known);
    if (known)
        return known->owner;
    known = tc_arena_calloc(arena, 1, sizeof(*known));
    known->owner = owner;
    HASH_ADD_KEYPTR(hh, *names, tc_arena_dup(arena, tc_slice_of(name, len)), len, known);
    return NULL;
}

void pgt_names_clear(struct pgt_name **names)
{
    HASH_CLEAR(hh, *names);
}

void pgt_path(struct tc_buf *out, struct tc_slice path, bool upper)
{
    for (size_t i = 0; i < path.len; i++) {
        char c = path.data[i];
        if (c == '/')
            tc_buf_append_str(out, "__");
        else
            tc_buf_append_char(out, is_lower(c) || is_upper(c) || is_digit(c) ? upper ? to_upper(c) : c : '_');
    }
}

struct tc_slice pgt_stem(const char *path)
{
    struct tc_slice s = tc_slice_str(path);
    static const char *const suffixes[] = {".protodevel", ".proto"};
    for (size_t i = 0; i < TC_ARRAY_LEN(suffixes); i++)
        if (tc_slice_ends(s, tc_slice_str(suffixes[i])))
            return tc_slice_of(s.data, s.len - strlen(suffixes[i]));
    return s;
}
