/* Instructions of a program in user space, counted by valgrind's callgrind, split by object file. */
#ifndef TORC_BENCH_CALLGRIND_H
#define TORC_BENCH_CALLGRIND_H

#include <stdbool.h>
#include <stddef.h>

enum callgrind_owner {
    CALLGRIND_TORC, /* Torc's libraries */
    CALLGRIND_NGHTTP2,
    CALLGRIND_LIBC,
    CALLGRIND_OTHER, /* the program itself, the loader, other libraries */
    CALLGRIND_OWNERS
};

struct callgrind {
    double instructions[CALLGRIND_OWNERS];
    double first; /* the number that the program printed on standard output */
};

/* Returns true if valgrind is installed. Otherwise prints on standard output that its counts are skipped. */
bool callgrind_there(void);
/* Runs the command under callgrind and fills *out. Programs that the command starts are not counted. Returns false with
 * a message on stderr if the command fails, if its output does not begin with a number, or if nothing was counted. */
bool callgrind_run(const char *command, struct callgrind *out);
/* Returns the instructions of all owners. */
double callgrind_all(const struct callgrind *c);

#endif
