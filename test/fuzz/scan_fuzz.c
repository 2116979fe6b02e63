/* proto/scan and proto/unpack. Two bytes choose a message type, the rest is the message. */
#include "fuzz.h"
#include "proto/types.h"
#include "proto/unpack.h"

/* Returns the serialised message, which the caller frees. */
static struct tc_buf pack(const ProtobufCMessage *m)
{
    struct tc_buf bytes = {0};
    size_t size = protobuf_c_message_get_packed_size(m);
    bytes.len = protobuf_c_message_pack(m, (uint8_t *)tc_buf_reserve(&bytes, size));
    TC_FUZZ_CHECK(bytes.len == size);
    return bytes;
}

/* Checks that the output of a scan scans to itself without a copy, and unpacks without unknown fields. */
static void check_scanned(const ProtobufCMessageDescriptor *type, struct tc_slice clean)
{
    struct tc_validation_errors errors = {0};
    struct tc_buf again = {0};
    struct tc_slice out = {0};
    TC_FUZZ_CHECK(tc_scan(type, clean, NULL, &again, &out, &errors) == 0);
    TC_FUZZ_CHECK(tc_slice_eq(out, clean) && (out.data == clean.data || clean.len == 0));
    ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, clean.len, (const uint8_t *)clean.data);
    TC_FUZZ_CHECK(!m || m->n_unknown_fields == 0); /* NULL: protobuf-c cannot merge it, see unpack.h */
    if (m)
        protobuf_c_message_free_unpacked(m, NULL);
    tc_buf_fini(&again);
    tc_validation_fini(&errors);
}

/* Packs an unpacked message, unpacks the bytes, and packs again. Checks that both packs give the same bytes. */
static void check_unpacked(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *m)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    struct tc_buf once = pack(m);
    ProtobufCMessage *again = NULL;
    tc_arena_init(&arena, 0, 0);
    TC_FUZZ_CHECK(tc_unpack(type, tc_buf_slice(&once), NULL, &arena, &again, &errors) == 0);
    struct tc_buf twice = pack(again);
    TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&once), tc_buf_slice(&twice)));
    tc_buf_fini(&once);
    tc_buf_fini(&twice);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    size_t types = 0, wanted = (size_t)tc_fuzz_uint(&in, 2);
    while (tc_proto_type_at(types))
        types++;
    const ProtobufCMessageDescriptor *type = tc_proto_type_at(wanted % types);
    struct tc_slice bytes = tc_slice_of(in.data, in.len), clean = {0};
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    struct tc_buf buf = {0};
    ProtobufCMessage *m = NULL;

    tc_arena_init(&arena, 0, tc_unpack_budget(bytes.len));
    int scanned = tc_scan(type, bytes, NULL, &buf, &clean, &errors);
    TC_FUZZ_CHECK((scanned != 0) == tc_validation_any(&errors));
    if (scanned == 0)
        check_scanned(type, clean);
    int unpacked = tc_unpack(type, bytes, NULL, &arena, &m, &errors);
    TC_FUZZ_CHECK(scanned == 0 || unpacked == scanned);
    TC_FUZZ_CHECK(errors.path.len == 0);
    if (unpacked == 0)
        check_unpacked(type, m);
    else
        TC_FUZZ_CHECK(tc_validation_any(&errors));
    tc_buf_fini(&buf);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return 0;
}
