/* A fake channel for LB policies on a loop with virtual time: records what a policy reports and makes subchannels whose
 * states the test drives by address. */
#ifndef TC_SUPPORT_FAKE_LB_H
#define TC_SUPPORT_FAKE_LB_H

#include "base/vec.h"
#include "lb/policy.h"
#include "lb/turns.h"

struct fake_sc;

struct fake_lb {
    struct tc_lb_helper helper;
    struct tc_lb_env env;
    struct tc_lb_turns turns;
    struct tc_loop *loop;
    struct tc_lb_registry *registry;
    struct tc_lb_policy *policy;
    /* The last report, and how many there were. */
    enum torc_connectivity state; /* TORC_SHUTDOWN: none yet */
    struct tc_status status;
    struct tc_picker *picker;
    unsigned reports;
    struct tc_buf history;  /* states in order, repeats joined: "CONNECTING READY " */
    struct tc_buf connects; /* addresses in the order of attempts: "1.1.1.1:1 2.2.2.2:2 " */
    unsigned reresolutions;
    TC_VEC(struct fake_sc *) subchannels; /* that exist now */
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_pick_args args; /* of the next pick */
    struct tc_pick pick;      /* what the last pick gave */
    enum tc_pick_kind kind;
};

/* With a policy of that name, which has had no update yet. NULL: no policy. */
struct fake_lb *fake_lb_new(const char *policy);
/* Shuts the policy down; asserts that it gave up all subchannels and left no timer. */
void fake_lb_free(struct fake_lb *f);

/* Endpoints of one or more addresses each: "1.1.1.1:1 2.2.2.2:2,2.2.2.2:3"; "*3" behind one gives its weight, "#key"
 * its hash key, "@zone" its locality's zone, "!DRAINING" its health: "1.1.1.1:1*3#a@z". An empty text is an empty list.
 */
struct tc_endpoints *fake_endpoints(const char *text);
/* {"name": list} for priority and weighted_target: pairs of name and text, then NULL. */
struct tc_endpoints *fake_endpoint_tree(const char *name, ...) __attribute__((sentinel));
/* The config that the JSON (quotes may be single) says for the policy, or NULL with the faults' text in *why
 * (tc_free) if why is given. */
struct tc_lb_config *fake_config(struct fake_lb *f, const char *policy, const char *json, char **why);

/* Updates the policy and runs what that caused. Takes over the list and the config. True when the update was accepted.
 */
bool fake_update(struct fake_lb *f, struct tc_endpoints *endpoints, struct tc_lb_config *config, const char *note);
bool fake_update_error(struct fake_lb *f, const struct tc_status *error, struct tc_lb_config *config);

/* Moves all subchannels of the address to the state and runs what that caused; asserts that there is one. */
void fake_set(struct fake_lb *f, const char *addr, enum torc_connectivity state);
void fake_set_failed(struct fake_lb *f, const char *addr, const char *why);
/* The same for f->subchannels.data[i]; not looked for, however many there are. */
void fake_set_at(struct fake_lb *f, size_t i, enum torc_connectivity state);
/* And runs nothing: the policy hears of it in the loop's next turn. */
void fake_queue_at(struct fake_lb *f, size_t i, enum torc_connectivity state);
/* Subchannels of that address that exist now; of any, when NULL. */
unsigned fake_count(const struct fake_lb *f, const char *addr);
/* The state of the address's subchannel; TORC_SHUTDOWN when there is none. */
enum torc_connectivity fake_state(const struct fake_lb *f, const char *addr);

/* The same for one subchannel: of the endpoint that has the address in the locality of that zone. TORC_SHUTDOWN: there
 * is none. */
enum torc_connectivity fake_state_in(const struct fake_lb *f, const char *addr, const char *zone);
void fake_set_in(struct fake_lb *f, const char *addr, const char *zone, enum torc_connectivity state);

/* Picks with f->args and runs what that caused. The text is the address, "QUEUE", "FAIL" or "DROP"; it lives until the
 * next pick. */
const char *fake_pick(struct fake_lb *f);
const char *fake_pick_hash(struct fake_lb *f, uint64_t hash);
/* The text of the status that the last pick failed with. */
const char *fake_pick_error(const struct fake_lb *f);
/* The attempts since the last call, in order: "1.1.1.1:1 2.2.2.2:2 ". */
const char *fake_take_connects(struct fake_lb *f);

#define assert_connects(f, text) assert_string_equal(fake_take_connects(f), text)

#endif
