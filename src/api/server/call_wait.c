/* The functions of torc_server_call that may wait, as those of streams do (api/wait.h).
 *
 * A thread that receives takes the oldest message of the call, or asks the loop for one and waits. One thread receives
 * at a time (`receiving`). A codec receives in two steps, and decodes the message between them: the call stays until
 * the second step, also when another thread finishes the call. A thread that sends waits until the call has room
 * (has_room). A thread that waits holds a reference to the call.
 *
 * Also here: what a codec keeps in the call (api/typed.h), and the functions that queue a message whether or not there
 * is room. Any thread; what the functions touch of the call is constant or under the runtime's lock (call_object.h). */
#include "api/server/call_object.h"
#include "base/mem.h"
#include "base/thread.h"
#include "http2/stream.h"

/* Begins a function: takes a reference and the lock, which wait_end gives back. Puts the thread on c->waits. */
static void wait_begin(struct tc_timed_wait *w, torc_server_call *c, int64_t timeout_ms)
{
    tc_ref_inc(&c->ref);
    tc_timed_wait_begin(w, c->rt, &c->waits, timeout_ms);
    w->wait.ends_ns = &c->facts.deadline_ns;
}

static int wait_end(struct tc_timed_wait *w, torc_server_call *c, int rc)
{
    tc_timed_wait_end(w);
    tc_api_call_drop(c);
    return rc;
}

/* Returns 0 if the function may go on, else the code for the function to return: TORC_EINVAL if `c` is NULL. */
static int call_check(const torc_server_call *c, int64_t timeout_ms)
{
    int rc = c ? tc_runtime_check(c->rt) : TORC_EINVAL;
    return rc ? rc : tc_wait_check(c->rt, timeout_ms);
}

/* Lends the oldest received message, of which there must be one, to the application, and takes back the message lent
 * before. With the lock held. */
static const torc_message *message_lend(torc_server_call *c)
{
    bool plain;
    tc_rstr_unref(c->lent);
    c->lent = tc_message_queue_take(&c->received, &plain);
    return (const torc_message *)c->lent;
}

/* Asks for one more message, unless one that was asked for has yet to come. With the lock held. */
static void want_message(torc_server_call *c, const struct tc_timed_wait *w)
{
    if (c->reads_pending || tc_api_call_want_reads(c, 1, w->quietly) != 0)
        return;
    c->reads_pending++;
    tc_timed_wait_posted(w);
}

int tc_api_call_receive_begin(torc_server_call *c, int64_t timeout_ms, const torc_message **message)
{
    int rc = message ? call_check(c, timeout_ms) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct tc_timed_wait w;
    wait_begin(&w, c, timeout_ms);
    rc = tc_api_call_state(c);
    if (rc == 0 && (c->receiving || c->heard.on_message))
        rc = TORC_ESTATE;
    if (rc != 0)
        return wait_end(&w, c, rc);
    c->receiving = c->asked = true;
    while ((rc = tc_api_call_state(c)) == 0 && !c->received.first && !c->half_closed) {
        want_message(c, &w);
        if ((rc = tc_timed_wait_once(&w)) != 0)
            break;
    }
    if (rc == 0 && c->received.first) {
        *message = message_lend(c);
        tc_ref_inc(&c->ref); /* tc_api_call_receive_end gives it back */
        rc = 1;
    }
    c->receiving = rc == 1;
    return wait_end(&w, c, rc);
}

bool tc_api_call_receive_end(torc_server_call *c)
{
    tc_runtime_lock(c->rt);
    c->receiving = false;
    bool open = !c->finished;
    tc_runtime_unlock(c->rt);
    tc_api_call_drop(c);
    return open;
}

int torc_server_call_receive(torc_server_call *c, int64_t timeout_ms, const torc_message **message)
{
    int rc = tc_api_call_receive_begin(c, timeout_ms, message);
    if (rc == 1)
        tc_api_call_receive_end(c);
    return rc;
}

struct tc_typed *tc_api_call_typed(torc_server_call *c)
{
    tc_runtime_lock(c->rt);
    struct tc_typed *typed = c->typed;
    tc_runtime_unlock(c->rt);
    return typed;
}

