#include "signals.h"

#include <signal.h>

static volatile sig_atomic_t stop;
static struct tc_loop *volatile waiting;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    if (waiting)
        tc_loop_wake(waiting); /* allowed in signal handlers */
}

static void install(void (*handler)(int))
{
    /* SA_RESTART: a signal must not end a write to standard output with EINTR. The handler wakes the loop itself. */
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

void signals_catch(struct tc_loop *loop)
{
    waiting = loop;
    install(on_signal);
}

bool signals_stop(void)
{
    return stop != 0;
}

void signals_release(void)
{
    install(SIG_DFL);
    waiting = NULL;
}
