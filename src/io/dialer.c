/* Dialers.
 *
 * A dial by the application's dialer is a question (io/question.h): the loop's side waits for a descriptor and may give
 * up; the application's side ends with torc_dial_done, at any time, on any thread. The descriptor is the application's
 * until torc_dial_done, then the dial's (`fd`), and from the delivery on the byte stream's. A dial that is freed with a
 * descriptor closes it.
 *
 * A descriptor that was handed over is the dialer's from tc_dialer_accept on, and no question is asked: a task delivers
 * it, once, and every later start fails.
 *
 * `open` counts the dials whose loop's side is not over. When the channel has ended and none is open, no callback can
 * follow, and a task calls release.
 *
 * The loop's thread alone uses a dialer and its dials, except where dialer.h says otherwise. */
#include "io/dialer.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strerror.h"
#include "io/descriptor.h"
#include "io/question.h"
#include "io/socket.h"

struct tc_dialer {
    struct tc_ref ref;
    uint64_t id;
    struct torc_dialer of; /* dial NULL: a descriptor was handed over */
    int given, fd;         /* given: the descriptor that was handed over; fd: the same number while the dialer owns it,
                              from tc_dialer_accept until it is delivered; -1: none */
    bool accepted, ended, released; /* tc_dialer_accept, tc_dialer_end was called; the task `release` was queued */
    size_t open;
    struct tc_loop *loop; /* of `release`, once the channel has ended */
    struct tc_task release;
};

struct torc_dial {
    struct tc_question question; /* of the application's dialer */
    struct tc_task task;         /* of a descriptor that was handed over, or of a start after the channel's end */
    struct tc_dialer *dialer;    /* a reference of the loop's side */
    struct tc_loop *loop;
    struct tc_addr addr;
    uint64_t user_timeout_ms;
    tc_connect_fn fn;
    void *arg;
    void *data; /* the application's */
    int fd;     /* -1: none */
    struct tc_status error;
};

/* --- dialers --- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Closes a descriptor that was not delivered, and makes the last callback: `arg` is the application's again. */
static void dialer_release(struct tc_dialer *d)
{
    close_fd(&d->fd);
    if (d->of.release)
        d->of.release(d->of.arg);
}

static void on_release(struct tc_task *task)
{
    struct tc_dialer *d = TC_CONTAINER_OF(task, struct tc_dialer, release);
    dialer_release(d);
    tc_dialer_unref(d);
}

static struct tc_dialer *dialer_new(void)
{
    static atomic_ullong last;
    struct tc_dialer *d = TC_NEW(struct tc_dialer);
    tc_ref_init(&d->ref);
    d->id = atomic_fetch_add(&last, 1) + 1;
    d->given = d->fd = -1;
    tc_task_init(&d->release, on_release);
    return d;
}

struct tc_dialer *tc_dialer_new(const struct torc_dialer *of)
{
    struct tc_dialer *d = dialer_new();
    d->of = *of;
    return d;
}

struct tc_dialer *tc_dialer_of_fd(int fd)
{
    struct tc_dialer *d = dialer_new();
    d->given = fd;
    return d;
}

void tc_dialer_accept(struct tc_dialer *d)
{
    d->accepted = true;
    d->fd = d->given;
}

struct tc_dialer *tc_dialer_ref(struct tc_dialer *d)
{
    if (d)
        tc_ref_inc(&d->ref);
    return d;
}

void tc_dialer_unref(struct tc_dialer *d)
{
    if (!d || !tc_ref_dec(&d->ref))
        return;
    if (d->accepted && !d->ended)
        dialer_release(d);
    tc_free(d);
}

uint64_t tc_dialer_id(const struct tc_dialer *d)
{
    return d->id;
}

static void dialer_release_if_over(struct tc_dialer *d)
{
    if (d->ended && d->open == 0 && !d->released) {
        d->released = true;
        tc_loop_defer(d->loop, &d->release);
    }
}

void tc_dialer_end(struct tc_dialer *d, struct tc_loop *loop)
{
    if (!d || d->ended)
        return;
    d->ended = true;
    d->loop = loop;
    tc_dialer_ref(d); /* the task's */
    dialer_release_if_over(d);
}

/* --- descriptors --- */

const char *tc_dialer_fd_fault(int fd, char scratch[128])
{
    int type, listens = 0;
    socklen_t len = sizeof(type);
    struct sockaddr_storage peer;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0)
        return tc_strerror(errno, scratch);
    if (type != SOCK_STREAM)
        return "it is not a stream socket";
    len = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens)
        return "it is a socket that listens";
    len = sizeof(peer);
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 ? NULL : tc_strerror(errno, scratch);
}

