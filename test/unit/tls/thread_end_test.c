/* When a thread of the application has used TLS and ends, OpenSSL frees the thread's state, and takes locks of its own
 * for that. Torc has OpenSSL do so inside a foreign section (base/fork.h), which a fork waits for.
 *
 * The pthread_rwlock_* functions below replace libc's, also for OpenSSL, and count the locks. The test's thread only
 * waits while the other thread runs, so the counters need no lock of their own. The thread sanitizer has its own
 * replacements, so the test is skipped under it. */
#include <dlfcn.h>
#include <pthread.h>

#include "base/thread.h"
#include "support/cmocka.h"
#include "support/sanitizer.h"
#include "tls/tls.h"

#if !SANITIZER_THREAD

static TC_THREAD_LOCAL bool ends; /* the thread has run its function */
static TC_THREAD_LOCAL int held;  /* rwlocks that the thread holds; a foreign section is a read lock */
static unsigned taken;            /* write locks of all threads, which are OpenSSL's */
static unsigned inside, outside;  /* write locks of a thread that ends: taken while it held another lock, and while
                                     it held none */

typedef int lock_fn(pthread_rwlock_t *lock);
static lock_fn *rdlock, *wrlock, *unlock; /* libc's, which the replacements call; NULL before the first call */

static void find(void)
{
    *(void **)&rdlock = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    *(void **)&wrlock = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
    *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_rwlock_unlock");
}

__attribute__((visibility("default"))) int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (!rdlock)
        find();
    held++;
    return rdlock(lock);
}

__attribute__((visibility("default"))) int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (!wrlock)
        find();
    taken++;
    inside += ends && held > 0;
    outside += ends && held == 0;
    held++;
    return wrlock(lock);
}

__attribute__((visibility("default"))) int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (!unlock)
        find();
    held--;
    return unlock(lock);
}

static void *use_tls(void *arg)
{
    const struct tc_tls_opts opts = {.verify = TC_TLS_VERIFY_NONE};
    struct tc_tls_context **context = arg;
    *context = tc_tls_context_new(&opts, NULL);
    ends = true;
    return NULL;
}

static void a_thread_ends_inside_a_foreign_section(void **state)
{
    (void)state;
    pthread_t thread;
    struct tc_tls_context *context = NULL;
    assert_int_equal(pthread_create(&thread, NULL, use_tls, &context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(context);
    tc_tls_context_unref(context);
    if (taken == 0)
        skip(); /* this OpenSSL has locks of another kind */
    assert_int_equal(outside, 0);
    assert_true(inside > 0);
}

#else

static void a_thread_ends_inside_a_foreign_section(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_ends_inside_a_foreign_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
