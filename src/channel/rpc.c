/* Walks past interceptors, and delays.
 *
 * hook_call calls the application's hook for a walk (sight_show and tc_rpc_end call the hooks without a verdict).
 * tc_walk_go_on acts on the verdict:
 *
 *   0             the next interceptor
 *   a status      the walk fails (on_status: the outcome is replaced, and the walk goes on)
 *   TORC_PENDING  the walk waits: its torc_pending and the walk point at one another
 *
 * A delay ends in one of two ways. torc_rpc_resume posts the torc_pending to the loop, where on_resumed finds the walk
 * and goes on. Or the walk lets go of the torc_pending (tc_walk_let_go), because the RPC ended, the walk may no longer
 * be held up (`hurried`), or the hook returned another verdict; on_resumed then finds no walk, and does nothing.
 * on_resumed and tc_walk_let_go run on the loop's thread.
 *
 * Hooks are application code. A hook cannot end the RPC from inside: functions that end an RPC are deferred. But a hook
 * may destroy the application's own LB policy at once. So on_attempt and the observers, whose cause may be inside a
 * policy, are never called at once: the serial queue calls on_attempt, and the observers, too, unless another walk or
 * the end of the RPC comes first. A hook may also fork: in the child nothing goes on (tc_loop_forked). */
#include "channel/rpc.h"

#include "base/mem.h"

static const char *const hook_names[TC_HOOKS] = {"on_start", "on_attempt", "on_message", "on_status",
                                                 "on_pick",  "on_wire",    "on_end"};

static void on_tell(struct tc_task *task);

torc_rpc *tc_rpc_new(const struct tc_interceptors *list, torc_runtime *rt, const struct tc_rpc_side *side, void *owner,
                     struct tc_arena *arena, struct tc_headers *metadata, struct tc_status *status)
{
    torc_rpc *rpc = tc_arena_calloc(arena, 1, sizeof(*rpc));
    rpc->list = list;
    rpc->rt = rt;
    rpc->side = side;
    rpc->owner = owner;
    rpc->arena = arena;
    rpc->metadata = metadata;
    rpc->status = status;
    rpc->states = tc_arena_calloc(arena, 1, list->state_bytes);
    rpc->last_sight = &rpc->first_sight;
    tc_task_init(&rpc->tell, on_tell);
    return rpc;
}

static bool rpc_is_forked(const torc_rpc *rpc)
{
    return tc_loop_forked(tc_runtime_loop(rpc->rt));
}

static void *state_of(const torc_rpc *rpc, const struct tc_interceptor *it)
{
    return it->app.state_size ? rpc->states + it->state_at : NULL;
}

/* --- observers --- */

struct tc_sight *tc_rpc_sight(torc_rpc *rpc, enum tc_hook hook)
{
    struct tc_sight *s = TC_NEW(struct tc_sight);
    s->hook = hook;
    tc_arena_init(&s->texts, 0, 0);
    *rpc->last_sight = s;
    rpc->last_sight = &s->next;
    tc_loop_defer(tc_runtime_loop(rpc->rt), &rpc->tell);
    return s;
}

static void sight_show(torc_rpc *rpc, const struct tc_sight *s)
{
    const struct tc_hook_row *row = &rpc->list->rows[s->hook];
    for (uint32_t i = 0; i < row->n && !rpc_is_forked(rpc); i++) {
        const struct tc_interceptor *it = row->at[i];
        if (s->hook == TC_HOOK_PICK)
            it->app.on_pick(rpc, &s->pick, state_of(rpc, it), it->app.arg);
        else
            it->app.on_wire(rpc, &s->wire, state_of(rpc, it), it->app.arg);
    }
}

static void observers_tell(torc_rpc *rpc)
{
    struct tc_sight *s;
    while ((s = rpc->first_sight)) {
        rpc->first_sight = s->next;
        if (!s->next)
            rpc->last_sight = &rpc->first_sight;
        sight_show(rpc, s);
        tc_arena_fini(&s->texts);
        tc_free(s);
    }
}

static void on_tell(struct tc_task *task)
{
    observers_tell(TC_CONTAINER_OF(task, torc_rpc, tell));
}

void tc_rpc_end(torc_rpc *rpc)
{
    const struct tc_hook_row *row = &rpc->list->rows[TC_HOOK_END];
    uint32_t started = rpc->started;
    observers_tell(rpc);
    tc_task_cancel(&rpc->tell);
    rpc->started = 0; /* on_end is called once */
    rpc->ending = rpc->at_end = true;
    for (uint32_t i = row->n; i-- > 0 && !rpc_is_forked(rpc);) {
        const struct tc_interceptor *it = row->at[i];
        if (it->index < started)
            it->app.on_end(rpc, rpc->status->code, state_of(rpc, it), it->app.arg);
    }
}

/* --- walks --- */

/* Returns the interceptor whose turn it is; `left` is the number of interceptors still to pass, this one included. */
static const struct tc_interceptor *walk_present(const struct tc_walk *w, uint32_t left)
{
    const struct tc_hook_row *row = &w->rpc->list->rows[w->hook];
    return row->at[w->outward ? left - 1 : row->n - left];
}

