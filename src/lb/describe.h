/* What policies say of themselves, as a tree of JSON objects: for `torc call --explain`, and for tests that must tell
 * two states of a tree apart. A policy writes its members, the object around them is written for it. What a policy
 * leaves out must have no part in what it does next, texts of errors excepted. */
#ifndef TC_LB_DESCRIBE_H
#define TC_LB_DESCRIBE_H

#include "base/buf.h"
#include "io/loop.h"
#include "lb/policy.h"

struct tc_describe {
    struct tc_buf out;
    bool follows; /* the next member needs a comma */
};

/* Each writes one member of the open object, or one element of the open array when key is NULL. */
void tc_describe_open(struct tc_describe *d, const char *key, char bracket); /* '{' or '[' */
void tc_describe_close(struct tc_describe *d, char bracket);                 /* '}' or ']' */
void tc_describe_text(struct tc_describe *d, const char *key, struct tc_slice text);
void tc_describe_number(struct tc_describe *d, const char *key, uint64_t number);
void tc_describe_state(struct tc_describe *d, const char *key, enum torc_connectivity state);
/* `true`; nothing when it does not hold. */
void tc_describe_flag(struct tc_describe *d, const char *key, bool holds);
/* Milliseconds until the timer fires; nothing when it does not run. */
void tc_describe_timer(struct tc_describe *d, const char *key, const struct tc_timer *timer);
/* Its addresses, joined by commas. */
void tc_describe_endpoint(struct tc_describe *d, const char *key, const struct tc_endpoint *endpoint);
/* {"policy": "name", ...}; NULL: nothing. */
void tc_describe_policy(struct tc_describe *d, const char *key, const struct tc_lb_policy *policy);
/* The policy in a child slot; one that is getting ready beside it stands in it as "next". */
void tc_describe_child(struct tc_describe *d, const char *key, const struct tc_lb_child *child);

#endif
