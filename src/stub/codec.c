/* Messages of protobuf-c as bytes, and bytes as messages in an arena (torc/protobuf_c.h). */
#include "stub/codec.h"

#include <torc/protobuf_c.h>

#include "api/arena.h"
#include "base/mem.h"
#include "proto/unpack.h"

/* A field of an application's message has no limits of its own: the message's size on the wire bounds how many values
 * it has and how long a string is, and the arena's budget bounds their memory. The other limits are the defaults. */
static const struct tc_scan_options limits = {.max_repeated = SIZE_MAX, .max_string_bytes = SIZE_MAX};

const ProtobufCMessage *tc_codec_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes,
                                        struct tc_arena *arena, torc_error **error)
{
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *message = NULL;
    size_t whole = arena->budget, wanted = tc_unpack_budget(bytes.len);
    arena->budget = wanted > SIZE_MAX - arena->used ? SIZE_MAX : arena->used + wanted;
    if (whole && whole < arena->budget)
        arena->budget = whole;
    int rv = tc_unpack(type, bytes, &limits, arena, &message, &errors);
    arena->budget = whole;
    if (rv != 0)
        tc_error_set(error, (enum torc_code)rv, TORC_LAYER_CODEC, "%s: %s", type->name, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    return message;
}

const ProtobufCMessage *torc_protobuf_c_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                                               torc_arena *arena, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (!type || !arena || (!bytes && n)) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_CODEC,
                     "unpack: the type, the bytes and the arena must not be NULL");
        return NULL;
    }
    return tc_codec_unpack(type, tc_slice_of(bytes, n), &arena->arena, error);
}

/* Checks a message that the application wants to pack; it may be NULL. Its type must be `wanted`, or have the name of
 * `wanted`. `wanted` is NULL only for a message without a type, which is refused. Returns 0, or a code with a reason in
 * *why, which the caller frees. */
static int check(const ProtobufCMessage *message, const ProtobufCMessageDescriptor *wanted, char **why)
{
    const ProtobufCMessageDescriptor *type = message ? message->descriptor : NULL;
    if (!type || (type != wanted && strcmp(type->name, wanted->name) != 0)) {
        *why = tc_asprintf("is not an initialised %s", wanted ? wanted->name : "message");
        return TORC_EINVAL;
    }
    struct tc_validation_errors errors = {0};
    int rc = tc_codec_check(message, &errors);
    if (rc != 0)
        *why = tc_asprintf("cannot be packed: %s: %s", type->name, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    return rc;
}

const void *torc_protobuf_c_pack(const ProtobufCMessage *message, torc_arena *arena, size_t *n, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (!message || !arena || !n) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_CODEC, "pack: the message, the arena and n must not be NULL");
        return NULL;
    }
    char *why = NULL;
    int rc = check(message, message->descriptor, &why);
    if (rc != 0) {
        tc_error_set(error, (enum torc_code)rc, TORC_LAYER_CODEC, "pack: the message %s", why);
        tc_free(why);
        return NULL;
    }
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = tc_arena_alloc(&arena->arena, size);
    if (!bytes) {
        tc_error_set(error, TORC_ELIMIT, TORC_LAYER_CODEC, "%s: %zu bytes, more than the arena may give",
                     message->descriptor->name, size);
        return NULL;
    }
    *n = protobuf_c_message_pack(message, bytes);
    return bytes;
}

int tc_packed_init(struct tc_packed *p, const ProtobufCMessageDescriptor *type, const ProtobufCMessage *message,
                   char **why)
{
    int rc = check(message, type, why);
    if (rc != 0)
        return rc;
    size_t n = protobuf_c_message_get_packed_size(message);
    p->large = n > sizeof(p->small) ? tc_try_realloc(NULL, n) : NULL;
    if (n > sizeof(p->small) && !p->large) {
        *why = tc_asprintf("needs %zu bytes of memory, which are not to be had", n);
        return TORC_ELIMIT;
    }
    uint8_t *to = p->large ? p->large : p->small;
    p->bytes = tc_slice_of(to, protobuf_c_message_pack(message, to));
    return 0;
}

void tc_packed_fini(struct tc_packed *p)
{
    tc_free(p->large);
}