static int message_call(struct tc_walk *w, const struct tc_interceptor *it)
{
    torc_message *message = (torc_message *)w->message;
    int verdict =
        it->app.on_message(w->rpc, w->outward == w->rpc->side->server, &message, state_of(w->rpc, it), it->app.arg);
    struct tc_rstr *stored = (struct tc_rstr *)message;
    if (!stored) {
        tc_rstr_unref(w->rpc->text);
        w->rpc->text =
            tc_rstr_printf("the interceptor \"" TC_SHOWN "\" stored NULL instead of a message", TC_SHOW(it->app.name));
        return TORC_STATUS_INTERNAL;
    }
    if (stored != w->message) {
        tc_rstr_unref(w->message);
        w->message = stored;
    }
    return verdict;
}

static int hook_call(struct tc_walk *w, const struct tc_interceptor *it)
{
    torc_rpc *rpc = w->rpc;
    void *state = state_of(rpc, it);
    switch (w->hook) {
    case TC_HOOK_START:
        rpc->passed = it->index;
        rpc->started = it->index + 1;
        return it->app.on_start(rpc, state, it->app.arg);
    case TC_HOOK_ATTEMPT:
        return it->app.on_attempt(rpc, w->number, state, it->app.arg);
    case TC_HOOK_MESSAGE:
        return message_call(w, it);
    case TC_HOOK_STATUS:
        return it->index < rpc->passed ? it->app.on_status(rpc, rpc->status->code, state, it->app.arg) : 0;
    case TC_HOOK_PICK:
    case TC_HOOK_WIRE:
    case TC_HOOK_END:
    case TC_HOOKS:
        break;
    }
    return 0;
}

/* Takes over the text. */
static struct tc_status verdict_status(const struct tc_walk *w, const struct tc_interceptor *it, int verdict,
                                       struct tc_rstr *text)
{
    if (verdict < 1 || verdict > TORC_STATUS_UNAUTHENTICATED) {
        tc_rstr_unref(text);
        if (verdict == TORC_PENDING)
            return tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_INTERCEPTOR,
                                  "the interceptor \"" TC_SHOWN "\" delayed %s without torc_rpc_suspend, or twice",
                                  TC_SHOW(it->app.name), hook_names[w->hook]);
        return tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_INTERCEPTOR,
                              "the interceptor \"" TC_SHOWN "\" gave %d for %s, which is not a verdict",
                              TC_SHOW(it->app.name), verdict, hook_names[w->hook]);
    }
    if (text)
        return (struct tc_status){verdict, TORC_LAYER_INTERCEPTOR, text};
    return tc_status_make(verdict, TORC_LAYER_INTERCEPTOR, "the interceptor \"" TC_SHOWN "\" refused the RPC",
                          TC_SHOW(it->app.name));
}

/* Replaces the outcome by the verdict of on_status. A verdict without a text keeps the text of an outcome that was not
 * OK. Takes over the text. */
static void outcome_replace(struct tc_walk *w, const struct tc_interceptor *it, int verdict, struct tc_rstr *text)
{
    struct tc_status *status = w->rpc->status;
    if (!text && verdict >= 1 && verdict <= TORC_STATUS_UNAUTHENTICATED && status->code != TORC_STATUS_OK)
        text = tc_rstr_ref(status->text);
    tc_status_set(status, verdict_status(w, it, verdict, text));
}

/* Takes over the text. Returns whether the walk goes on. */
static bool walk_take(struct tc_walk *w, const struct tc_interceptor *it, int verdict, struct tc_rstr *text)
{
    if (verdict == 0) {
        tc_rstr_unref(text);
        return true;
    }
    if (w->hook == TC_HOOK_STATUS) {
        outcome_replace(w, it, verdict, text);
        return true;
    }
    tc_status_set(&w->failure, verdict_status(w, it, verdict, text));
    return false;
}

/* Calls one interceptor. Returns its verdict, and stores the text for it, which the caller owns (NULL: none).
 * TORC_PENDING without w->pending set is a mistake of the interceptor, which did not call torc_rpc_suspend. */
static int walk_ask(struct tc_walk *w, const struct tc_interceptor *it, struct tc_rstr **text)
{
    torc_rpc *rpc = w->rpc;
    rpc->in = w;
    int verdict = hook_call(w, it);
    rpc->in = NULL;
    *text = rpc->text;
    rpc->text = NULL;
    if (verdict == TORC_PENDING && w->hurried)
        verdict = 0;
    if (verdict != TORC_PENDING)
        tc_walk_let_go(w);
    else if (w->pending)
        tc_rstr_clear(text);
    return verdict;
}

enum tc_walk_end tc_walk_go_on(struct tc_walk *w)
{
    observers_tell(w->rpc);
    if (w->hook == TC_HOOK_STATUS)
        w->rpc->ending = true;
    while (w->left) {
        const struct tc_interceptor *it = walk_present(w, w->left);
        if (rpc_is_forked(w->rpc))
            return TC_WALK_WAITS;
        struct tc_rstr *text;
        int verdict = walk_ask(w, it, &text);
        w->left--;
        if (w->pending || rpc_is_forked(w->rpc))
            return TC_WALK_WAITS;
        if (!walk_take(w, it, verdict, text))
            return TC_WALK_FAILED;
    }
    if (w->hook == TC_HOOK_START)
        w->rpc->passed = w->rpc->started = w->rpc->list->n;
    return TC_WALK_PASSED;
}

