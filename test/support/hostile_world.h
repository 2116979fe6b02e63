/* A client of hostile servers, each of which plays a row: the RPC fails with a status that says what was too much, or
 * the connection ends; memory and CPU time stay bounded; and calls to another backend, over the same loop, do not
 * notice. */
#ifndef TC_SUPPORT_HOSTILE_WORLD_H
#define TC_SUPPORT_HOSTILE_WORLD_H

#include "support/hostile_rows.h"

/* Once, before the program has threads: the servers of all these rows, in the clear or over TLS, a good backend, and
 * 100 calls a second to that one. */
void hostile_world_open(const struct hostile_rows *rows, size_t n, bool tls);
void hostile_world_close(void);
/* Calls the servers of these rows, one after the other. Fails the test with all that was not as it should be. Of the
 * names only those that contain $HOSTILE_ONLY, when that is set. */
void hostile_world_play(struct hostile_rows rows);
/* Ends the calls to the good backend: none of them may have failed, or taken long. */
void hostile_world_others(void);

#endif
