/* Strings with a count in front. The memory comes from the allocator (mem.h), except for sizes that a peer announces:
 * tc_rstr_room and tc_rstr_resize take a block of blocks.h (`in_block`), which the system may refuse. A NUL follows the
 * bytes in both cases. */
#include "base/rstr.h"

#include "base/buf.h"
#include "base/mem.h"

struct tc_rstr *tc_rstr_new(const void *data, size_t len)
{
    struct tc_rstr *s = tc_malloc(sizeof(*s) + len + 1);
    tc_ref_init(&s->ref);
    s->in_block = s->compressed = false;
    s->len = len;
    if (len)
        memcpy(s->data, data, len);
    s->data[len] = '\0';
    return s;
}

static size_t rstr_bytes(size_t capacity)
{
    return sizeof(struct tc_rstr) + capacity + 1;
}

bool tc_rstr_room_is_reused(size_t capacity)
{
    return tc_blocks_reuses(rstr_bytes(capacity));
}

bool tc_rstr_room_is_kept(struct tc_blocks *blocks, size_t capacity)
{
    return tc_blocks_keeps(blocks, rstr_bytes(capacity));
}

struct tc_rstr *tc_rstr_room(struct tc_blocks *blocks, size_t capacity)
{
    struct tc_rstr *s = tc_blocks_try_take(blocks, rstr_bytes(capacity));
    if (!s)
        return NULL;
    tc_ref_init(&s->ref);
    s->in_block = true;
    s->compressed = false;
    return s;
}

struct tc_rstr *tc_rstr_resize(struct tc_blocks *blocks, struct tc_rstr *s, size_t capacity)
{
    struct tc_rstr *resized = tc_blocks_try_resize(blocks, s, rstr_bytes(capacity));
    if (resized && !s) {
        tc_ref_init(&resized->ref);
        resized->in_block = true;
        resized->compressed = false;
    }
    return resized;
}

struct tc_rstr *tc_rstr_str(const char *s)
{
    return tc_rstr_new(s, strlen(s));
}

struct tc_rstr *tc_rstr_of_buf(struct tc_buf *b)
{
    struct tc_rstr *s = tc_rstr_new(b->data, b->len);
    tc_buf_fini(b);
    return s;
}

struct tc_rstr *tc_rstr_printf(const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return tc_rstr_of_buf(&b);
}

/* The length of the first string goes before it, so that no two pairs have the same bytes. */
struct tc_rstr *tc_rstr_pair(const struct tc_rstr *a, const struct tc_rstr *b)
{
    struct tc_slice first = tc_rstr_slice(a);
    struct tc_buf key = {0};
    tc_buf_append(&key, &first.len, sizeof(first.len));
    tc_buf_append_slice(&key, first);
    tc_buf_append_slice(&key, tc_rstr_slice(b));
    return tc_rstr_of_buf(&key);
}

void tc_rstr_free(struct tc_rstr *s)
{
    if (s->in_block)
        tc_blocks_give(s);
    else
        tc_free(s);
}

void tc_rstr_unref_secret(struct tc_rstr *s)
{
    if (!s || !tc_ref_dec(&s->ref))
        return;
    explicit_bzero(s->data, s->len);
    tc_rstr_free(s);
}
