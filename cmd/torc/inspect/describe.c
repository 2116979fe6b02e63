/* torc describe: prints a type, service, member or file as .proto text, or a message as JSON to fill in. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli.h"
#include "commands.h"
#include "inspect/inspect.h"

#define NAME "describe"

static const char help[] =
    "usage: torc describe [options] TARGET [SYMBOL]\n"
    "       torc describe [options] --protoset FILE | --proto FILE [SYMBOL]\n\n"
    "Shows what a name stands for as text of a .proto file: a service, a method, a message, an enum, a field, a file.\n"
    "Without SYMBOL it shows every service.\n\n"
    "TARGET  as for torc call\n"
    "SYMBOL  a full name such as shop.Order, shop.Orders/Get or shop/orders.proto\n\n"
    "      --template             JSON of the message, or of the method's request, with every field (of a oneof the\n"
    "                             first), to be filled in\n" SCHEMA_HELP HEADERS_HELP CONNECT_HELP INSPECT_HELP
    "\nExamples:\n"
    "  torc describe 127.0.0.1:50051 grpc.health.v1.Health\n"
    "  torc describe 127.0.0.1:50051 shop.Orders/Get --template\n"
    "  torc describe --protoset shop.pb shop.Order\n";

static const struct option options[] = {
    {"template", no_argument, NULL, INSPECT_TEMPLATE},
    SCHEMA_OPTIONS,
    HEADERS_OPTIONS,
    CONNECT_OPTIONS,
    INSPECT_OPTIONS,
    {NULL, 0, NULL, 0},
};

/* Returns JSON of the message, or of the method's request, for torc_free. Returns NULL if the symbol is neither a
 * message nor a method. */
static char *template_of(const torc_schema *types, const char *symbol)
{
    const torc_schema_method *method = torc_schema_find_method(types, symbol);
    const torc_schema_message *message =
        method ? torc_schema_method_request(method) : torc_schema_find_message(types, symbol);
    return message ? torc_schema_template(message) : NULL;
}

/* Prints what a symbol of the schema stands for. With --template prints the template instead, or with -o json both.
 * Text that is not the `first` has an empty line before it; JSON has none. */
static int show(struct inspect *a, const char *symbol, bool first)
{
    struct tc_buf b = {0};
    torc_error *error = NULL;
    char *template = a->template ? template_of(a->schema.types, symbol) : NULL;
    if (a->template && !template)
        return cli_usage(NAME, "--template: '%s' is neither a message nor a method", symbol);
    char *text = torc_schema_describe(a->schema.types, symbol, &error);
    if (!text) {
        torc_free(template);
        return cli_fail_error(NAME, error);
    }
    if (a->json) {
        tc_buf_append_str(&b, "{\"symbol\":");
        cli_json_string(&b, symbol, strlen(symbol));
        tc_buf_append_str(&b, ",\"proto\":");
        cli_json_string(&b, text, strlen(text));
        if (template) {
            tc_buf_append_str(&b, ",\"template\":");
            cli_json_line(&b, template);
        }
        tc_buf_append_char(&b, '}');
    } else {
        const char *shown = template ? template : text;
        tc_buf_append_str(&b, first ? "" : "\n");
        if (!template) {
            tc_buf_append_str(&b, "// ");
            cli_append_shown(&b, symbol, strlen(symbol));
            tc_buf_append_char(&b, '\n');
        }
        cli_append_lines(&b, shown);
        while (b.len && b.data[b.len - 1] == '\n')
            b.len--;
    }
    inspect_put(&b);
    torc_free(text);
    torc_free(template);
    return 0;
}

static int show_services(struct inspect *a)
{
    struct schema_names names = {0};
    int rc = a->template ? cli_usage(NAME, "--template goes with a SYMBOL") : schema_services(&a->schema, &names);
    for (size_t i = 0; i < names.list.len && rc == 0; i++)
        if ((rc = inspect_need(a, names.list.data[i])) == 0)
            rc = show(a, names.list.data[i], i == 0);
    schema_names_free(&names);
    return rc;
}

/* Returns the symbol as descriptors spell it, for tc_free: shop.Orders.Get for "/shop.Orders/Get". A dot or a slash in
 * front is left out. The name of a file (.proto) keeps its other slashes. */
static char *spelled(const char *symbol)
{
    const char *name = symbol[0] == '.' || symbol[0] == '/' ? symbol + 1 : symbol;
    size_t len = strlen(name);
    char *copy = tc_strdup(name), *slash = strrchr(copy, '/');
    if (slash && !(len > 6 && strcmp(name + len - 6, ".proto") == 0))
        *slash = '.';
    return copy;
}

/* Makes sure that the schema has what `symbol` names. A name that ends in .proto is looked for as a file first. Any
 * other name counts as a file's only if no server is asked. */
static int need(struct inspect *a, const char *symbol)
{
    struct tc_slice given = tc_slice_str(symbol);
    if (tc_slice_ends(given, tc_slice_str(".proto"))) {
        int rc = schema_need_file(&a->schema, symbol);
        if (rc != SCHEMA_ABSENT)
            return rc == SCHEMA_NO_REFLECTION ? inspect_need(a, symbol) : rc;
    } else if (!a->schema.reflect.channel && tc_descriptor_index_file(&a->schema.files, given)) {
        return 0;
    }
    return inspect_need_member(a, symbol);
}

int cmd_describe(int argc, char **argv)
{
    struct inspect a;
    int rc = inspect_open(&a, NAME, argc, argv, options, help);
    if (rc == 0 && a.symbol) {
        char *symbol = spelled(a.symbol);
        if ((rc = need(&a, symbol)) == 0)
            rc = inspect_end(&a, show(&a, symbol, true));
        tc_free(symbol);
    } else if (rc == 0) {
        rc = inspect_end(&a, show_services(&a));
    }
    inspect_close(&a);
    return rc < 0 ? CLI_OK : rc;
}
