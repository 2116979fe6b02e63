/* A way onto a loop that may end: messages from any thread, run in order on the loop's thread as long as the box is
 * open, and dropped after. For what several runtimes share: neither has to know when the other ends. */
#ifndef TC_IO_MAILBOX_H
#define TC_IO_MAILBOX_H

#include "io/loop.h"

struct tc_mailbox;

/* A message; embedded in whatever it carries. Exactly one of the two is called, once, and frees it. */
struct tc_mail {
    struct tc_link link;
    void (*run)(struct tc_mail *mail); /* on the loop's thread, never from inside tc_mailbox_send */
    /* The box is closed: by any thread, that of tc_mailbox_send or of tc_mailbox_close. */
    void (*drop)(struct tc_mail *mail);
};

/* One reference, for whoever closes it. */
struct tc_mailbox *tc_mailbox_new(struct tc_loop *loop);
struct tc_mailbox *tc_mailbox_ref(struct tc_mailbox *box);
void tc_mailbox_unref(struct tc_mailbox *box);
/* Any thread. */
void tc_mailbox_send(struct tc_mailbox *box, struct tc_mail *mail);
/* No message runs after it. On the loop's thread, before the loop ends. */
void tc_mailbox_close(struct tc_mailbox *box);

#endif
