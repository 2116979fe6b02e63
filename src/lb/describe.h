/* The state of a tree of policies as JSON, for torc_channel_describe and torc_explain, and for tests.
 *
 * A policy writes the members of its object; the caller writes the braces around them. The model test (test/model)
 * tells the states of policies apart by this JSON. So a policy in that test must write everything that decides what the
 * policy does next, except texts of errors. Loop thread only. */
#ifndef TC_LB_DESCRIBE_H
#define TC_LB_DESCRIBE_H

#include "base/buf.h"
#include "io/loop.h"
#include "lb/policy.h"

/* Zero-initialised by the caller. */
struct tc_describe {
    struct tc_buf out; /* the JSON so far; the caller frees it (tc_buf_fini) */
    bool follows;      /* the next member needs a comma */
};

/* Each of these functions but tc_describe_close writes one member of the open object; with a NULL key, one element of
 * the open array, or the outermost value. Texts are escaped, keys are not. */
void tc_describe_open(struct tc_describe *d, const char *key, char bracket); /* '{' or '[' */
void tc_describe_close(struct tc_describe *d, char bracket);                 /* '}' or ']' */
void tc_describe_text(struct tc_describe *d, const char *key, struct tc_slice text);
void tc_describe_number(struct tc_describe *d, const char *key, uint64_t number);
void tc_describe_state(struct tc_describe *d, const char *key, enum torc_connectivity state);
/* Writes `true` if `holds` is true, otherwise nothing. */
void tc_describe_flag(struct tc_describe *d, const char *key, bool holds);
/* Writes the milliseconds until the timer fires; nothing when it does not run. The timer must be initialised. */
void tc_describe_timer(struct tc_describe *d, const char *key, const struct tc_timer *timer);
/* Writes the addresses, joined by commas. */
void tc_describe_endpoint(struct tc_describe *d, const char *key, const struct tc_endpoint *endpoint);
/* Writes an object: the policy's name as "policy", and what the policy's describe writes, unless the policy has no
 * describe or was shut down. Writes nothing for a NULL policy. */
void tc_describe_policy(struct tc_describe *d, const char *key, const struct tc_lb_policy *policy);

#endif
