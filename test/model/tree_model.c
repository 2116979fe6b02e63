/* The steps of the model. An event changes slots, timers or the config (model_apply, the function to read first). After
 * a change of slots go_on() connects one more endpoint where A61 demands it, and report() computes the child's state
 * from its slots, as A42 says. Then choose() looks at the children's states and failover timers, and finds the child
 * that serves, as A56 says.
 *
 * Between two events the state of each child that exists is aggregate() of its slots, and choose() changes nothing. A
 * child that does not exist has ABSENT slots alone and no timer. Time passes in TIMER events alone, each of which goes
 * to the next timer. A model is plain data that refers to nothing but the borrowed config, so it can be copied. One
 * thread uses it. */
#include "tree_model.h"

#include <stddef.h>
#include <string.h>

enum torc_connectivity model_seen(enum slot s)
{
    switch (s) {
    case CONNECTING:
    case RECONNECTING:
        return TORC_CONNECTIVITY_CONNECTING;
    case READY:
        return TORC_CONNECTIVITY_READY;
    case BACKOFF:
        return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    default:
        return TORC_CONNECTIVITY_IDLE;
    }
}

/* --- ring_hash --- */

static int count(const struct model_child *c, enum slot s)
{
    int n = 0;
    for (int e = 0; e < ENDPOINTS; e++)
        n += c->slot[e] == s;
    return n;
}

/* Returns the state of a ring (A42, "Aggregated Connectivity State"). */
static enum torc_connectivity aggregate(const struct model_child *c)
{
    int failed = count(c, BACKOFF) + count(c, RECONNECTING);
    int all = ENDPOINTS - count(c, ABSENT);
    if (all == 0)
        return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    if (count(c, READY) > 0)
        return TORC_CONNECTIVITY_READY;
    if (failed >= 2)
        return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    if (count(c, CONNECTING) > 0 || (failed == 1 && all > 1))
        return TORC_CONNECTIVITY_CONNECTING;
    return count(c, IDLE) > 0 ? TORC_CONNECTIVITY_IDLE : TORC_CONNECTIVITY_TRANSIENT_FAILURE;
}

/* A61: while a ring is in TRANSIENT_FAILURE or CONNECTING and none of its endpoints is CONNECTING, it connects one that
 * is IDLE, if there is one. Takes over which one the real ring has chosen. Returns NULL, or a text if the real ring has
 * chosen none. */
static const char *go_on(struct model_child *c, const enum torc_connectivity *seen)
{
    enum torc_connectivity state = aggregate(c);
    bool wanting = state == TORC_CONNECTIVITY_TRANSIENT_FAILURE || state == TORC_CONNECTIVITY_CONNECTING;
    if (!wanting || count(c, CONNECTING) > 0 || count(c, IDLE) == 0)
        return NULL;
    for (int e = 0; e < ENDPOINTS; e++) {
        if (c->slot[e] == IDLE && seen[e] == TORC_CONNECTIVITY_CONNECTING) {
            c->slot[e] = CONNECTING;
            return NULL;
        }
    }
    return "no IDLE endpoint is connected though none is CONNECTING and picks may not come";
}

/* --- priority (A56) --- */

/* Updates a child's state and its failover timer after its slots changed. */
static void report(struct model_child *c)
{
    enum torc_connectivity before = c->state;
    c->state = aggregate(c);
    if (c->state != TORC_CONNECTIVITY_CONNECTING) {
        c->failover_ms = NO_TIMER;
        c->failed_last = c->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    } else if (before != TORC_CONNECTIVITY_CONNECTING && !c->failed_last && c->failover_ms == NO_TIMER) {
        c->failover_ms = FAILOVER_MS;
    }
}

static void create(struct model *m, int i)
{
    struct model_child *c = &m->child[i];
    memset(c, 0, sizeof(*c));
    c->exists = true;
    c->retention_ms = NO_TIMER;
    c->state = TORC_CONNECTIVITY_CONNECTING;
    c->failover_ms = FAILOVER_MS;
    for (int e = 0; e < ENDPOINTS; e++)
        c->slot[e] = m->config->members[i] & (1 << e) ? IDLE : ABSENT;
    report(c); /* to IDLE, or to TRANSIENT_FAILURE if the ring is empty: the failover timer stops */
}

static void end(struct model_child *c)
{
    memset(c, 0, sizeof(*c));
    c->failover_ms = c->retention_ms = NO_TIMER;
}

/* Returns the highest child that is READY or IDLE, or whose failover timer runs. If there is none, returns the first
 * that is CONNECTING, else the last. Creates or reactivates children on the way, and deactivates those below a READY or
 * IDLE one. */