enum tc_walk_end tc_walk_begin(struct tc_walk *w, torc_rpc *rpc, enum tc_hook hook, bool outward)
{
    w->rpc = rpc;
    w->hook = hook;
    w->outward = outward;
    w->left = rpc->list->rows[hook].n;
    return tc_walk_go_on(w);
}

static void on_begin_later(struct tc_task *task)
{
    struct tc_walk *w = TC_CONTAINER_OF(task, struct tc_walk, begin);
    w->resumed(w, tc_walk_begin(w, w->rpc, w->hook, w->outward));
}

void tc_walk_begin_later(struct tc_walk *w, torc_rpc *rpc, enum tc_hook hook, bool outward)
{
    w->rpc = rpc;
    w->hook = hook;
    w->outward = outward;
    w->left = 0;
    tc_task_init(&w->begin, on_begin_later);
    tc_loop_defer(tc_runtime_loop(rpc->rt), &w->begin);
}

const char *tc_walk_holder(const struct tc_walk *w)
{
    return w->pending ? walk_present(w, w->left + 1)->app.name : NULL;
}

const char *tc_rpc_holder(const torc_rpc *rpc)
{
    const struct tc_walk *const walks[] = {&rpc->main, &rpc->sent, &rpc->received};
    const char *name = NULL;
    for (size_t i = 0; i < TC_ARRAY_LEN(walks) && !name; i++)
        name = tc_walk_holder(walks[i]);
    return name;
}

static void pending_unref(torc_pending *p)
{
    if (!tc_ref_dec(&p->ref))
        return;
    tc_rstr_unref(p->text);
    tc_rstr_unref(p->message);
    tc_arena_fini(&p->arena);
    tc_runtime_unref(p->rt);
    tc_free(p);
}

void tc_walk_let_go(struct tc_walk *w)
{
    torc_pending *p = w->pending;
    if (!p)
        return;
    w->pending = NULL;
    p->walk = NULL;
    pending_unref(p);
}

void tc_walk_stop(struct tc_walk *w)
{
    tc_walk_let_go(w);
    if (w->begin.fn)
        tc_task_cancel(&w->begin);
    w->left = 0;
    tc_rstr_clear(&w->message);
    tc_status_fini(&w->failure);
}

void tc_rpc_stop(torc_rpc *rpc, bool messages)
{
    tc_walk_stop(&rpc->main);
    tc_walk_stop(&rpc->sent);
    if (messages)
        tc_walk_stop(&rpc->received);
}

/* --- delays --- */

/* Applies the metadata or the message that the interceptor gave besides its verdict. */
static void pending_apply(torc_pending *p, struct tc_walk *w)
{
    for (size_t i = 0; w->hook == TC_HOOK_START && i < p->metadata.len; i++) {
        tc_headers_add_copy(w->rpc->metadata, p->metadata.data[i].name, p->metadata.data[i].value);
        w->rpc->shown_metadata = NULL;
    }
    if (w->hook == TC_HOOK_MESSAGE && p->message) {
        tc_rstr_unref(w->message);
        w->message = p->message;
        p->message = NULL;
    }
}

static void on_resumed(struct tc_task *task)
{
    torc_pending *p = TC_CONTAINER_OF(task, torc_pending, task);
    struct tc_walk *w = p->walk;
    if (w && !rpc_is_forked(w->rpc)) {
        const struct tc_interceptor *it = walk_present(w, w->left + 1);
        struct tc_rstr *text = p->text;
        int verdict = p->verdict;
        p->text = NULL;
        pending_apply(p, w);
        tc_walk_let_go(w);
        w->resumed(w, walk_take(w, it, verdict, text) ? tc_walk_go_on(w) : TC_WALK_FAILED);
    }
    pending_unref(p);
}

torc_pending *tc_rpc_suspend(torc_rpc *rpc)
{
    if (!rpc->in || rpc->in->pending)
        return NULL;
    torc_pending *p = TC_NEW(torc_pending);
    tc_ref_init(&p->ref);
    tc_ref_inc(&p->ref);
    p->rt = tc_runtime_ref(rpc->rt);
    p->walk = rpc->in;
    tc_task_init(&p->task, on_resumed);
    tc_arena_init(&p->arena, 256, 0);
    tc_headers_init(&p->metadata, &p->arena);
    rpc->in->pending = p;
    return p;
}

void tc_pending_resume(torc_pending *p, int verdict, struct tc_rstr *text)
{
    torc_runtime *rt = tc_runtime_ref(p->rt); /* the task may drop the last other reference */
    p->verdict = verdict;
    p->text = text;
    if (!tc_runtime_run(rt, &p->task))
        pending_unref(p);
    tc_runtime_unref(rt);
}
