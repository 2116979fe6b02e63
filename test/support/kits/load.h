/* Calls at a steady rate from a thread of their own, independent of how earlier calls end, and their results. */
#ifndef TC_SUPPORT_KITS_LOAD_H
#define TC_SUPPORT_KITS_LOAD_H

#include <torc/torc.h>

struct kit_load;

struct kit_load_report {
    uint64_t calls, failed;
    uint64_t longest_ms; /* of a call */
    uint64_t stalled_ms; /* the most by which the thread woke too late: a stall of the machine, not of the channel */
    char first[512];     /* code and text of the first failure; "" if none failed */
};

/* Starts calls of "/test.Service/Method" with the header "user: u0", "u1", ... (back to u0 after `keys`). No call waits
 * for ready; the deadline is 60 s. The channel's runtime must have its own thread. */
struct kit_load *kit_load_new(torc_channel *ch, unsigned rps, unsigned keys);
/* Waits until that many calls have been started. */
void kit_load_wait(struct kit_load *l, uint64_t calls);
/* Returns the longest call that ended since the last call of this function, in ms. */
uint64_t kit_load_lap(struct kit_load *l);
/* Stops, waits for all calls, and fills the report. */
void kit_load_free(struct kit_load *l, struct kit_load_report *report);

#endif
