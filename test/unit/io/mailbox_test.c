/* Messages to a loop: in order, from any thread, dropped when the mailbox is closed. Letters free themselves, and
 * append to `text`: the letter x appends "x" when it runs and "-x" when it is dropped. The first three tests send
 * letters to a manual loop. In two of these tests the drop of a letter starts a thread, which sends another letter,
 * and joins the thread. The last test has a real loop, which the test's thread turns. Other threads send numbered
 * messages there, and may drop them once the mailbox is closed. */
#include "io/mailbox.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "support/cmocka.h"

static struct tc_buf text;
static struct tc_mailbox *closes; /* closed by the letter 'c'; send_late sends to it */

struct letter {
    struct tc_mail mail;
    char c;
};

static void arrives(struct tc_mail *mail)
{
    struct letter *l = TC_CONTAINER_OF(mail, struct letter, mail);
    tc_buf_append_char(&text, l->c);
    if (l->c == 'c')
        tc_mailbox_close(closes);
    tc_free(l);
}

static void dropped(struct tc_mail *mail)
{
    struct letter *l = TC_CONTAINER_OF(mail, struct letter, mail);
    tc_buf_printf(&text, "-%c", l->c);
    tc_free(l);
}

static void send(struct tc_mailbox *box, char c)
{
    struct letter *l = TC_NEW(struct letter);
    l->mail = (struct tc_mail){.run = arrives, .drop = dropped};
    l->c = c;
    tc_mailbox_send(box, &l->mail);
}

static void expect(const char *want)
{
    assert_string_equal(tc_buf_cstr(&text), want);
    tc_buf_clear(&text);
}

static void in_order_and_dropped_when_closed(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    struct tc_mailbox *box = closes = tc_mailbox_new(loop);
    send(box, '1');
    send(box, '2');
    expect(""); /* no letter arrives inside tc_mailbox_send */
    tc_loop_drain(loop);
    expect("12");
    send(box, '3');
    send(box, 'c');
    send(box, '4');
    tc_loop_drain(loop);
    expect("3c-4");
    send(box, '5');
    expect("-5");
    tc_mailbox_unref(box);
    /* The box closes with a message on its way. */
    box = tc_mailbox_new(loop);
    send(box, '6');
    tc_mailbox_close(box);
    tc_mailbox_unref(box);
    expect("-6");
    tc_loop_drain(loop);
    expect("");
    tc_loop_free(loop);
    tc_buf_fini(&text);
}

static void *send_late(void *arg)
{
    send(arg, 'l');
    return NULL;
}

/* While the message is dropped, another thread sends to the box. */
static void dropped_meanwhile(struct tc_mail *mail)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_late, closes), 0);
    pthread_join(thread, NULL);
    dropped(mail);
}

/* A message that is sent while the box closes is dropped after the messages that waited. */
static void dropped_in_order(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    closes = tc_mailbox_new(loop);
    struct letter *l = TC_NEW(struct letter);
    *l = (struct letter){.mail = {.run = arrives, .drop = dropped_meanwhile}, .c = '1'};
    tc_mailbox_send(closes, &l->mail);
    send(closes, '2');
    tc_mailbox_close(closes);
    expect("-1-2-l");
    send(closes, '3');
    expect("-3");
    tc_loop_drain(loop);
    tc_mailbox_unref(closes);
    tc_loop_free(loop);
    tc_buf_fini(&text);
}

static struct tc_loop *turning;

/* While the message is dropped, another thread sends to the box, and the loop runs the box's task, posted before. */
static void dropped_under_the_task(struct tc_mail *mail)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_late, closes), 0);
    pthread_join(thread, NULL);
    tc_loop_drain(turning);
    dropped(mail);
}

/* The task that was posted before the box was closed runs nothing, although a message waits for the thread that drops
 * messages. */
static void the_task_comes_late(void **state)
{
    (void)state;
    turning = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    closes = tc_mailbox_new(turning);
    struct letter *l = TC_NEW(struct letter);
    *l = (struct letter){.mail = {.run = arrives, .drop = dropped_under_the_task}, .c = '1'};
    tc_mailbox_send(closes, &l->mail);
    tc_mailbox_close(closes);
    expect("-1-l");
    tc_mailbox_unref(closes);
    tc_loop_free(turning);
    tc_buf_fini(&text);
}

enum { SENDERS = 3, LETTERS = 5000 };

static atomic_uint n_arrived, n_dropped, disorder, at_once;

struct numbered {
    struct tc_mail mail;
    unsigned sender, number;
};

static unsigned last_of[SENDERS];

/* Counts messages that run or are dropped at the same time, and messages of one sender that are out of order. */
static void take(struct tc_mail *mail)
{
    struct numbered *n = TC_CONTAINER_OF(mail, struct numbered, mail);
    if (atomic_fetch_add(&at_once, 1) != 0 || n->number != ++last_of[n->sender])
        atomic_fetch_add(&disorder, 1);
    atomic_fetch_sub(&at_once, 1);
    tc_free(n);
}

static void counted(struct tc_mail *mail)
{
    atomic_fetch_add(&n_arrived, 1);
    take(mail);
}

static void lost(struct tc_mail *mail)
{
    atomic_fetch_add(&n_dropped, 1);
    take(mail);
}

struct sender {
    struct tc_mailbox *box;
    unsigned index;
};

static void *send_many(void *arg)
{
    const struct sender *s = arg;
    for (unsigned i = 0; i < LETTERS; i++) {
        struct numbered *n = TC_NEW(struct numbered);
        *n = (struct numbered){.mail = {.run = counted, .drop = lost}, .sender = s->index, .number = i + 1};
        tc_mailbox_send(s->box, &n->mail);
    }
    return NULL;
}

/* The mailbox is closed and its loop ends while threads may still send: each message is delivered or dropped, in
 * its sender's order. */
static void the_loop_may_end_first(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct tc_mailbox *box = tc_mailbox_new(loop);
    pthread_t threads[SENDERS];
    struct sender senders[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.box = box, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &senders[i]), 0);
    }
    while (atomic_load(&n_arrived) < LETTERS)
        tc_loop_turn(loop, -1);
    tc_mailbox_close(box);
    unsigned arrived = atomic_load(&n_arrived);
    tc_loop_free(loop);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&n_arrived), arrived);
    assert_int_equal(arrived + atomic_load(&n_dropped), SENDERS * LETTERS);
    assert_int_equal(atomic_load(&disorder), 0);
    tc_mailbox_unref(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_and_dropped_when_closed),
        cmocka_unit_test(dropped_in_order),
        cmocka_unit_test(the_task_comes_late),
        cmocka_unit_test(the_loop_may_end_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
