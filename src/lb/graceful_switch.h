/* A place for a child policy whose factory may change (gRPC calls this a graceful switch, or a child policy handler).
 *
 * An update whose config belongs to another factory makes a second policy beside the first. The first policy serves
 * until the second one reports a state other than CONNECTING; then the first one is shut down. Loop thread only.
 *
 * Sole owner: the parent policy, or the channel for the root policy. The owner ends it with
 * tc_graceful_switch_shutdown. */
#ifndef TC_LB_GRACEFUL_SWITCH_H
#define TC_LB_GRACEFUL_SWITCH_H

#include "lb/policy.h"

struct tc_graceful_switch;

/* Returns a graceful switch without a policy: the first update makes one. Reports of the serving policy go to `helper`:
 * the child's helper, which belongs to the parent, or the parent's own helper where the parent changes no report.
 * `helper` must stay valid until the shutdown. */
struct tc_graceful_switch *tc_graceful_switch_new(struct tc_lb_helper *helper);
/* Updates the newest policy, after making it if need be. Returns the policy's answer; the caller ends the status. If a
 * report from the new policy's create() made the parent shut `g` down, returns OK without an update. Not called after
 * tc_graceful_switch_shutdown. */
struct tc_status tc_graceful_switch_update(struct tc_graceful_switch *g, const struct tc_lb_update *update);
/* Makes the next update create a new policy although the factory is the same: for changes that an update cannot
 * express, such as other credentials for the policy's subchannels. */
void tc_graceful_switch_renew(struct tc_graceful_switch *g);
/* exit_idle goes to the newest policy, reset_backoff to each policy. Before the first update both do nothing. */
void tc_graceful_switch_exit_idle(struct tc_graceful_switch *g);
void tc_graceful_switch_reset_backoff(struct tc_graceful_switch *g);
/* Writes the serving policy, and in its object the newer one as "next". Writes nothing if `g` is NULL or has no
 * policy. */
void tc_graceful_switch_describe(const struct tc_graceful_switch *g, struct tc_describe *d, const char *key);
/* Shuts the policies down; the memory of `g` goes by a task. The helper gets no report afterwards. May be called again
 * before that task runs. */
void tc_graceful_switch_shutdown(struct tc_graceful_switch *g);

#endif
