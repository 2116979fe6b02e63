/* torc list: the services of a server or of files, or the methods of one service. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "inspect/inspect.h"

#define NAME "list"

static const char help[] =
    "usage: torc list [options] TARGET [SERVICE]\n"
    "       torc list [options] --protoset FILE | --proto FILE [SERVICE]\n\n"
    "Shows the services that a server has (by its reflection) or that files define, or the methods of one of them.\n\n"
    "TARGET  as for torc call\n\n" SCHEMA_HELP HEADERS_HELP CONNECT_HELP INSPECT_HELP "\nExamples:\n"
    "  torc list 127.0.0.1:50051\n"
    "  torc list 127.0.0.1:50051 grpc.health.v1.Health\n"
    "  torc list --proto shop.proto shop.Orders\n";

static const struct option options[] = {
    SCHEMA_OPTIONS, HEADERS_OPTIONS, CONNECT_OPTIONS, INSPECT_OPTIONS, {NULL, 0, NULL, 0},
};

static int list_services(struct inspect *a)
{
    struct schema_names names = {0};
    struct tc_buf b = {0};
    int rc = schema_services(&a->schema, &names);
    for (size_t i = 0; i < names.list.len && rc == 0; i++) {
        const char *name = names.list.data[i];
        if (!a->json) {
            cli_append_shown(&b, name, strlen(name));
            tc_buf_append_char(&b, '\n');
            continue;
        }
        tc_buf_append_str(&b, i ? "," : "{\"services\":[");
        cli_json_string(&b, name, strlen(name));
    }
    if (a->json && rc == 0) {
        tc_buf_append_str(&b, names.list.len ? "]}" : "{\"services\":[]}");
        inspect_put(&b);
    }
    fwrite(b.data ? b.data : "", 1, b.len, stdout);
    tc_buf_fini(&b);
    /* inspect_end writes the files that the schema has. So the schema must get the files of all services. */
    for (size_t i = 0; i < names.list.len && rc == 0 && (a->from.protoset_out || a->from.proto_out_dir); i++)
        rc = inspect_need(a, names.list.data[i]);
    schema_names_free(&names);
    return rc;
}

static void append_member(struct tc_buf *b, const char *key, const char *value)
{
    tc_buf_printf(b, ",\"%s\":", key);
    cli_json_string(b, value, strlen(value));
}

static int list_methods(struct inspect *a, const char *name)
{
    const torc_schema_method *m;
    struct tc_buf b = {0};
    int rc = schema_need(&a->schema, name);
    if (rc == SCHEMA_NO_REFLECTION)
        return cli_fail(NAME, "%s", tc_buf_cstr(&a->schema.reflect.why));
    if (rc != 0)
        return rc == SCHEMA_ABSENT ? schema_no_service(&a->schema, name, "") : rc;
    const torc_schema_service *service = torc_schema_find_service(a->schema.types, name);
    if (!service)
        return cli_fail(NAME, "'" TC_SHOWN "' is not a service; torc describe shows it", TC_SHOW(name));
    if (a->json) {
        tc_buf_append_str(&b, "{\"service\":");
        cli_json_string(&b, torc_schema_service_name(service), strlen(torc_schema_service_name(service)));
        tc_buf_append_str(&b, ",\"methods\":[");
    }
    for (size_t i = 0; (m = torc_schema_method_at(service, i)); i++) {
        const char *path = torc_schema_method_path(m) + 1, *method = torc_schema_method_name(m);
        if (!a->json) {
            tc_buf_printf(&b, "%s\n", path);
            continue;
        }
        tc_buf_append_str(&b, i ? ",{\"name\":" : "{\"name\":");
        cli_json_string(&b, method, strlen(method));
        append_member(&b, "path", path);
        append_member(&b, "request", torc_schema_message_name(torc_schema_method_request(m)));
        append_member(&b, "response", torc_schema_message_name(torc_schema_method_response(m)));
        tc_buf_printf(&b, ",\"client_streaming\":%s,\"server_streaming\":%s}",
                      torc_schema_method_client_streams(m) ? "true" : "false",
                      torc_schema_method_server_streams(m) ? "true" : "false");
    }
    if (a->json) {
        tc_buf_append_str(&b, "]}");
        inspect_put(&b);
    }
    fwrite(b.data ? b.data : "", 1, b.len, stdout);
    tc_buf_fini(&b);
    return 0;
}

int cmd_list(int argc, char **argv)
{
    struct inspect a;
    int rc = inspect_open(&a, NAME, argc, argv, options, help);
    if (rc == 0)
        rc = inspect_end(&a, a.symbol ? list_methods(&a, a.symbol) : list_services(&a));
    inspect_close(&a);
    return rc < 0 ? CLI_OK : rc;
}
