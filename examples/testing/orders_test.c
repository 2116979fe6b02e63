/* A test of orders.c without sockets or sleeps: client and server run on the thread of main, in a simulated world whose
 * time is virtual. Build it with
 *   cc orders.c orders_test.c -o orders_test $(pkg-config --cflags --libs torc-testing) */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <torc/testing.h>

#include "orders.h"

#define SHOP "10.0.0.1:443"

/* A shop that knows order 7. */
static void on_find(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    if (torc_message_size(request) == 1 && memcmp(torc_message_data(request), "7", 1) == 0)
        torc_server_call_reply(call, "on its way", 10);
    else
        torc_server_call_finish(call, TORC_STATUS_NOT_FOUND, "there is no such order", NULL);
}

int main(void)
{
    char text[80];
    torc_error *error = NULL;
    torc_testing *world = torc_testing_new(1, &error);
    if (!world)
        return fprintf(stderr, "%s\n", torc_error_text(error)), 1;
    torc_server *server = torc_server_new(NULL, NULL);
    struct torc_handler find = {TORC_SIZE(torc_handler), .unary = on_find};
    torc_server_add_method(server, "/shop.Orders/Find", &find, NULL);
    torc_server_listen(server, SHOP, torc_credentials_insecure(), NULL, NULL);
    assert(torc_server_start(server, NULL) == 0);
    torc_testing_set_name(world, "shop.example", "10.0.0.1");
    torc_channel *shop = torc_channel_new(NULL, "dns:///shop.example:443", NULL, NULL);

    assert(order_find(shop, "7", text) == TORC_STATUS_OK);
    assert(strcmp(text, "on its way") == 0);
    assert(order_find(shop, "8", text) == TORC_STATUS_NOT_FOUND);
    assert(strcmp(text, "order 8: NOT_FOUND") == 0);

    int64_t before = torc_time_ms();
    torc_testing_set_host(world, SHOP, TORC_TESTING_SILENT); /* the shop's machine is gone */
    assert(order_find(shop, "7", text) == TORC_STATUS_DEADLINE_EXCEEDED);
    assert(torc_time_ms() - before == 30000);

    torc_channel_free(shop);
    torc_server_free(server);
    assert(torc_testing_free(world) == 0);
    puts("OK");
    return 0;
}
