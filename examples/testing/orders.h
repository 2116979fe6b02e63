/* The program that is tested: it asks a shop where an order is. */
#ifndef ORDERS_H
#define ORDERS_H

#include <torc/torc.h>

/* Stores what the shop says of the order, or why there is no answer. Returns a gRPC status. */
int order_find(torc_channel *shop, const char *id, char text[80]);

#endif
