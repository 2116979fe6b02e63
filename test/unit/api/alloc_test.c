/* A steady stream of unary calls allocates nothing on the thread that drives the loop, nor on a thread that makes
 * blocking calls. Memory lent to the application is included.
 *
 * The program is linked so that malloc, calloc and realloc of Torc and of nghttp2 go through the functions of this
 * file, which count by thread. So the backends, which run on a thread of their own, do not count. Each test makes
 * WARM_UP calls, or ten times as many, so that pools and buffers have their sizes. Then it counts the allocations of
 * CALLS further calls: at most SLACK. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/mesh.h"

#define WARM_UP 200
#define CALLS 1000
/* If the machine stalls for a second, the connection gives memory back and allocates again. */
#define SLACK 32

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static _Thread_local unsigned n_allocations;

void *__wrap_malloc(size_t size)
{
    n_allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    n_allocations++;
    return __real_realloc(ptr, size);
}

/* A client whose calls each have a deadline, two fields of metadata, and 100 bytes each way. */
struct client {
    torc_runtime *rt;
    torc_channel *ch;
    torc_metadata *metadata;
    struct torc_call_options options;
    char request[100];
    unsigned begun, done, ok, limit;
};

/* `ch` NULL fails the test. client_fini frees metadata, channel and runtime. */
static void client_on(struct client *c, torc_runtime *rt, torc_channel *ch)
{
    *c = (struct client){.rt = rt, .ch = ch};
    assert_non_null(ch);
    c->metadata = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(c->metadata, "x-user", "somebody"), 0);
    assert_int_equal(torc_metadata_add(c->metadata, "x-trace-bin", "\1\2\3\4\5\6\7\0", 8), 0);
    c->options = (struct torc_call_options){TORC_SIZE(torc_call_options), .metadata = c->metadata, .timeout_ms = 30000};
    memset(c->request, 'r', sizeof(c->request));
}

static void client_init(struct client *c, torc_runtime *rt)
{
    client_on(c, rt, torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL));
}

static void client_fini(struct client *c)
{
    torc_metadata_free(c->metadata);
    torc_channel_free(c->ch);
    assert_int_equal(torc_runtime_free(c->rt), 0);
}

static void block(struct client *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        torc_result *r = torc_unary(c->ch, "test.Echo/Echo", c->request, sizeof(c->request), &c->options);
        c->ok +=
            torc_result_code(r) == TORC_STATUS_OK && torc_message_size(torc_result_response(r)) == sizeof(c->request);
        torc_result_free(r);
    }
}

/* Blocking calls drive the loop themselves. Response and metadata are lent until torc_result_free. */
static void test_blocking_without_thread(void **state)
{
    (void)state;
    struct client c;
    client_init(&c, kit_backends_runtime(TORC_RUNTIME_CALLER));
    block(&c, WARM_UP);
    unsigned before = n_allocations;
    block(&c, CALLS);
    unsigned took = n_allocations - before;
    assert_int_equal(c.ok, WARM_UP + CALLS);
    print_message("blocking: %u allocations for %d calls\n", took, CALLS);
    assert_true(took <= SLACK);
    client_fini(&c);
}

static void on_unary(const torc_result *r, void *arg);

static void begin(struct client *c)
{
    c->begun++;
    assert_int_equal(
        torc_unary_async(c->ch, "test.Echo/Echo", c->request, sizeof(c->request), &c->options, on_unary, c, NULL, NULL),
        0);
}

/* Begins the next call when one has ended. */
static void on_unary(const torc_result *r, void *arg)
{
    struct client *c = arg;
    c->done++;
    c->ok += torc_result_code(r) == TORC_STATUS_OK && torc_message_size(torc_result_response(r)) == sizeof(c->request);
    if (c->begun < c->limit)
        begin(c);
}

/* Makes n calls, `outstanding` at a time, and drives the loop until all have ended. */
static void run_async(struct client *c, unsigned outstanding, unsigned n)
{
    c->limit = c->begun + n;
    for (unsigned i = 0; i < outstanding; i++)
        begin(c);
    while (c->done < c->limit)
        torc_runtime_poll(c->rt, 1000);
}

static void async_at(unsigned outstanding)
{
    struct client c;
    client_init(&c, kit_backends_runtime(TORC_RUNTIME_CALLER));
    run_async(&c, outstanding, 10 * WARM_UP);
    unsigned before = n_allocations;
    run_async(&c, outstanding, CALLS);
    unsigned took = n_allocations - before;
    assert_int_equal(c.ok, 10 * WARM_UP + CALLS);
    print_message("%u outstanding: %u allocations for %d calls\n", outstanding, took, CALLS);
    assert_true(took <= SLACK);
    client_fini(&c);
}

/* The response of an asynchronous call is lent until its callback returns. */
static void test_async_one(void **state)
{
    (void)state;
    async_at(1);
}

static void test_async_many(void **state)
{
    (void)state;
    async_at(64);
}

struct sample {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    unsigned n;
    bool taken;
};

static void take(void *arg)
{
    struct sample *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->n = n_allocations;
    s->taken = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

/* Asks the runtime's thread for its n_allocations, and waits for the answer. */
static unsigned count_of(torc_runtime *rt)
{
    struct sample s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    assert_int_equal(torc_runtime_post(rt, take, &s), 0);
    pthread_mutex_lock(&s.mutex);
    while (!s.taken)
        pthread_cond_wait(&s.cond, &s.mutex);
    pthread_mutex_unlock(&s.mutex);
    return s.n;
}

static void test_blocking_with_thread(void **state)
{
    (void)state;
    struct client c;
    client_init(&c, kit_backends_runtime(TORC_RUNTIME_THREAD));
    block(&c, WARM_UP);
    unsigned loop_before = count_of(c.rt), own_before = n_allocations;
    block(&c, CALLS);
    unsigned own = n_allocations - own_before, loop = count_of(c.rt) - loop_before;
    assert_int_equal(c.ok, WARM_UP + CALLS);
    print_message("with a thread: %u allocations on the loop's, %u on the caller's\n", loop, own);
    assert_true(loop <= SLACK);
    /* SLACK allows this: the caller makes a second call object if the loop still holds that of the call before. */
    assert_true(own <= SLACK);
    client_fini(&c);
}

/* Calls through xDS: routing, the hash and the pick from the ring allocate nothing on the loop's thread. */
static void test_mesh(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(3);
    kit_mesh_put_endpoints(k, "c", "0/a: 0, 1, 2", NULL);
    kit_mesh_put_cluster(k, "c", NULL);
    kit_mesh_put_listener(k, "svc", "c", "[{header: {header_name: x-user}}]");
    struct client c;
    client_on(&c, kit_mesh_runtime(k), kit_mesh_channel(k, "svc", NULL));
    block(&c, WARM_UP);
    unsigned before = count_of(c.rt);
    block(&c, CALLS);
    unsigned took = count_of(c.rt) - before;
    assert_int_equal(c.ok, WARM_UP + CALLS);
    print_message("through a mesh: %u allocations for %d calls\n", took, CALLS);
    assert_true(took <= SLACK);
    torc_metadata_free(c.metadata);
    torc_channel_free(c.ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking_without_thread),
        cmocka_unit_test(test_async_one),
        cmocka_unit_test(test_async_many),
        cmocka_unit_test(test_blocking_with_thread),
        cmocka_unit_test(test_mesh),
    };
    return cmocka_run_group_tests(tests, kit_backends_one_setup, kit_backends_one_teardown);
}
