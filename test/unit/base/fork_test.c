/* fork while another thread makes the process's first JSON object: the child can parse JSON.
 *
 * Without a seed jansson would read /dev/urandom for it with the first object, the fork would come in the middle, and
 * the child would wait for the seed for ever. base/json.c gives jansson a seed when it is loaded, so the thread of the
 * test is not held up. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "support/cmocka.h"

static atomic_bool holds_up;
static sem_t there, go_on;

/* Replaces libc's open, also for jansson. Holds up a thread that opens /dev/urandom while `holds_up` is set. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
    va_end(ap);
    if (atomic_load(&holds_up) && strcmp(path, "/dev/urandom") == 0) {
        sem_post(&there);
        sem_wait(&go_on);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static bool parses(void)
{
    json_t *v = tc_json_parse(tc_slice_str("{\"a\": {}}"), NULL);
    bool ok = v != NULL;
    json_decref(v);
    return ok;
}

static void *first_object(void *arg)
{
    *(bool *)arg = parses();
    sem_post(&there);
    return NULL;
}

/* Must be the first test: if the process had made a JSON object before, the test would not find a missing seed. */
static void a_child_parses_while_the_parent_makes_its_first_object(void **state)
{
    (void)state;
    pthread_t thread;
    bool ok = false;
    int status;
    sem_init(&there, 0, 0);
    sem_init(&go_on, 0, 0);
    atomic_store(&holds_up, true);
    assert_int_equal(pthread_create(&thread, NULL, first_object, &ok), 0);
    sem_wait(&there);
    pid_t child = fork();
    if (child == 0) {
        atomic_store(&holds_up, false);
        setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = 2, .rlim_max = 2}); /* ends a child in a busy loop */
        _exit(!parses());
    }
    atomic_store(&holds_up, false);
    sem_post(&go_on);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ok);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_parses_while_the_parent_makes_its_first_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
