/* Call objects with their arenas, used again and again: a steady stream of calls allocates nothing. Any thread. */
#ifndef TC_CHANNEL_CALL_POOL_H
#define TC_CHANNEL_CALL_POOL_H

struct tc_call_pool;
struct torc_call;

struct tc_call_pool *tc_call_pool_new(void);
/* Frees what lies in it. */
void tc_call_pool_free(struct tc_call_pool *p);
/* A call, zeroed but for its arena (which is empty) and its lock. */
struct torc_call *tc_call_pool_get(struct tc_call_pool *p);
void tc_call_pool_put(struct tc_call_pool *p, struct torc_call *call);

#endif
