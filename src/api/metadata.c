/* torc_metadata: the fields that an application sends, and the fields that Torc shows to it.
 *
 * Metadata that the application makes has a block for each field. Metadata that Torc shows, of a request or of a
 * response, is a flat copy: the object, its fields, then the texts, in the memory of another owner. A result's headers
 * and trailers are in the result's block; all other copies are in an arena of the call. */
#include "api/metadata.h"

#include "base/mem.h"
#include "base/parse.h"

/* The value is most likely a token: it is overwritten before it is freed. */
#define SECRET_NAME "authorization"

torc_metadata *torc_metadata_new(void)
{
    return TC_NEW(torc_metadata);
}

void torc_metadata_free(torc_metadata *m)
{
    if (!m || m->flat)
        return;
    for (size_t i = 0; i < m->len; i++) {
        const struct tc_metadata_field *f = &m->fields[i];
        if (f->name_len == strlen(SECRET_NAME) && memcmp(f->name, SECRET_NAME, f->name_len) == 0)
            explicit_bzero(f->name, f->name_len + 1 + f->value_len);
        tc_free(f->name);
    }
    tc_free(m->fields);
    tc_free(m);
}

#define PUSHBACK_NAME "grpc-retry-pushback-ms"

/* Returns true for pseudo-headers, for headers with a meaning in HTTP or gRPC, and for "grpc-" names except the two
 * that a server's trailers may have. */
static bool name_is_reserved(struct tc_slice name)
{
    static const char *const reserved[] = {
        "te",         "content-type", "user-agent",        "connection",       "host",
        "keep-alive", "upgrade",      "transfer-encoding", "proxy-connection", "content-length",
    };
    if (name.len && name.data[0] == ':')
        return true;
    if (tc_slice_starts(name, tc_slice_of("grpc-", 5)))
        return !tc_slice_eq_str(name, "grpc-status-details-bin") && !tc_slice_eq_str(name, PUSHBACK_NAME);
    for (size_t i = 0; i < TC_ARRAY_LEN(reserved); i++)
        if (tc_slice_eq_str(name, reserved[i]))
            return true;
    return false;
}

/* A "-bin" name may have any value, grpc-retry-pushback-ms a decimal integer from -2147483648 to 2147483647, another
 * name what tc_header_value_valid accepts. */
static bool value_is_allowed(struct tc_slice name, struct tc_slice value)
{
    uint64_t ms;
    if (tc_header_is_binary(name))
        return true;
    if (!tc_slice_eq_str(name, PUSHBACK_NAME))
        return tc_header_value_valid(value);
    bool negative = value.len && value.data[0] == '-';
    if (negative)
        value = tc_slice_of(value.data + 1, value.len - 1);
    return tc_parse_u64(value, (uint64_t)INT32_MAX + negative, &ms) == 0;
}

