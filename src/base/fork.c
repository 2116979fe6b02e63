/* The locks that a fork takes, and the section of foreign libraries that it waits for.
 *
 *   before a fork   takes `registry`, every lock of rank 0, 1, ..., and `foreign` for writing (unless the forking
 *                   thread is in a section): no other thread is inside OpenSSL, libcurl, RE2's compiler, dlopen or
 *                   atexit then
 *   in the parent   releases all
 *   in the child    initialises `foreign` again (it names its writer by the id of a thread of the parent), increments
 *                   the generation, releases all locks
 *
 * `foreign` is a read-write lock whose readers are the threads in a foreign section. Sections nest: `foreign_depth`
 * counts those of the thread, and only the outermost takes the lock. An exit closes foreign libraries for good.
 *
 * A thread that was in a section frees OpenSSL's state of the thread when it ends, in another section. */
#include "base/fork.h"

#include <stdatomic.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/wait.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#define TSAN __has_feature(thread_sanitizer)
#else
#define TSAN 0
#endif
#if TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* The locks of each rank, under `registry`. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct tc_link locks[TC_RANKS];
static struct tc_lock of_process[TC_RANKS];

/* Prefers writers, so that a process that is busy with TLS on many threads still forks. musl has no such option. */
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#define FOREIGN_INITIALIZER PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#else
#define FOREIGN_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
#endif
static pthread_rwlock_t foreign = FOREIGN_INITIALIZER;
static atomic_bool foreign_closed;
static TC_THREAD_LOCAL unsigned foreign_depth;

/* The function of tc_foreign_set_thread_cleanup. */
static _Atomic(void (*)(void)) cleanup;
static TC_THREAD_LOCAL bool has_cleanup;
static pthread_key_t cleanup_key;
static bool has_cleanup_key;

/* How many locks and outermost sections the thread holds, and its cancellation state before the first. */
static TC_THREAD_LOCAL unsigned holds;
static TC_THREAD_LOCAL int cancel_before;

atomic_uint tc_fork_generation_now;

/* hold_begin is called before each lock or outermost section is taken, and hold_end after each is released, but not by
 * the handlers of a fork. The first hold disables the thread's cancellation; the end of the last restores it. */
static void hold_begin(void)
{
    if (holds++ == 0)
        cancel_before = tc_cancel_disable();
}

static void hold_end(void)
{
    if (--holds == 0)
        tc_cancel_restore(&cancel_before);
}

static void locks_take(void)
{
    pthread_mutex_lock(&registry);
    for (int rank = 0; rank < TC_RANKS; rank++) {
        TC_LIST_FOREACH(it, &locks[rank])
        pthread_mutex_lock(&TC_CONTAINER_OF(it, struct tc_lock, link)->mutex);
    }
    /* A callback of the application may run below a foreign library and fork. Such a fork would wait for its own
     * section too, so it waits for none. */
    if (foreign_depth == 0)
        pthread_rwlock_wrlock(&foreign);
}

static void locks_give(void)
{
    for (int rank = TC_RANKS; rank-- > 0;) {
        TC_LIST_FOREACH(it, &locks[rank])
        pthread_mutex_unlock(&TC_CONTAINER_OF(it, struct tc_lock, link)->mutex);
    }
    pthread_mutex_unlock(&registry);
}

static void fork_in_parent(void)
{
    if (foreign_depth == 0)
        pthread_rwlock_unlock(&foreign);
    locks_give();
}

/* Tells ThreadSanitizer that this thread no longer holds `foreign`. ThreadSanitizer does not see that the assignment in
 * fork_in_child makes a new lock. */
static void foreign_was_given_back(void)
{
#if TSAN
    unsigned how = foreign_depth > 0 ? __tsan_mutex_read_lock : 0;
    __tsan_mutex_pre_unlock(&foreign, how);
    __tsan_mutex_post_unlock(&foreign, how);
#endif
}

