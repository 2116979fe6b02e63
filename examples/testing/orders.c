#include "orders.h"

#include <stdio.h>
#include <string.h>

int order_find(torc_channel *shop, const char *id, char text[80])
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
    torc_result *r = torc_unary(shop, "shop.Orders/Find", id, strlen(id), &o);
    const torc_message *m = torc_result_response(r);
    int code = torc_result_code(r);
    if (m)
        snprintf(text, 80, "%.*s", (int)torc_message_size(m), (const char *)torc_message_data(m));
    else
        snprintf(text, 80, "order %s: %s", id, torc_status_code_name(code));
    torc_result_free(r);
    return code;
}
