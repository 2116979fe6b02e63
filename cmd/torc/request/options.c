/* Reads the options of requests into struct request_args. Headers (-H) and hexadecimal data are decoded here, so that
 * an error in them ends the command before anything connects. JSON is read when its type is known (types.c). */
#include "base/parse.h"
#include "cli.h"
#include "request/request.h"

#define STANDARD_INPUT "standard input"

static int set_data(const char *command, struct request_args *a, int code, const char *value)
{
    if (a->kind != REQUEST_NONE)
        return cli_usage(command, "give one of -d, --data-hex and --data-file, once");
    a->kind = code == REQUEST_DATA_HEX ? REQUEST_HEX : REQUEST_TEXT;
    if (code == 'd' && a->lines && value[0] == '@' && value[1]) {
        a->kind = REQUEST_LINES;
        a->source = value + 1;
        return cli_read_file(command, value + 1, &a->data);
    }
    if (code == 'd') {
        if (strcmp(value, "@") == 0) {
            a->kind = REQUEST_STDIN;
            a->source = STANDARD_INPUT;
        }
        tc_buf_append_str(&a->data, value);
        return 0;
    }
    if (code == REQUEST_DATA_HEX)
        return tc_hex_decode(&a->data, tc_slice_str(value)) == 0
                   ? 0
                   : cli_usage(command, "--data-hex: '%s' is not hexadecimal", value);
    a->source = strcmp(value, "-") == 0 ? STANDARD_INPUT : value;
    int rc = cli_path(command, "--data-file", value);
    return rc ? rc : cli_read_file(command, value, &a->data);
}

int request_option(const char *command, struct request_args *a, int code, const char *value)
{
    switch (code) {
    case 'd':
    case REQUEST_DATA_HEX:
    case REQUEST_DATA_FILE:
        return set_data(command, a, code, value);
    case REQUEST_RAW:
        a->raw = true;
        return 0;
    case REQUEST_EMIT_DEFAULTS:
        a->emit_defaults = true;
        return 0;
    case REQUEST_ALLOW_UNKNOWN:
        a->allow_unknown = true;
        return 0;
    case REQUEST_FORMAT:
        a->format = true;
        a->text = strcmp(value, "text") == 0;
        return a->text || strcmp(value, "json") == 0
                   ? 0
                   : cli_usage(command, "--format: '%s' is neither json nor text", value);
    default:
        return headers_option(&a->headers, code, value) || schema_option(&a->from, code, value) ? 0 : -1;
    }
}

int request_settle(const char *command, struct request_args *a)
{
    int rc;
    if ((rc = headers_finish(command, &a->headers)) != 0 || (rc = schema_args_check(command, &a->from)) != 0)
        return rc;
    if (a->raw && a->format)
        return cli_usage(command, "--raw and --format contradict");
    if (a->kind == REQUEST_STDIN && a->raw)
        a->kind = REQUEST_TEXT; /* the request is the byte '@' */
    else if (a->kind == REQUEST_STDIN)
        tc_buf_clear(&a->data);
    return 0;
}

void request_args_fini(struct request_args *a)
{
    headers_args_fini(&a->headers);
    schema_args_fini(&a->from);
    tc_buf_fini(&a->data);
}

bool request_typed(const struct request_args *a)
{
    return schema_args_offline(&a->from) || a->from.reflect || a->format || a->from.protoset_out ||
           a->from.proto_out_dir;
}

bool request_want_types(const struct request_args *a)
{
    bool text = a->kind == REQUEST_TEXT || a->kind == REQUEST_LINES;
    bool json = a->kind == REQUEST_STDIN || (text && a->data.len && a->data.data[0] == '{');
    return request_typed(a) || (json && !a->raw);
}

bool request_is_typed_data(const struct request_args *a, const torc_schema_method *method)
{
    return method && !a->raw && a->kind != REQUEST_HEX;
}
