/* A mailbox: messages from any thread to a loop that may end. While the box is open they run in order on the loop's
 * thread; after that they are dropped. For objects that several runtimes share, and for answers of the background
 * thread: a sender need not know when the loop ends. */
#ifndef TC_IO_MAILBOX_H
#define TC_IO_MAILBOX_H

#include "io/loop.h"

struct tc_mailbox;

/* A message, embedded in its content. Either `run` or `drop` is called, once, unless the process forks or exits. Both
 * may free the message. */
struct tc_mail {
    struct tc_link link;
    void (*run)(struct tc_mail *mail); /* on the loop's thread, never from inside tc_mailbox_send */
    /* Called if the box is closed, inside of tc_mailbox_close or of any sender's tc_mailbox_send. Every message that
     * was sent before has run or was dropped by then; only the one that called tc_mailbox_close may still run. No other
     * message of the box is dropped meanwhile. Neither the closer nor a sender may hold a lock that `drop` of any
     * message takes. NULL: nothing to do; a message that is dropped so must stay alive until a later message of the
     * box has run or was dropped, or tc_mailbox_close has returned. */
    void (*drop)(struct tc_mail *mail);
};

/* Makes a mailbox with one reference; never NULL. The owner calls tc_mailbox_close, and then tc_mailbox_unref. Borrows
 * the loop until the box is closed. */
struct tc_mailbox *tc_mailbox_new(struct tc_loop *loop);
/* Take and drop a reference. tc_mailbox_unref ignores NULL. Any thread. */
struct tc_mailbox *tc_mailbox_ref(struct tc_mailbox *box);
void tc_mailbox_unref(struct tc_mailbox *box);
/* Sends a message, which must stay alive until `run` or `drop` is called. Any thread that holds a reference. */
void tc_mailbox_send(struct tc_mailbox *box, struct tc_mail *mail);
/* Drops the messages that have not run; none runs after it. Called once, on the loop's thread, before the loop ends. A
 * message that runs may call it. */
void tc_mailbox_close(struct tc_mailbox *box);

#endif