static void fork_in_child(void)
{
    foreign_was_given_back();
    foreign = (pthread_rwlock_t)FOREIGN_INITIALIZER;
    if (foreign_depth > 0)
        pthread_rwlock_rdlock(&foreign);
    atomic_fetch_add(&tc_fork_generation_now, 1);
    locks_give();
}

static void cleanup_run(void *arg);

/* Runs when the library is loaded, before any thread can use it: a fork meets all handlers or none. A thread's keys are
 * cleaned up in the order in which they were made. OpenSSL makes its key when it is initialised, so Torc's cleanup runs
 * first, unless the application has initialised OpenSSL before Torc was loaded. OpenSSL's own cleanup would take
 * OpenSSL's locks outside of a foreign section. */
__attribute__((constructor)) static void fork_init(void)
{
    has_cleanup_key = pthread_key_create(&cleanup_key, cleanup_run) == 0;
    for (int rank = 0; rank < TC_RANKS; rank++) {
        tc_list_init(&locks[rank]);
        pthread_mutex_init(&of_process[rank].mutex, NULL);
        tc_list_init(&of_process[rank].link);
        tc_list_append(&locks[rank], &of_process[rank].link);
    }
    pthread_atfork(locks_take, fork_in_parent, fork_in_child);
}

void tc_lock_init(struct tc_lock *l, enum tc_lock_rank rank)
{
    pthread_mutex_init(&l->mutex, NULL);
    tc_list_init(&l->link);
    pthread_mutex_lock(&registry);
    tc_list_append(&locks[rank], &l->link);
    pthread_mutex_unlock(&registry);
}

void tc_lock_fini(struct tc_lock *l)
{
    pthread_mutex_lock(&registry);
    tc_list_remove(&l->link);
    pthread_mutex_unlock(&registry);
    pthread_mutex_destroy(&l->mutex);
}

void tc_lock_take(struct tc_lock *l)
{
    hold_begin();
    pthread_mutex_lock(&l->mutex);
}

void tc_lock_give(struct tc_lock *l)
{
    pthread_mutex_unlock(&l->mutex);
    hold_end();
}

struct tc_lock *tc_lock_of_process(enum tc_lock_rank rank)
{
    return &of_process[rank];
}

/* --- foreign libraries --- */

static void cleanup_arm(void)
{
    if (has_cleanup || !has_cleanup_key)
        return;
    has_cleanup = true;
    pthread_setspecific(cleanup_key, &cleanup_key);
}

bool tc_foreign_enter(void)
{
    if (foreign_depth == 0) {
        hold_begin();
        pthread_rwlock_rdlock(&foreign);
        if (atomic_load_explicit(&foreign_closed, memory_order_relaxed)) {
            pthread_rwlock_unlock(&foreign);
            hold_end();
            return false;
        }
        cleanup_arm();
    }
    foreign_depth++;
    return true;
}

void tc_foreign_leave(void)
{
    if (--foreign_depth > 0)
        return;
    pthread_rwlock_unlock(&foreign);
    hold_end();
}

bool tc_foreign_thread_ends(void)
{
    void (*fn)(void) = atomic_load(&cleanup);
    bool may_end = !fn || tc_foreign_enter();
    if (fn && may_end) {
        fn();
        if (has_cleanup_key)
            pthread_setspecific(cleanup_key, NULL);
        tc_foreign_leave();
    }
    has_cleanup = false; /* a later destructor of the application may enter again */
    return may_end;
}

void tc_foreign_set_thread_cleanup(void (*fn)(void))
{
    atomic_store(&cleanup, fn);
}

/* The destructor of cleanup_key. A thread of base/thread calls tc_foreign_thread_ends itself, which clears the key. */
static void cleanup_run(void *arg TC_UNUSED)
{
    tc_foreign_thread_ends();
}

void tc_foreign_close(uint64_t until_ns)
{
    struct timespec until = tc_wait_until(until_ns);
    atomic_store(&foreign_closed, true);
    if (foreign_depth == 0 && tc_wait_write_lock(&foreign, &until) == 0)
        pthread_rwlock_unlock(&foreign);
}
