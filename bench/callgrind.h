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
    double first; /* the number that the program's standard output begins with */
};

/* Returns true if valgrind is installed. Otherwise prints on standard output that its counts are skipped. */
bool callgrind_there(void);
/* Runs a program under callgrind and fills *out. command: the program and its arguments, as words of the shell.
 * Programs that this program starts are not counted. Returns false with a message on stderr if the program fails, if
 * its output does not begin with a number, or if nothing was counted; the figures in *out mean nothing then. */
bool callgrind_run(const char *command, struct callgrind *out);
/* Returns the instructions of all owners. */
double callgrind_all(const struct callgrind *c);

#endif
