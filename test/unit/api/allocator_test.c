/* torc_set_allocator: Torc's memory comes from the application's functions and goes back to them; the arguments are
 * checked, and an allocator is set once.
 *
 * The application's functions are take, take_zeroed, resize and give. They put a struct head before each block, and
 * count in atomics, since the client and the server allocate on two threads. A process takes one allocator: the first
 * test sets it, and the second test makes calls with it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

/* The mark of this allocator, in the head of each block. */
#define MARK UINT64_C(0x746f72632d746573)

struct head {
    uint64_t mark, size;
};

static atomic_long live; /* blocks that were not given back */
/* `taken` counts all blocks that were made, `frames` those of the size of an HTTP/2 frame (16385 to 17000 bytes),
 * `windows` those of at least 64 KiB, such as zlib's. */
static atomic_ulong taken, frames, windows;
static atomic_bool foreign; /* a block was given back, or to be resized, that this allocator did not make */

static void *take(size_t size)
{
    struct head *h = malloc(sizeof(*h) + size);
    if (!h)
        return NULL;
    *h = (struct head){MARK, size};
    atomic_fetch_add(&live, 1);
    atomic_fetch_add(&taken, 1);
    if (size > 16384 && size <= 17000)
        atomic_fetch_add(&frames, 1);
    if (size >= 65536)
        atomic_fetch_add(&windows, 1);
    return h + 1;
}

/* Returns the head of a block. NULL: this allocator did not make the block. */
static struct head *head_of(void *ptr)
{
    struct head *h = (struct head *)ptr - 1;
    if (h->mark == MARK)
        return h;
    atomic_store(&foreign, true);
    return NULL;
}

/* Leaks a foreign block, whose size is unknown. */
static void give(void *ptr)
{
    struct head *h = ptr ? head_of(ptr) : NULL;
    if (!h)
        return;
    /* Overwrites the block, as an allocator may. AddressSanitizer reports bytes that a pool of Torc left poisoned. */
    memset(ptr, 0xdd, h->size);
    h->mark = 0;
    atomic_fetch_sub(&live, 1);
    free(h);
}

static void *take_zeroed(size_t n, size_t size)
{
    size_t total;
    void *p = __builtin_mul_overflow(n, size, &total) ? NULL : take(total);
    return p ? memset(p, 0, total) : NULL;
}

static void *resize(void *ptr, size_t size)
{
    struct head *h = ptr ? head_of(ptr) : NULL;
    void *p = ptr && !h ? NULL : take(size);
    if (p && h) {
        memcpy(p, ptr, h->size < size ? h->size : size);
        give(ptr);
    }
    return p;
}

static struct torc_allocator ours(void)
{
    return (struct torc_allocator){
        .size = sizeof(struct torc_allocator), .malloc = take, .calloc = take_zeroed, .realloc = resize, .free = give};
}

/* Must be the first test: Torc has not allocated yet. */
static void it_is_checked_and_set_once(void **state)
{
    (void)state;
    struct torc_allocator a = ours();
    assert_int_equal(torc_set_allocator(NULL), TORC_EINVAL);
    a.calloc = NULL;
    assert_int_equal(torc_set_allocator(&a), TORC_EINVAL);
    a = ours();
    a.size = offsetof(struct torc_allocator, free);
    assert_int_equal(torc_set_allocator(&a), TORC_EINVAL);
    a.size = 0;
    assert_int_equal(torc_set_allocator(&a), TORC_EINVAL);
    a.size = 4097;
    assert_int_equal(torc_set_allocator(&a), TORC_EINVAL);
    struct {
        struct torc_allocator known;
        void *newer;
    } more = {ours(), &more};
    more.known.size = sizeof(more);
    assert_int_equal(torc_set_allocator(&more.known), TORC_EUNSUPPORTED);
    a = ours();
    assert_int_equal(torc_set_allocator(&a), 0);
    assert_int_equal(torc_set_allocator(&a), TORC_ESTATE);
}

/* Asserts that strings and bytes come from the application's allocator, and that torc_free gives them back to it. */
static void handed_out_goes_back(torc_runtime *rt, torc_channel *ch)
{
    char *json = NULL;
    void *bytes = NULL;
    size_t size;
    assert_int_equal(torc_channel_describe(ch, &json), 0);
    assert_int_equal(torc_csds_dump(rt, false, &bytes, &size), 0);
    assert_int_equal(((const struct head *)(const void *)json - 1)->mark, MARK);
    assert_int_equal(((const struct head *)(const void *)bytes - 1)->mark, MARK);
    long before = atomic_load(&live);
    torc_free(json);
    torc_free(bytes);
    torc_free(NULL);
    assert_int_equal(atomic_load(&live), before - 2);
}

/* Makes a server, a runtime and a channel, makes one call, and frees all. Asserts that HTTP/2 sessions, compression and
 * errors use the application's allocator. */
static void round_of_a_call(void)
{
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    unsigned long before = atomic_load(&taken), frames_before = atomic_load(&frames);
    unsigned long windows_before = atomic_load(&windows);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000, .gzip = TORC_ON};
    static const char request[5000];
    torc_result *r = torc_unary(ch, "a/b", request, sizeof(request), &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    assert_true(atomic_load(&taken) - before > 20);
    assert_true(atomic_load(&windows) - windows_before >= 3);
    /* nghttp2's buffer for a whole frame, of the client and of the server. */
    assert_true(atomic_load(&frames) - frames_before >= 2);
    torc_error *error = NULL;
    assert_null(torc_channel_new(rt, "nosuch:x", NULL, &error));
    assert_int_equal(((const struct head *)(const void *)error - 1)->mark, MARK);
    torc_error_clear(&error);
    handed_out_goes_back(rt, ch);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    kit_backends_free(kit);
    assert_false(atomic_load(&foreign));
}

/* The first round may leave a few blocks that live until the process ends. The second round leaves no more. */
static void calls_take_from_it_and_give_back(void **state)
{
    (void)state;
    round_of_a_call();
    long kept = atomic_load(&live);
    assert_in_range(kept, 0, 20);
    round_of_a_call();
    assert_int_equal(atomic_load(&live), kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_checked_and_set_once),
        cmocka_unit_test(calls_take_from_it_and_give_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
