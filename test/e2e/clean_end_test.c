/* A program that frees its handles and the default runtime leaves no block of Torc behind: leak checkers such as
 * valgrind report none. Here the program has a server and a channel, both in plaintext. The test counts the blocks of
 * its allocator, which serves Torc and nghttp2, but not libuv (torc/memory.h). */
#include <stdatomic.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "support/cmocka.h"

static atomic_int blocks; /* allocated and not freed; changed on any thread */

static void *count_malloc(size_t size)
{
    atomic_fetch_add(&blocks, 1);
    return malloc(size);
}

static void *count_calloc(size_t n, size_t size)
{
    atomic_fetch_add(&blocks, 1);
    return calloc(n, size);
}

static void *count_realloc(void *p, size_t size)
{
    atomic_fetch_add(&blocks, !p);
    return realloc(p, size);
}

static void count_free(void *p)
{
    atomic_fetch_sub(&blocks, !!p);
    free(p);
}

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

static void test_nothing_is_left(void **state)
{
    (void)state;
    struct torc_handler echo = {TORC_SIZE(torc_handler), .unary = on_echo};
    for (int round = 0; round < 3; round++) {
        torc_error *error = NULL;
        char *bound = NULL;
        torc_server *server = torc_server_new(NULL, &error);
        torc_server_add_method(server, "a.B/Echo", &echo, &error);
        torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
        assert_int_equal(torc_server_start(server, &error), 0);
        torc_channel *channel = torc_channel_new(NULL, bound, NULL, &error);
        torc_result *result = torc_unary(channel, "a.B/Echo", "text", 4, NULL);
        assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
        torc_result_free(result);
        torc_free(bound);
        torc_channel_free(channel); /* does not wait for the end of the channel */
        torc_server_free(server);
        assert_true(atomic_load(&blocks) > 0);
        assert_int_equal(torc_runtime_default_free(), 0);
        assert_int_equal(atomic_load(&blocks), 0);
    }
}

int main(void)
{
    static const struct torc_allocator allocator = {.size = sizeof(allocator),
                                                    .malloc = count_malloc,
                                                    .calloc = count_calloc,
                                                    .realloc = count_realloc,
                                                    .free = count_free};
    if (torc_set_allocator(&allocator) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
