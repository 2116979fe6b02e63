/* Calls at a steady rate from a thread of their own, whatever becomes of the earlier ones, and what came of them. */
#ifndef TC_SUPPORT_LOAD_KIT_H
#define TC_SUPPORT_LOAD_KIT_H

#include <torc/torc.h>

struct load_kit;

struct load_report {
    uint64_t calls, failed;
    uint64_t longest_ms; /* of a call */
    char first[512];     /* the first failure: code and text; "": none */
};

/* Starts calls of "/test.Service/Method" with the header "user: u0", "u1", ... (then again from u0 after `keys`); none
 * waits for ready, each has a deadline of 10 s. The runtime has a thread of its own. */
struct load_kit *load_kit_new(torc_channel *ch, unsigned rps, unsigned keys);
/* Until so many calls have been started. */
void load_kit_wait(struct load_kit *l, uint64_t calls);
/* How long the longest call took of those that ended since the last time, in ms. */
uint64_t load_kit_lap(struct load_kit *l);
/* Ends it and waits for all calls. */
void load_kit_free(struct load_kit *l, struct load_report *report);

#endif
