/* A load: a thread of the load starts calls at a steady rate, without waiting for earlier calls to end. The results are
 * summed up as the calls end. */
#ifndef TC_SUPPORT_KITS_LOAD_H
#define TC_SUPPORT_KITS_LOAD_H

#include <torc/torc.h>

struct kit_load;

struct kit_load_report {
    uint64_t calls, failed; /* calls that could not be started count as failed */
    uint64_t longest_ms;    /* the duration of the longest call */
    uint64_t stalled_ms;    /* the most by which the thread woke too late: a stall of the machine, not of the channel */
    char first[512];        /* code and text of the first failure; "" if none failed */
};

/* Starts `rps` calls of "/test.Service/Method" a second, with the header "user: u0", "u1", ... (back to u0 after
 * `keys`) and a deadline of 60 s. `rps` and `keys` must not be 0. The channel must outlive the load; its runtime must
 * have its own thread. */
struct kit_load *kit_load_new(torc_channel *ch, unsigned rps, unsigned keys);
/* Waits until that many calls have been started since kit_load_new; the last of them may just be starting. */
void kit_load_wait(struct kit_load *l, uint64_t calls);
/* Waits until that many more calls have been started than before this function was called. */
void kit_load_wait_more(struct kit_load *l, uint64_t calls);
/* Returns the duration of the longest RPC that ended since the last kit_load_lap (the first time: since kit_load_new),
 * in ms; 0 if none ended. */
uint64_t kit_load_lap(struct kit_load *l);
/* Starts no more calls, waits until all have ended, fills the report, and frees the load. */
void kit_load_free(struct kit_load *l, struct kit_load_report *report);

#endif
