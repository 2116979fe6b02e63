/* torc xds: prints resources as a table, as lines of changes, or as JSON.
 *
 * The table and the lines are for people: states in colour on a terminal, contents indented below their resource,
 * foreign text escaped. A content that cannot be decoded is shown as "(cannot be shown)". JSON is CSDS's ClientConfig,
 * made by the code of CSDS (api/client_status.h).
 *
 * All output goes to standard output. Lists and their resources (xds.h) are borrowed and not changed. */
#include <stdio.h>
#include <time.h>

#include "api/client_status.h"
#include "base/mem.h"
#include "cli.h"
#include "proto/json.h"
#include "proto/unpack.h"
#include "xds.h"

#define NS_PER_S INT64_C(1000000000)

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;

static const char *const states[] = {
    [TC_XDS_REQUESTED] = "REQUESTED", [TC_XDS_DOES_NOT_EXIST] = "DOES_NOT_EXIST", [TC_XDS_ACKED] = "ACKED",
    [TC_XDS_NACKED] = "NACKED",       [TC_XDS_RECEIVED_ERROR] = "RECEIVED_ERROR", [TC_XDS_TIMEOUT] = "TIMEOUT",
};

/* --- text --- */

static const char *state_text(const struct xds_seen *s)
{
    return s->gone ? "UNSUBSCRIBED" : states[s->state];
}

static const char *colour_of(const struct xds_seen *s)
{
    if (!cli_colour())
        return "";
    if (s->gone || s->state == TC_XDS_REQUESTED)
        return "\033[33m";
    return s->state == TC_XDS_ACKED ? "\033[32m" : "\033[31m";
}

static const char *colour_end(void)
{
    return cli_colour() ? "\033[0m" : "";
}

void xds_format_time(int64_t ns, char out[static 32])
{
    time_t seconds = (time_t)(ns / NS_PER_S);
    struct tm tm;
    if (ns == 0 || !localtime_r(&seconds, &tm) || strftime(out, 32, "%H:%M:%S", &tm) == 0) {
        out[0] = '-';
        out[1] = '\0';
        return;
    }
    size_t len = strlen(out);
    snprintf(out + len, 32 - len, ".%03d", (int)(ns % NS_PER_S / 1000000));
}

/* Returns the content as JSON, a new reference; NULL if it cannot be decoded. s->bytes must not be NULL. */
static json_t *content_of(const struct xds_seen *s)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *message = NULL;
    json_t *json = NULL;
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(s->type->type_url));
    tc_arena_init(&arena, 4096, tc_unpack_budget(s->bytes->len));
    if (type && tc_unpack(type, tc_rstr_slice(s->bytes), NULL, &arena, &message, &errors) == 0)
        json = tc_proto_to_json(message, &(struct tc_proto_json_options){.lower_camel = true});
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return json;
}

static void print_content(const struct xds_seen *s)
{
    json_t *json = content_of(s);
    char *text = json ? tc_json_text(json, true) : NULL;
    struct tc_slice rest = tc_slice_str(text ? text : "(cannot be shown)"), line;
    struct tc_buf shown = {0};
    for (bool more = true; tc_slice_split(&rest, &more, '\n', &line); tc_buf_clear(&shown)) {
        cli_append_shown(&shown, line.data, line.len);
        printf("    %s\n", tc_buf_cstr(&shown));
    }
    tc_buf_fini(&shown);
    tc_free(text);
    json_decref(json);
}

static void print_error(const struct xds_seen *s)
{
    if (!s->error)
        return;
    struct tc_buf scratch = {0};
    printf("    error: %s", cli_shown(&scratch, s->error->data));
    if (s->failed_version)
        printf(" (version %s)", cli_shown(&scratch, s->failed_version->data));
    putchar('\n');
    tc_buf_fini(&scratch);
}

