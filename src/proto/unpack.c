/* protobuf-c's unpacking, into an arena with a budget, and maps. tc_unpack_budget returns 32 times the bytes on the
 * wire, but at least 1 MiB and at most 512 MiB: a few bytes on the wire become a struct with pointers. protobuf-c has
 * no type for maps: they are repeated entry messages, of which the last with a key counts. */
#include "proto/unpack.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

enum { BUDGET_FACTOR = 32, BUDGET_FLOOR = 1024 * 1024, BUDGET_CEILING = 512 * 1024 * 1024 };

struct memory {
    struct tc_arena *arena;
    bool exceeded;
};

/* protobuf-c's allocator: memory of an arena, which is not freed piece by piece. */
static void *memory_alloc(void *arg, size_t size)
{
    struct memory *m = arg;
    void *p = tc_arena_alloc(m->arena, size);
    if (!p)
        m->exceeded = true;
    return p;
}

static void memory_free(void *arg TC_UNUSED, void *p TC_UNUSED) {}

size_t tc_unpack_budget(size_t wire_bytes)
{
    if (wire_bytes > BUDGET_CEILING / BUDGET_FACTOR)
        return BUDGET_CEILING;
    return TC_MAX(wire_bytes * BUDGET_FACTOR, (size_t)BUDGET_FLOOR);
}

/* protobuf-c returns NULL both for a malformed message and after a failed allocation; `exceeded` tells which. */
int tc_unpack_scanned(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, struct tc_arena *arena,
                      ProtobufCMessage **out, struct tc_validation_errors *errors)
{
    struct memory memory = {.arena = arena};
    ProtobufCAllocator allocator = {.alloc = memory_alloc, .free = memory_free, .allocator_data = &memory};
    const uint8_t *data = bytes.data ? (const uint8_t *)bytes.data : (const uint8_t *)"";
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.len, data);
    if (memory.exceeded) {
        tc_validation_add(errors, "a message of %zu bytes needs more than %zu bytes of memory%s", bytes.len,
                          arena->budget, arena->used < arena->budget / 2 ? ", or memory ran out" : "");
        return TORC_ELIMIT;
    }
    if (!message) {
        tc_validation_add(errors, "is not a valid %s", type->name);
        return TORC_EPARSE;
    }
    *out = message;
    return 0;
}

/* The message holds no pointer into `clean`: protobuf-c copies strings and bytes. */
int tc_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, const struct tc_scan_options *options,
              struct tc_arena *arena, ProtobufCMessage **out, struct tc_validation_errors *errors)
{
    struct tc_buf clean = {0};
    int rv = tc_scan(type, bytes, options, &clean, &bytes, errors);
    if (rv == 0)
        rv = tc_unpack_scanned(type, bytes, arena, out, errors);
    tc_buf_fini(&clean);
    return rv;
}

/* protoc names the entry message of field `a_b` of message M "M.ABEntry". A repeated field that a proto file declares
 * in this form by hand counts as a map, too. */
bool tc_proto_is_map(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *entry = field->descriptor;
    if (entry->n_fields != 2 || entry->fields[0].id != 1 || entry->fields[1].id != 2 ||
        strcmp(entry->fields[0].name, "key") != 0 || strcmp(entry->fields[1].name, "value") != 0)
        return false;
    size_t prefix = strlen(type->name);
    if (strncmp(entry->name, type->name, prefix) != 0 || entry->name[prefix] != '.')
        return false;
    const char *p = entry->name + prefix + 1;
    bool upper = true;
    for (const char *f = field->name; *f; f++) {
        if (*f == '_') {
            upper = true;
            continue;
        }
        if (*p++ != (upper ? (char)toupper((unsigned char)*f) : *f))
            return false;
        upper = false;
    }
    return strcmp(p, "Entry") == 0;
}

static const char *entry_key(const void *entry)
{
    const ProtobufCMessage *m = entry;
    return *(char *const *)((const char *)entry + m->descriptor->fields[0].offset);
}

void *tc_proto_map_get(void *const *entries, size_t n, const char *key)
{
    while (n--)
        if (strcmp(entry_key(entries[n]), key) == 0)
            return entries[n];
    return NULL;
}

struct ranked {
    const char *key;
    size_t index;
};

/* Orders equal keys as they were sent, so that the last of them is kept. */
static int ranked_by_key_and_index(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

size_t tc_proto_map_dedupe(void **entries, size_t n)
{
    if (n < 2)
        return n;
    struct ranked *order = tc_reallocarray(NULL, n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){entry_key(entries[i]), i};
    qsort(order, n, sizeof(*order), ranked_by_key_and_index);
    for (size_t i = 0; i + 1 < n; i++)
        if (strcmp(order[i].key, order[i + 1].key) == 0)
            entries[order[i].index] = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (entries[i])
            entries[kept++] = entries[i];
    tc_free(order);
    return kept;
}
