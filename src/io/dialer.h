/* Connections that Torc does not open: the application's dialer opens them, or the application hands over a descriptor.
 *
 * A dialer belongs to one channel. Loop thread only, unless a function says otherwise. */
#ifndef TC_IO_DIALER_H
#define TC_IO_DIALER_H

#include <torc/dialer.h>

#include "io/connect.h"

struct tc_dialer;

/* Makes a dialer from a copy of a struct that was checked and has `dial`. Returns it with one reference. Any thread. */
struct tc_dialer *tc_dialer_new(const struct torc_dialer *of);
/* Makes a dialer that hands out this connected descriptor once. Returns it with one reference. Any thread. */
struct tc_dialer *tc_dialer_of_fd(int fd);
/* Called once the channel exists, on the thread that makes it: takes over the descriptor, and owes the application the
 * call of release from then on. A dialer that was not accepted closes no descriptor and calls no release. */
void tc_dialer_accept(struct tc_dialer *d);
struct tc_dialer *tc_dialer_ref(struct tc_dialer *d); /* NULL stays NULL. Any thread. */
/* The last reference closes the descriptor and calls the application's release, if the dialer was accepted and never
 * ended. NULL is allowed. Any thread. */
void tc_dialer_unref(struct tc_dialer *d);
/* Returns a number that no other dialer of the process has. Any thread. */
uint64_t tc_dialer_id(const struct tc_dialer *d);
/* Called once the channel has ended: nothing is dialled from now on. When no dial is open, a task of the loop closes a
 * descriptor that was not delivered, and calls the application's release. NULL is allowed. */
void tc_dialer_end(struct tc_dialer *d, struct tc_loop *loop);

/* Returns why a descriptor cannot carry a connection, or NULL if it can. `scratch` must live as long as the result. Any
 * thread. */
const char *tc_dialer_fd_fault(int fd, char scratch[128]);

/* One connection that the application is to open, or a descriptor that is to be delivered. It lives until fn has
 * returned. A dial that is cancelled after the application was asked lives until the application has answered, and
 * closes the descriptor of a late answer. */
struct torc_dial;

/* Starts to open a connection. fn is called once from the loop, never from inside this call. Never returns NULL. `addr`
 * is borrowed for the call. user_timeout_ms is that of struct tc_connect_opts. `arg` must not be NULL: it is the waiter
 * of a question (tc_question_init). */
struct torc_dial *tc_dialer_start(struct tc_dialer *d, struct tc_loop *loop, const struct tc_addr *addr,
                                  uint64_t user_timeout_ms, tc_connect_fn fn, void *arg);
/* Gives up; fn is not called afterwards. Must not be called once fn has been called, nor from inside it. */
void tc_dialer_cancel(struct torc_dial *dial);

/* The body of torc_dial_done: takes over fd, and closes it if there is an error. Copies the error. Any thread. */
void tc_dial_done(struct torc_dial *dial, int fd, const torc_error *error);
/* Store and return a pointer of the application's. To be called before tc_dial_done, on any thread of the
 * application's. */
void tc_dial_set_data(struct torc_dial *dial, void *data);
void *tc_dial_data(const struct torc_dial *dial);

#endif
