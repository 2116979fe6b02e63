#include "support/parallel.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_one(const struct CMUnitTest *test)
{
    const struct CMUnitTest tests[] = {*test};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int parallel_run(const struct CMUnitTest *tests, size_t n)
{
    int failed = 0, status;
    for (size_t i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            int rc = run_one(&tests[i]);
            fflush(NULL);
            _exit(rc != 0);
        }
        failed += child < 0;
    }
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}
