/* A fake channel for LB policies on a loop with virtual time. It records the policy's reports, and makes subchannels
 * whose states the test sets by address. */
#ifndef TC_SUPPORT_FAKES_LB_H
#define TC_SUPPORT_FAKES_LB_H

#include "base/vec.h"
#include "lb/connect_turns.h"
#include "lb/policy.h"
#include "lb/side_stream.h"

struct fake_sc;

struct fake_lb {
    struct tc_lb_helper helper;
    struct tc_lb_env env;
    struct tc_connect_turns turns;
    struct tc_loop *loop;
    struct tc_lb_registry *registry;
    struct tc_lb_policy *policy; /* fake_lb_free shuts it down; NULL: none. A test may set one */
    /* The last report, and the number of reports. */
    enum torc_connectivity state; /* TORC_CONNECTIVITY_SHUTDOWN: no report yet */
    struct tc_status status;
    struct tc_picker *picker; /* owned; NULL: no report yet */
    unsigned reports;
    struct tc_buf history;                /* states in order, repeats joined: "CONNECTING READY " */
    struct tc_buf connects;               /* addresses in the order of attempts: "1.1.1.1:1 2.2.2.2:2 " */
    unsigned reresolutions;               /* how often the policy asked for one */
    int health;                           /* the code of a new subchannel's health */
    struct tc_link side_watches;          /* struct tc_side_watch, in the order of their starts */
    TC_VEC(struct fake_sc *) subchannels; /* that exist now */
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_pick_args args; /* arguments of the next pick */
    struct tc_pick pick;      /* result of the last pick; its subchannel may be gone */
    enum tc_pick_kind kind;   /* of the last pick */
};

/* Makes a fake channel with a policy of that name, which has had no update; NULL: without a policy. Free it with
 * fake_lb_free. */
struct fake_lb *fake_lb_new(const char *policy);
/* Shuts the policy down, twice, and frees the fake. Asserts that the policy released all subchannels, ended all watches
 * of side streams, stopped all timers and reported nothing from its shutdown on, and that its last picker no longer
 * gives a subchannel. */
void fake_lb_free(struct fake_lb *f);

/* Makes a list of endpoints: "1.1.1.1:1 2.2.2.2:2,2.2.2.2:3" is two endpoints, the second with two addresses. Suffixes
 * of an endpoint: "*3" weight, "#key" hash key, "@zone" locality's zone, "!DRAINING" or "!HEALTHY" health (any other:
 * unknown), as in "1.1.1.1:1*3#a@z". Empty text: an empty list. Returns one reference, which the caller owns. */
struct tc_endpoints *fake_lb_endpoints(const char *text);
/* Makes a tree {"name": list} for priority and weighted_target from pairs of name and text, ended by NULL. Returns one
 * reference, which the caller owns. */
struct tc_endpoints *fake_lb_endpoint_tree(const char *name, ...) __attribute__((sentinel));
/* Parses the policy's config from JSON, where ' may stand for ". Returns one reference, with *why NULL; on failure
 * NULL, with the errors in *why for tc_free. `why` may be NULL. */
struct tc_lb_config *fake_lb_config(struct fake_lb *f, const char *policy, const char *json, char **why);

/* Update the policy, with a list of endpoints or with the resolver's error (borrowed), and run the loop. Take ownership
 * of list and config, which must not be NULL. note: the resolution note; NULL: none. Return true if the update was
 * accepted. */
bool fake_lb_update(struct fake_lb *f, struct tc_endpoints *endpoints, struct tc_lb_config *config, const char *note);
bool fake_lb_update_error(struct fake_lb *f, const struct tc_status *error, struct tc_lb_config *config);

/* Set all subchannels of the address to the state (fake_lb_set_failed: to TRANSIENT_FAILURE for this reason) and run
 * the loop. Assert that there is at least one. */
void fake_lb_set(struct fake_lb *f, const char *addr, enum torc_connectivity state);
void fake_lb_set_failed(struct fake_lb *f, const char *addr, const char *why);
/* Sets f->subchannels.data[i], without a search, and runs the loop. */
void fake_lb_set_at(struct fake_lb *f, size_t i, enum torc_connectivity state);
/* Sets f->subchannels.data[i] without running the loop: the policy is told when the loop runs. */
void fake_lb_queue_at(struct fake_lb *f, size_t i, enum torc_connectivity state);
/* Sets the health of all subchannels of the address, calls their watchers at once (with a real channel the loop calls
 * them), and runs the loop. */
void fake_lb_set_health(struct fake_lb *f, const char *addr, int code, const char *text);
/* Returns whether the health of the address's oldest subchannel was ever watched. */
bool fake_lb_health_watched(const struct fake_lb *f, const char *addr);
/* Returns the number of existing subchannels with that address, or with any address if NULL. */
unsigned fake_lb_count(const struct fake_lb *f, const char *addr);
/* Returns the oldest watch of a side stream on a subchannel of the address; NULL if there is none. The watch is the
 * policy's. */
struct tc_side_watch *fake_lb_side_watch(const struct fake_lb *f, const char *addr);
/* Returns the state of the address's oldest subchannel, as last set, perhaps not delivered yet;
 * TORC_CONNECTIVITY_SHUTDOWN if there is none. */
enum torc_connectivity fake_lb_state(const struct fake_lb *f, const char *addr);

/* fake_lb_state_in returns the state of the oldest subchannel of the address in the locality of that zone;
 * TORC_CONNECTIVITY_SHUTDOWN if there is none. fake_lb_set_in sets the state of that subchannel, which must exist, and
 * runs the loop. Every endpoint with that address must have a locality. */
enum torc_connectivity fake_lb_state_in(const struct fake_lb *f, const char *addr, const char *zone);
void fake_lb_set_in(struct fake_lb *f, const char *addr, const char *zone, enum torc_connectivity state);

/* Pick with f->args (fake_lb_pick_hash: with this hash, which stays in f->args) and run the loop. Return the address,
 * "QUEUE", "FAIL" or "DROP", valid until fake_lb_free. */
const char *fake_lb_pick(struct fake_lb *f);
const char *fake_lb_pick_hash(struct fake_lb *f, uint64_t hash);
/* Returns the status message that the last pick failed with, borrowed until the next pick. */
const char *fake_lb_pick_error(const struct fake_lb *f);
/* Returns the connection attempts since the last call of this function, in order: "1.1.1.1:1 2.2.2.2:2 ". Valid until
 * fake_lb_free. */
const char *fake_lb_take_connects(struct fake_lb *f);

/* For files that include support/cmocka.h. */
#define assert_connects(f, text) assert_string_equal(fake_lb_take_connects(f), text)

#endif
