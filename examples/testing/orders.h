/* The program that is tested: it asks a shop where an order is. */
#ifndef ORDERS_H
#define ORDERS_H

#include <torc/torc.h>

/* Asks the shop where order `id` is, and waits up to 30 s for the answer. Stores the answer in `text`, cut to fit; if
 * the RPC fails, "order ID: NAME OF THE STATUS". Returns the gRPC status code. */
int order_find(torc_channel *shop, const char *id, char text[80]);

#endif
