/* Request metadata from the command line.
 *
 * headers_option only collects the options, because an --expand-headers behind them counts too. headers_finish reads
 * them, and rejects once what the library would reject on every call. */
#include "headers.h"

#include <stdlib.h>

#include "base/headers.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli.h"

bool headers_option(struct headers_args *a, int code, const char *value)
{
    if (code == HEADERS_EXPAND)
        a->expand = true;
    else if (code == 'H' || code == HEADERS_RPC || code == HEADERS_REFLECT)
        *tc_vec_push(&a->given) = (struct header_text){code, value};
    else
        return false;
    return true;
}

/* Appends the text, each ${NAME} replaced by the value of that variable of the environment. If a variable is not set,
 * prints the error and returns CLI_USAGE; else returns 0. */
static int expand(const char *command, const char *text, struct tc_buf *out)
{
    const char *at, *end;
    for (; (at = strstr(text, "${")) && (end = strchr(at, '}')); text = end + 1) {
        char *name = tc_slice_dup(tc_slice_of(at + 2, (size_t)(end - at) - 2));
        const char *value = getenv(name);
        int rc = value ? 0 : cli_usage(command, "--expand-headers: the environment has no variable '%s'", name);
        tc_free(name);
        if (rc)
            return rc;
        tc_buf_append(out, text, (size_t)(at - text));
        tc_buf_append_str(out, value);
    }
    tc_buf_append_str(out, text);
    return 0;
}

/* Adds "name: value" to a list. `all`: as for placeholders_parse. Returns 0, or CLI_USAGE with the error printed; the
 * list may have an unfinished header then. */
static int add(const char *command, struct header_list *list, const char *option, const char *text, bool all)
{
    struct tc_slice s = tc_slice_str(text);
    ptrdiff_t colon = tc_slice_find(s, tc_slice_str(":"));
    if (colon <= 0)
        return cli_usage(command, "%s: '%s' does not have the form 'name: value'", option, text);
    struct tc_slice name = tc_slice_trim(tc_slice_of(s.data, (size_t)colon));
    struct tc_slice value = tc_slice_trim(tc_slice_of(s.data + colon + 1, s.len - (size_t)colon - 1));
    struct header *h = tc_vec_push(&list->list);
    *h = (struct header){.name = tc_slice_dup(name)};
    for (char *p = h->name; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    if (!tc_header_is_binary(tc_slice_str(h->name))) {
        tc_buf_append_slice(&h->value, value);
        int rc = placeholders_parse(command, option, tc_buf_slice(&h->value), all, &h->parts);
        list->differ |= h->parts.any;
        if (rc != 0)
            return rc;
    } else if (tc_base64_decode(&h->value, value) != 0) {
        return cli_usage(command, "%s: the value of '%s' is not base64", option, h->name);
    }
    torc_metadata *probe = torc_metadata_new();
    int rc = torc_metadata_add(probe, h->name, h->value.data ? h->value.data : "", h->value.len);
    torc_metadata_free(probe);
    if (rc != 0)
        return cli_usage(command,
                         "%s: '%s' is not allowed as metadata (reserved name, or characters outside printable ASCII)",
                         option, text);
    return 0;
}

int headers_finish(const char *command, struct headers_args *a)
{
    int rc = 0;
    for (size_t i = 0; i < a->given.len && rc == 0; i++) {
        int code = a->given.data[i].code;
        const char *option = code == 'H' ? "-H" : code == HEADERS_RPC ? "--rpc-header" : "--reflect-header";
        struct tc_buf text = {0};
        if (a->expand)
            rc = expand(command, a->given.data[i].text, &text);
        else
            tc_buf_append_str(&text, a->given.data[i].text);
        if (rc == 0 && code != HEADERS_REFLECT)
            rc = add(command, &a->rpc, option, tc_buf_cstr(&text), a->all_placeholders);
        if (rc == 0 && code != HEADERS_RPC)
            rc = add(command, &a->reflect, option, tc_buf_cstr(&text), a->all_placeholders);
        tc_buf_fini(&text);
    }
    return rc;
}

torc_metadata *headers_make(const struct header_list *list, uint64_t i, struct tc_rng *rng)
{
    torc_metadata *md = list->list.len ? torc_metadata_new() : NULL;
    for (size_t k = 0; k < list->list.len; k++) {
        const struct header *h = &list->list.data[k];
        struct tc_buf value = {0};
        if (h->parts.any)
            placeholders_append(&h->parts, i, rng, &value);
        else
            tc_buf_append_slice(&value, tc_buf_slice(&h->value));
        torc_metadata_add(md, h->name, tc_buf_cstr(&value), value.len);
        tc_buf_fini(&value);
    }
    return md;
}

static void list_fini(struct header_list *list)
{
    for (size_t i = 0; i < list->list.len; i++) {
        tc_free(list->list.data[i].name);
        tc_buf_fini(&list->list.data[i].value);
        placeholders_fini(&list->list.data[i].parts);
    }
    tc_vec_fini(&list->list);
}

void headers_args_fini(struct headers_args *a)
{
    list_fini(&a->rpc);
    list_fini(&a->reflect);
    tc_vec_fini(&a->given);
}
