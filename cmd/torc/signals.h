/* SIGINT and SIGTERM, for subcommands that run until they are told to stop. */
#ifndef TORC_SIGNALS_H
#define TORC_SIGNALS_H

#include <stdbool.h>

#include "io/loop.h"

/* Catches both signals; each wakes the loop. The loop must live until signals_release is called. One loop at a time. */
void signals_catch(struct tc_loop *loop);
/* Returns true once a caught signal has come, also after signals_release. */
bool signals_stop(void);
/* Lets both signals end the process again. */
void signals_release(void);

#endif
