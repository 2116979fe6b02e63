/* Instructions of a program in user space, counted by valgrind's callgrind, by whose they are. */
#ifndef TORC_BENCH_CALLGRIND_H
#define TORC_BENCH_CALLGRIND_H

#include <stdbool.h>
#include <stddef.h>

enum callgrind_owner {
    CALLGRIND_TORC,    /* libtorc.so */
    CALLGRIND_NGHTTP2, /* libnghttp2 */
    CALLGRIND_LIBC,
    CALLGRIND_OTHER, /* the program itself, the loader, other libraries */
    CALLGRIND_OWNERS
};

struct callgrind {
    double instructions[CALLGRIND_OWNERS];
    double first; /* number that the program printed on standard output */
};

/* Whether valgrind is there; says that what it counts is skipped otherwise. */
bool callgrind_there(void);
/* Runs the command, of which what it runs by way of a shell is not counted. False with a message on stderr. */
bool callgrind_run(const char *command, struct callgrind *out);
double callgrind_all(const struct callgrind *c);

#endif
