/* The names of the world, behind tc_dns. The thread of the world. */
#ifndef TC_TESTING_NAMES_H
#define TC_TESTING_NAMES_H

#include "io/addr.h"

/* The addresses of one name, at most. */
enum { TC_NAME_ADDRESSES = 64 };

/* Stores the addresses of a name that is not a literal, each with the port. Returns how many there are; 0: the name is
 * not found. The caller ends each with tc_addr_fini. */
typedef size_t (*tc_names_fn)(const char *host, uint16_t port, struct tc_addr addrs[TC_NAME_ADDRESSES]);

/* Look-ups ask `fn` from now on (NULL: no name is found), and take a random time below delay_ms; 0: no time. */
void tc_names_look_up_in(tc_names_fn fn, uint64_t delay_ms);

#endif