static int choose(struct model *m)
{
    const struct model_config *config = m->config;
    for (int p = 0; p < config->n; p++) {
        struct model_child *c = &m->child[config->priority[p]];
        if (!c->exists)
            create(m, config->priority[p]);
        c->retention_ms = NO_TIMER;
        if (c->state == TORC_CONNECTIVITY_READY || c->state == TORC_CONNECTIVITY_IDLE) {
            for (int lower = p + 1; lower < config->n; lower++) {
                struct model_child *l = &m->child[config->priority[lower]];
                if (l->exists && l->retention_ms == NO_TIMER)
                    l->retention_ms = RETENTION_MS;
            }
            return config->priority[p];
        }
        if (c->failover_ms != NO_TIMER)
            return config->priority[p];
    }
    for (int p = 0; p < config->n; p++)
        if (m->child[config->priority[p]].state == TORC_CONNECTIVITY_CONNECTING)
            return config->priority[p];
    return config->priority[config->n - 1];
}

int model_chosen(const struct model *m)
{
    struct model copy = *m; /* choose() takes a model that is not const, though it changes nothing here */
    return choose(&copy);
}

enum torc_connectivity model_state(const struct model *m)
{
    return m->child[model_chosen(m)].state;
}

/* --- events --- */

static const char *slot_event(struct model *m, const struct event *e, enum torc_connectivity seen[CHILDREN][ENDPOINTS])
{
    struct model_child *c = &m->child[e->child];
    enum slot *s = &c->slot[e->endpoint];
    switch (e->kind) {
    case CALL:
        *s = CONNECTING;
        break;
    case CONNECTED:
        *s = READY;
        break;
    case FAILED:
        *s = BACKOFF;
        break;
    case BACKOFF_OVER:
        *s = RECONNECTING; /* A61: at once, without a pick */
        break;
    default:
        *s = IDLE; /* A42: the endpoint waits for a pick */
        break;
    }
    const char *wrong = go_on(c, seen[e->child]);
    report(c);
    return wrong;
}

static const char *update(struct model *m, const struct model_config *config,
                          enum torc_connectivity seen[CHILDREN][ENDPOINTS])
{
    const char *wrong = NULL;
    m->config = config;
    for (int i = 0; i < CHILDREN; i++) {
        struct model_child *c = &m->child[i];
        bool listed = false;
        for (int p = 0; p < config->n; p++)
            listed |= config->priority[p] == i;
        if (c->exists && !listed)
            end(c); /* A115: at once, not after the retention time */
        if (!c->exists)
            continue;
        for (int e = 0; e < ENDPOINTS; e++) {
            bool member = config->members[i] & (1 << e);
            if (!member)
                c->slot[e] = ABSENT;
            else if (c->slot[e] == ABSENT)
                c->slot[e] = IDLE;
        }
        const char *why = go_on(c, seen[i]);
        wrong = wrong ? wrong : why;
        report(c);
    }
    return wrong;
}

int model_next_timer(const struct model *m)
{
    int next = NO_TIMER;
    for (int i = 0; i < CHILDREN; i++) {
        const int timers[] = {m->child[i].failover_ms, m->child[i].retention_ms};
        for (int k = 0; k < 2; k++)
            if (timers[k] != NO_TIMER && (next == NO_TIMER || timers[k] < next))
                next = timers[k];
    }
    return next;
}

static const char *pass_time(struct model *m)
{
    int ms = model_next_timer(m), failovers = 0, retentions = 0;
    for (int i = 0; i < CHILDREN; i++) {
        struct model_child *c = &m->child[i];
        if (c->failover_ms != NO_TIMER && (c->failover_ms -= ms) == 0) {
            c->failover_ms = NO_TIMER;
            failovers++;
        }
        if (c->retention_ms != NO_TIMER && (c->retention_ms -= ms) == 0) {
            end(c);
            retentions++;
        }
    }
    /* The gRFCs do not say which comes first. The sequences of the test are too short to get there. */
    return failovers && retentions ? "a failover and the end of a child fall together" : NULL;
}

const char *model_apply(struct model *m, const struct event *e, enum torc_connectivity seen[CHILDREN][ENDPOINTS])
{
    const char *wrong = e->kind == UPDATE  ? update(m, e->config, seen)
                        : e->kind == TIMER ? pass_time(m)
                                           : slot_event(m, e, seen);
    choose(m);
    return wrong;
}

void model_start(struct model *m, const struct model_config *config)
{
    m->config = config;
    for (int i = 0; i < CHILDREN; i++)
        end(&m->child[i]);
    choose(m);
}

/* --- A61's picker --- */
enum answer model_call(const struct model *m, const int *order, int n, int *endpoint)
{
    const struct model_child *c = &m->child[model_chosen(m)];
    *endpoint = -1;
    for (int k = 0; k < n; k++) {
        enum slot s = c->slot[order[k]];
        if (s == BACKOFF || s == RECONNECTING)
            continue;
        if (s != CONNECTING)
            *endpoint = order[k];
        return s == READY ? SENT : QUEUED;
    }
    return FAILS;
}
