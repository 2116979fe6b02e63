/* The list of a channel's or a server's interceptors: read once, sorted into a row for each hook, released with its
 * owner. Rows point into the list: the row of a hook holds only the interceptors that have the hook. */
#include "channel/interceptors.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/options.h"

enum { MAX_INTERCEPTORS = 64, STATE_ALIGN = 16 };

static bool has_hook(const struct torc_interceptor *app, enum tc_hook hook)
{
    const bool has[TC_HOOKS] = {
        [TC_HOOK_START] = app->on_start != NULL,     [TC_HOOK_ATTEMPT] = app->on_attempt != NULL,
        [TC_HOOK_MESSAGE] = app->on_message != NULL, [TC_HOOK_STATUS] = app->on_status != NULL,
        [TC_HOOK_PICK] = app->on_pick != NULL,       [TC_HOOK_WIRE] = app->on_wire != NULL,
        [TC_HOOK_END] = app->on_end != NULL,
    };
    return has[hook];
}

/* Copies interceptor i. Returns false with an error if it is malformed. */
static bool interceptor_read(struct tc_interceptors *l, uint32_t i, const struct torc_interceptor *given,
                             torc_error **error)
{
    struct tc_interceptor *it = &l->list[i];
    char title[sizeof("interceptors[4294967295]")];
    snprintf(title, sizeof(title), "interceptors[%u]", (unsigned)i);
    struct tc_options_struct fields = tc_options_structs[TC_OPTIONS_INTERCEPTOR];
    fields.title = title;
    if (!tc_sized_read(&it->app, sizeof(it->app), given, title, fields.tag, error))
        return false;
    for (size_t k = 0; k < fields.n_fields; k++)
        if (!tc_option_check(&fields, &fields.fields[k], &it->app, error))
            return false;
    it->index = i;
    it->state_at = l->state_bytes;
    l->state_bytes += ((size_t)it->app.state_size + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
    it->app.name = tc_strdup(it->app.name ? it->app.name : title);
    l->n = i + 1;
    return true;
}

static void row_fill(struct tc_interceptors *l, enum tc_hook hook)
{
    struct tc_hook_row *row = &l->rows[hook];
    row->at = tc_calloc(l->n, sizeof(*row->at));
    for (uint32_t i = 0; i < l->n; i++)
        if (has_hook(&l->list[i].app, hook))
            row->at[row->n++] = &l->list[i];
}

static void list_destroy(struct tc_interceptors *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        tc_free((char *)(uintptr_t)l->list[i].app.name);
    for (int hook = 0; hook < TC_HOOKS; hook++)
        tc_free(l->rows[hook].at);
    tc_free(l);
}

struct tc_interceptors *tc_interceptors_new(const struct torc_interceptor *const *list, torc_error **error)
{
    uint32_t n = 0;
    while (list[n] && n <= MAX_INTERCEPTORS)
        n++;
    if (n > MAX_INTERCEPTORS) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "options: interceptors: are more than %d", MAX_INTERCEPTORS);
        return NULL;
    }
    struct tc_interceptors *l = tc_calloc(1, sizeof(*l) + n * sizeof(l->list[0]));
    for (uint32_t i = 0; i < n; i++)
        if (!interceptor_read(l, i, list[i], error)) {
            list_destroy(l);
            return NULL;
        }
    for (int hook = 0; hook < TC_HOOKS; hook++)
        row_fill(l, (enum tc_hook)hook);
    return l;
}

void tc_interceptors_free(struct tc_interceptors *l)
{
    if (!l)
        return;
    for (uint32_t i = l->n; i-- > 0;)
        if (l->list[i].app.release)
            l->list[i].app.release(l->list[i].app.arg);
    list_destroy(l);
}
