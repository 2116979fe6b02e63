/* bench/stubs: what messages of generated code add to the cost of a unary RPC of plain bytes. A request of ten fields
 * is checked and packed into an arena; a response of ten fields is scanned and unpacked into an arena, which is freed.
 * The figures are CPU time of one thread. The peer is protobuf-c by itself, without check and scan: it packs into a
 * buffer on the stack and unpacks with malloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/protobuf_c.h>

#include "measure.h"
#include "stubs.pb-c.h"

enum { PAIRS = 15, ROUNDS = 100000 };

static void fill(Bench__Ten *ten)
{
    static uint8_t data[16] = {1, 2, 3};
    bench__ten__init(ten);
    ten->name = (char *)"orders-backend-7";
    ten->zone = (char *)"eu-west-1b";
    ten->text = (char *)"a line of text, as messages have";
    ten->data = (ProtobufCBinaryData){sizeof(data), data};
    ten->small = 300;
    ten->large = 1234567890123;
    ten->mask = 0xffff;
    ten->flag = 1;
    ten->ratio = 0.25;
    ten->kind = BENCH__TEN__KIND__SOME;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static double pack_ns(const Bench__Ten *ten, const void *bytes, size_t n)
{
    torc_arena *arena = torc_arena_new(0);
    uint64_t begin = measure_cpu_ns();
    size_t packed;
    (void)bytes;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!torc_protobuf_c_pack(&ten->base, arena, &packed, NULL) || packed != n)
            fail("pack");
        torc_arena_reset(arena);
    }
    double ns = (double)(measure_cpu_ns() - begin) / ROUNDS;
    torc_arena_free(arena);
    return ns;
}

static double protobuf_c_pack_ns(const Bench__Ten *ten, const void *bytes, size_t n)
{
    uint8_t packed[256];
    uint64_t begin = measure_cpu_ns();
    (void)bytes;
    for (unsigned i = 0; i < ROUNDS; i++)
        if (bench__ten__get_packed_size(ten) > sizeof(packed) || bench__ten__pack(ten, packed) != n)
            fail("pack");
    return (double)(measure_cpu_ns() - begin) / ROUNDS;
}

static double torc_ns(const Bench__Ten *ten, const void *bytes, size_t n)
{
    uint64_t begin = measure_cpu_ns();
    (void)ten;
    for (unsigned i = 0; i < ROUNDS; i++) {
        torc_arena *arena = torc_arena_new(0);
        if (!torc_protobuf_c_unpack(&bench__ten__descriptor, bytes, n, arena, NULL))
            fail("unpack");
        torc_arena_free(arena);
    }
    return (double)(measure_cpu_ns() - begin) / ROUNDS;
}

static double protobuf_c_ns(const Bench__Ten *ten, const void *bytes, size_t n)
{
    uint64_t begin = measure_cpu_ns();
    (void)ten;
    for (unsigned i = 0; i < ROUNDS; i++) {
        Bench__Ten *read = bench__ten__unpack(NULL, n, bytes);
        if (!read)
            fail("unpack");
        bench__ten__free_unpacked(read, NULL);
    }
    return (double)(measure_cpu_ns() - begin) / ROUNDS;
}

int main(void)
{
    Bench__Ten ten;
    uint8_t bytes[256];
    struct measure_row rows[2];
    fill(&ten);
    size_t n = bench__ten__pack(&ten, bytes);
    measure_pin(0);
    measure_init(&rows[0], "ns", "protobuf-c alone", 0, "a request of ten fields, %zu bytes: packed", n);
    measure_init(&rows[1], "ns", "protobuf-c alone", 0, "a response of ten fields, %zu bytes: unpacked", n);
    for (unsigned i = 0; i < PAIRS; i++) {
        measure_add(&rows[0], pack_ns(&ten, bytes, n), protobuf_c_pack_ns(&ten, bytes, n));
        measure_add(&rows[1], torc_ns(&ten, bytes, n), protobuf_c_ns(&ten, bytes, n));
    }
    measure_report("Typed messages", rows, 2);
    return 0;
}