struct tc_typed *tc_api_call_keep(torc_server_call *c, struct tc_typed *mine)
{
    tc_runtime_lock(c->rt);
    if (!c->typed)
        c->typed = mine;
    struct tc_typed *kept = c->typed;
    tc_runtime_unlock(c->rt);
    if (kept != mine)
        mine->free(mine);
    return kept;
}

void tc_api_call_spoil(torc_server_call *c, const char *text)
{
    tc_runtime_lock(c->rt);
    if (!c->finished && !c->ending.text)
        c->ending.text = tc_rstr_str(text);
    tc_runtime_unlock(c->rt);
}

/* --- sending --- */

void tc_api_call_queue(torc_server_call *c, struct tc_rstr *message, bool plain)
{
    tc_message_queue_add(&c->unsent, message, plain);
    c->unwritten.bytes += tc_server_message_cost(message->len);
    c->unwritten.n++;
    c->headers_wanted = true;
}

void tc_api_call_send_shared(torc_server_call *c, struct tc_rstr *message)
{
    if (tc_runtime_check(c->rt) != 0)
        return;
    tc_runtime_lock(c->rt);
    if (tc_api_call_state(c) == 0) {
        tc_api_call_queue(c, tc_rstr_ref(message), false);
        c->tell_writable = true;
        tc_api_call_schedule(c, false);
    }
    tc_runtime_unlock(c->rt);
}

static bool has_room(const torc_server_call *c, size_t size)
{
    return !c->unwritten.n || (c->unwritten.bytes < c->unwritten.room &&
                               tc_server_message_cost(size) <= c->unwritten.room - c->unwritten.bytes);
}

/* Queues the message and returns 0; TORC_EAGAIN if there is no room; or why the call cannot send. Makes *copy, which is
 * NULL at first, once there is room, and clears it when it is queued; the caller frees a copy that is left. With the
 * lock held, which is released while the copy is made. */
static int try_send(torc_server_call *c, struct tc_rstr **copy, struct tc_slice message, unsigned flags, bool quietly)
{
    int rc = tc_api_call_state(c);
    if (rc == 0 && !has_room(c, message.len))
        rc = TORC_EAGAIN;
    if (rc != 0)
        return rc;
    if (!*copy) {
        tc_runtime_unlock(c->rt);
        *copy = tc_rstr_new(message.data, message.len);
        tc_runtime_lock(c->rt);
        return try_send(c, copy, message, flags, quietly); /* the room may be gone */
    }
    tc_api_call_queue(c, *copy, (flags & TORC_SEND_PLAIN) != 0);
    *copy = NULL;
    return tc_api_call_schedule(c, quietly);
}

static int send_check(const torc_server_call *c, const void *message, size_t size, unsigned flags, int64_t timeout_ms)
{
    const unsigned compress = TORC_SEND_COMPRESS | TORC_SEND_PLAIN;
    int rc = call_check(c, timeout_ms);
    if (rc != 0)
        return rc;
    if ((!message && size) || flags & ~compress || (flags & compress) == compress)
        return TORC_EINVAL;
    if (size > TC_H2_MESSAGE_MAX)
        return TORC_ELIMIT;
    return flags & TORC_SEND_COMPRESS && !c->server->opts.gzip ? TORC_ESTATE : 0;
}

int torc_server_call_send(torc_server_call *c, const void *message, size_t size, unsigned flags, int64_t timeout_ms)
{
    int rc = send_check(c, message, size, flags, timeout_ms);
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct tc_rstr *copy = NULL;
    struct tc_timed_wait w;
    wait_begin(&w, c, timeout_ms);
    while ((rc = try_send(c, &copy, tc_slice_of(message, size), flags, w.quietly)) == TORC_EAGAIN)
        if ((rc = tc_timed_wait_once(&w)) != 0)
            break;
    if (rc == TORC_EAGAIN)
        c->tell_writable = true;
    if (rc == 0 && w.quietly)
        tc_runtime_turn(c->rt, &w.wait);
    rc = wait_end(&w, c, rc);
    tc_rstr_unref(copy);
    return rc;
}
