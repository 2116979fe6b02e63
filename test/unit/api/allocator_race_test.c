/* torc_set_allocator on several threads at once, and beside a first allocation: at most one of the allocators is taken,
 * and no function of another is called. Each round is a separate process, since a process takes an allocator once. A
 * data race seldom shows in a release build; ThreadSanitizer reports it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"

#define SETTERS 3
#define ROUNDS 100

static atomic_uint ready, seen; /* seen: bit i is set when a function of allocator i was called */
static atomic_int results[SETTERS];

#define ALLOCATOR(i)                                                                                                   \
    static void *malloc_##i(size_t size)                                                                               \
    {                                                                                                                  \
        atomic_fetch_or(&seen, 1u << (i));                                                                             \
        return malloc(size);                                                                                           \
    }                                                                                                                  \
    static void *calloc_##i(size_t n, size_t size)                                                                     \
    {                                                                                                                  \
        atomic_fetch_or(&seen, 1u << (i));                                                                             \
        return calloc(n, size);                                                                                        \
    }                                                                                                                  \
    static void *realloc_##i(void *ptr, size_t size)                                                                   \
    {                                                                                                                  \
        atomic_fetch_or(&seen, 1u << (i));                                                                             \
        return realloc(ptr, size);                                                                                     \
    }                                                                                                                  \
    static void free_##i(void *ptr)                                                                                    \
    {                                                                                                                  \
        atomic_fetch_or(&seen, 1u << (i));                                                                             \
        free(ptr);                                                                                                     \
    }
ALLOCATOR(0)
ALLOCATOR(1)
ALLOCATOR(2)

#define ENTRY(i)                                                                                                       \
    {                                                                                                                  \
        sizeof(struct torc_allocator), malloc_##i, calloc_##i, realloc_##i, free_##i                                   \
    }
static const struct torc_allocator allocators[SETTERS] = {ENTRY(0), ENTRY(1), ENTRY(2)};

/* Returns once n threads have called it. */
static void meet(unsigned n)
{
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < n)
        sched_yield();
}

static unsigned parties; /* the threads of a round */

static void *set(void *arg)
{
    size_t i = (size_t)(uintptr_t)arg;
    meet(parties);
    atomic_store(&results[i], torc_set_allocator(&allocators[i]));
    return NULL;
}

static void use(void)
{
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add(m, "name", "value", 5);
    torc_metadata_free(m);
}

static void *use_at_once(void *arg)
{
    (void)arg;
    meet(parties);
    use();
    return NULL;
}

/* One round, in a child process. Returns 0 if all is well, otherwise the child's exit status: 2 a thread could not be
 * started, 3 a setter failed with another code than TORC_ESTATE, 4 several setters won, or none did although no other
 * thread allocated, 5 the functions of a refused allocator were called, or those of the winner were not. */
static int race(bool beside_a_user)
{
    pthread_t threads[SETTERS + 1];
    unsigned n = 0, won = 0, whose = 0;
    parties = SETTERS + beside_a_user;
    for (; n < SETTERS; n++)
        if (pthread_create(&threads[n], NULL, set, (void *)(uintptr_t)n))
            return 2;
    if (beside_a_user && pthread_create(&threads[n++], NULL, use_at_once, NULL))
        return 2;
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SETTERS; i++) {
        int rc = atomic_load(&results[i]);
        if (rc == 0) {
            won++;
            whose = 1u << i;
        } else if (rc != TORC_ESTATE) {
            return 3;
        }
    }
    if (won > 1 || (won == 0 && !beside_a_user))
        return 4;
    use();
    return atomic_load(&seen) == whose ? 0 : 5;
}

static void rounds(bool beside_a_user)
{
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(race(beside_a_user));
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void one_of_several_setters_wins(void **state)
{
    (void)state;
    rounds(false);
}

static void an_allocation_beside_them_does_no_harm(void **state)
{
    (void)state;
    rounds(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_several_setters_wins),
        cmocka_unit_test(an_allocation_beside_them_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