/* Makes a byte stream of the dial's descriptor. Returns NULL with the reason in dial->error. */
static struct tc_bytestream *dial_make_stream(struct torc_dial *dial)
{
    char scratch[128];
    const char *fault = tc_dialer_fd_fault(dial->fd, scratch);
    struct tc_bytestream *bs = NULL;
    if (!fault && tc_descriptor_prepare(dial->fd))
        bs = tc_socket_new(dial->loop, dial->fd);
    if (!bs) {
        fault = fault ? fault : tc_strerror(errno, scratch);
        tc_status_set(&dial->error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                                   "descriptor %d cannot be used: %s", dial->fd, fault));
        return NULL;
    }
    tc_socket_set_user_timeout(dial->fd, tc_addr_family(&bs->local), dial->user_timeout_ms);
    dial->fd = -1;
    return bs;
}

/* --- dials --- */

static struct torc_dial *dial_of(struct tc_question *q)
{
    return TC_CONTAINER_OF(q, struct torc_dial, question);
}

/* Called when the loop's side of a dial is over: drops the dial's reference to the dialer. */
static void dialer_closed_one(struct tc_dialer *d)
{
    d->open--;
    dialer_release_if_over(d);
    tc_dialer_unref(d);
}

static void dial_ask(struct tc_question *q)
{
    struct torc_dial *dial = dial_of(q);
    const struct torc_dialer *of = &dial->dialer->of;
    char *text = tc_addr_text(&dial->addr);
    of->dial(dial, text, of->arg);
    tc_free(text);
}

static void dial_withdraw(struct tc_question *q, bool answered)
{
    struct torc_dial *dial = dial_of(q);
    struct tc_dialer *d = dial->dialer;
    if (!answered && d->of.cancel)
        d->of.cancel(dial, d->of.arg);
    dialer_closed_one(d);
}

/* Ends the loop's side, and calls fn with a byte stream or an error. */
static void dial_tell(struct torc_dial *dial)
{
    struct tc_bytestream *bs = dial->fd >= 0 ? dial_make_stream(dial) : NULL;
    char *text = tc_addr_text(&dial->addr);
    struct tc_status error = {0};
    if (!bs)
        error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to connect to %s: %s%s", text,
                               dial->dialer->of.dial ? "the application's dialer: " : "", tc_status_text(&dial->error));
    tc_free(text);
    dialer_closed_one(dial->dialer);
    dial->fn(dial->arg, bs, &error);
    tc_status_fini(&error);
}

static void dial_deliver(struct tc_question *q, void *waiter TC_UNUSED)
{
    dial_tell(dial_of(q));
}

static void dial_free(struct tc_question *q)
{
    struct torc_dial *dial = dial_of(q);
    close_fd(&dial->fd);
    tc_status_fini(&dial->error);
    tc_addr_fini(&dial->addr);
    tc_free(dial);
}

static const struct tc_question_ops dial_ops = {
    .ask = dial_ask, .withdraw = dial_withdraw, .deliver = dial_deliver, .free = dial_free};

static void on_handed_over(struct tc_task *task)
{
    struct torc_dial *dial = TC_CONTAINER_OF(task, struct torc_dial, task);
    if (!dial->dialer->ended) {
        dial->fd = dial->dialer->fd;
        dial->dialer->fd = -1;
    }
    if (dial->fd < 0)
        dial->error = tc_status_make(
            TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "%s",
            dial->dialer->ended ? "the channel has ended"
                                : "its one connection has been used, and a descriptor cannot be connected again");
    dial_tell(dial);
    dial_free(&dial->question);
}

struct torc_dial *tc_dialer_start(struct tc_dialer *d, struct tc_loop *loop, const struct tc_addr *addr,
                                  uint64_t user_timeout_ms, tc_connect_fn fn, void *arg)
{
    struct torc_dial *dial = TC_NEW(struct torc_dial);
    dial->dialer = tc_dialer_ref(d);
    dial->loop = loop;
    dial->addr = tc_addr_ref(addr);
    dial->user_timeout_ms = user_timeout_ms;
    dial->fn = fn;
    dial->arg = arg;
    dial->fd = -1;
    d->open++;
    tc_task_init(&dial->task, on_handed_over);
    if (d->ended || !d->of.dial) { /* `dial` is not called after the channel's end */
        tc_loop_defer(loop, &dial->task);
        return dial;
    }
    tc_question_init(&dial->question, &dial_ops, loop, arg);
    tc_question_ask(&dial->question);
    return dial;
}

void tc_dialer_cancel(struct torc_dial *dial)
{
    struct tc_dialer *d = dial->dialer;
    if (tc_task_pending(&dial->task)) {
        tc_task_cancel(&dial->task);
        dial_free(&dial->question);
    } else if (tc_question_cancel(&dial->question)) {
        return; /* dial_withdraw calls dialer_closed_one */
    }
    dialer_closed_one(d);
}

/* --- the application's side --- */

void tc_dial_done(struct torc_dial *dial, int fd, const torc_error *error)
{
    if (fd >= 0 && !error) {
        dial->fd = fd;
    } else {
        close_fd(&fd);
        dial->error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "%s",
                                     error ? torc_error_text(error) : "it gave neither a descriptor nor an error");
    }
    tc_question_answer(&dial->question);
}

void tc_dial_set_data(struct torc_dial *dial, void *data)
{
    dial->data = data;
}

void *tc_dial_data(const struct torc_dial *dial)
{
    return dial->data;
}
