/* The program that is tested: it asks a shop where an order is. */
#ifndef ORDERS_H
#define ORDERS_H

#include <torc/torc.h>

/* Asks the shop where an order is. Stores the answer, or the name of the status, in `text`, cut to fit. Returns the
 * gRPC status code. */
int order_find(torc_channel *shop, const char *id, char text[80]);

#endif