void xds_print_all(const xds_list *list)
{
    int type_width = 4, name_width = 4, version_width = 7;
    if (list->len == 0)
        return;
    for (size_t i = 0; i < list->len; i++) {
        const struct xds_seen *s = list->data[i];
        type_width = TC_MAX(type_width, (int)strlen(s->type->short_name));
        name_width = TC_MAX(name_width, (int)TC_MIN(s->name->len, 60));
        version_width = TC_MAX(version_width, (int)TC_MIN(tc_rstr_slice(s->version).len, 24));
    }
    printf("%-14s  %-*s  %-*s  %-*s  UPDATED\n", "STATE", type_width, "TYPE", name_width, "NAME", version_width,
           "VERSION");
    struct tc_buf name = {0}, version = {0};
    for (size_t i = 0; i < list->len; i++) {
        const struct xds_seen *s = list->data[i];
        char when[32];
        xds_format_time(s->updated_ns, when);
        printf("%s%-14s%s  %-*s  %-*s  %-*s  %s\n", colour_of(s), state_text(s), colour_end(), type_width,
               s->type->short_name, name_width, cli_shown(&name, s->name->data), version_width,
               s->version ? cli_shown(&version, s->version->data) : "-", when);
        print_error(s);
    }
    for (size_t i = 0; i < list->len; i++) {
        if (!list->data[i]->bytes)
            continue;
        printf("\n%s %s\n", list->data[i]->type->short_name, cli_shown(&name, list->data[i]->name->data));
        print_content(list->data[i]);
    }
    tc_buf_fini(&name);
    tc_buf_fini(&version);
}

void xds_print_changes(const xds_list *list, int64_t now_ns)
{
    char when[32];
    struct tc_buf scratch = {0};
    xds_format_time(now_ns, when);
    for (size_t i = 0; i < list->len; i++) {
        const struct xds_seen *s = list->data[i];
        printf("%s %s%s%s %s %s", when, colour_of(s), state_text(s), colour_end(), s->type->short_name,
               cli_shown(&scratch, s->name->data));
        if (s->version && !s->gone)
            printf(" version %s", cli_shown(&scratch, s->version->data));
        putchar('\n');
        if (s->gone)
            continue;
        print_error(s);
        if (s->bytes && s->new_bytes)
            print_content(s);
    }
    tc_buf_fini(&scratch);
    cli_flush();
}

/* --- ClientConfig --- */

/* Returns the message in the arena. It borrows the resource's bytes. */
static generic_config *generic_of(const struct xds_seen *s, struct tc_arena *arena)
{
    /* Any code but OK: struct xds_seen has only the error's text, and the message shows no code. */
    struct tc_status error = {TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, s->error};
    struct tc_xds_dump_entry e = {.type = s->type, .name = tc_rstr_slice(s->name)};
    if (!s->gone) {
        e.state = s->state;
        e.version = tc_rstr_slice(s->version);
        e.updated_ns = s->updated_ns;
        e.bytes = s->bytes;
        e.error = s->error ? &error : NULL;
        e.failed_version = tc_rstr_slice(s->failed_version);
        e.failed_ns = s->failed_ns;
    }
    return tc_client_status_resource(arena, &e, false);
}

void xds_print_json(const xds_list *list, const struct tc_xds_bootstrap *bootstrap, const char *target)
{
    struct tc_arena arena;
    tc_arena_init(&arena, 4096, 0);
    client_config *config = tc_client_status_new(&arena, bootstrap, tc_slice_str(target));
    config->n_generic_xds_configs = list->len;
    config->generic_xds_configs = tc_arena_calloc(&arena, list->len, sizeof(config->generic_xds_configs[0]));
    for (size_t i = 0; i < list->len; i++)
        config->generic_xds_configs[i] = generic_of(list->data[i], &arena);
    json_t *json = tc_proto_to_json(&config->base, &(struct tc_proto_json_options){.lower_camel = true});
    char *text = tc_json_text(json, false);
    struct tc_buf line = {0};
    cli_json_line(&line, text);
    tc_buf_append_char(&line, '\n');
    cli_write(tc_buf_slice(&line));
    tc_buf_fini(&line);
    tc_free(text);
    json_decref(json);
    tc_arena_fini(&arena);
}