int torc_metadata_add(torc_metadata *m, const char *name, const void *value, size_t value_len)
{
    if (!m || !name || (!value && value_len))
        return TORC_EINVAL;
    size_t name_len = strlen(name);
    if (m->flat || value_len > SIZE_MAX - name_len - 2)
        return TORC_EINVAL;
    /* Name and value in one block, each with a NUL. */
    char *block = tc_malloc(name_len + value_len + 2);
    for (size_t i = 0; i < name_len; i++)
        block[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    block[name_len] = '\0';
    char *copy = block + name_len + 1;
    if (value_len)
        memcpy(copy, value, value_len);
    copy[value_len] = '\0';
    struct tc_slice n = tc_slice_of(block, name_len);
    if (!tc_header_name_valid(n) || name_is_reserved(n) || !value_is_allowed(n, tc_slice_of(copy, value_len))) {
        tc_free(block);
        return TORC_EINVAL;
    }
    if (m->len == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 4;
        m->fields = tc_reallocarray(m->fields, m->cap, sizeof(*m->fields));
    }
    m->fields[m->len++] = (struct tc_metadata_field){block, copy, name_len, value_len};
    return 0;
}

int torc_metadata_add_string(torc_metadata *m, const char *name, const char *value)
{
    return torc_metadata_add(m, name, value, value ? strlen(value) : 1);
}

size_t torc_metadata_count(const torc_metadata *m)
{
    return m ? m->len : 0;
}

int torc_metadata_at(const torc_metadata *m, size_t i, const char **name, const void **value, size_t *value_len)
{
    if (!m || i >= m->len)
        return TORC_ENOTFOUND;
    if (name)
        *name = m->fields[i].name;
    if (value)
        *value = m->fields[i].value;
    if (value_len)
        *value_len = m->fields[i].value_len;
    return 0;
}

const char *torc_metadata_find(const torc_metadata *m, const char *name, size_t *value_len)
{
    for (size_t i = 0; m && name && i < m->len; i++) {
        if (strcmp(m->fields[i].name, name) != 0)
            continue;
        if (value_len)
            *value_len = m->fields[i].value_len;
        return m->fields[i].value;
    }
    return NULL;
}

/* Returns the size of a flat copy: the object, its fields, and the texts with their NULs. */
static size_t flat_bytes(const struct tc_headers *h)
{
    size_t bytes = sizeof(torc_metadata) + h->len * sizeof(struct tc_metadata_field);
    for (size_t i = 0; i < h->len; i++)
        bytes += h->data[i].name.len + h->data[i].value.len + 2;
    return bytes;
}

/* Copies a text with a NUL to *at, and moves *at behind it. Returns the copy. */
static char *text_put(char **at, struct tc_slice s)
{
    char *out = *at;
    if (s.len)
        memcpy(out, s.data, s.len);
    out[s.len] = '\0';
    *at += s.len + 1;
    return out;
}

/* Makes a flat copy in `part`, which has flat_bytes(h) bytes. */
static torc_metadata *metadata_fill(void *part, const struct tc_headers *h)
{
    torc_metadata *m = part;
    m->fields = (struct tc_metadata_field *)(m + 1);
    m->len = m->cap = h->len;
    m->flat = true;
    char *at = (char *)(m->fields + h->len);
    for (size_t i = 0; i < h->len; i++) {
        struct tc_metadata_field *f = &m->fields[i];
        f->name = text_put(&at, h->data[i].name);
        f->name_len = h->data[i].name.len;
        f->value = text_put(&at, h->data[i].value);
        f->value_len = h->data[i].value.len;
    }
    return m;
}

void *tc_metadata_copy_behind(struct tc_blocks *blocks, size_t front, const struct tc_headers *headers,
                              const struct tc_headers *trailers, const torc_metadata **headers_copy,
                              const torc_metadata **trailers_copy)
{
    static const torc_metadata none = {.flat = true};
    const size_t align = _Alignof(torc_metadata);
    size_t first = headers && headers->len ? (flat_bytes(headers) + align - 1) / align * align : 0;
    size_t second = trailers && trailers->len ? flat_bytes(trailers) : 0;
    char *block = tc_blocks_try_take(blocks, front + first + second);
    if (!block)
        return NULL;
    *headers_copy = headers ? &none : NULL;
    *trailers_copy = trailers ? &none : NULL;
    if (first)
        *headers_copy = metadata_fill(block + front, headers);
    if (second)
        *trailers_copy = metadata_fill(block + front + first, trailers);
    return block;
}

torc_metadata *tc_metadata_in_arena(struct tc_arena *arena, const struct tc_headers *h)
{
    void *block = h ? tc_arena_alloc(arena, flat_bytes(h)) : NULL;
    return block ? metadata_fill(block, h) : NULL;
}

int tc_metadata_to_headers(const torc_metadata *m, struct tc_headers *out)
{
    for (size_t i = 0; m && i < m->len; i++) {
        const struct tc_metadata_field *f = &m->fields[i];
        int rc = tc_headers_add_copy(out, tc_slice_of(f->name, f->name_len), tc_slice_of(f->value, f->value_len));
        if (rc != 0)
            return rc;
    }
    return 0;
}
