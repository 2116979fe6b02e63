/* torc xds: the xDS client's cache at the last look, and what that look found changed.
 *
 * A look sets the `mark` of each resource that the caches have. A resource in the table with an older mark is gone: it
 * moves from the table to `gone`, and the next look frees it. So each resource is in the table or in `gone`, which own
 * it. Contents are references to the bytes that the client keeps, not copies. xds.h has the types and the thread. */
#include <stdlib.h>

#include "xds.h"
#include "xds/resource/cluster.h"
#include "xds/resource/endpoints.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_config.h"

/* Returns the rank of a type for sorting: LDS, RDS, CDS, EDS, then all other types. */
static int rank(const struct tc_xds_resource_type *type)
{
    static const struct tc_xds_resource_type *const order[] = {&tc_listener_type, &tc_route_config_type,
                                                               &tc_cluster_type, &tc_eds_type};
    int i = 0;
    while (i < (int)TC_ARRAY_LEN(order) && order[i] != type)
        i++;
    return i;
}

static int compare(const void *a, const void *b)
{
    const struct xds_seen *const *x = a, *const *y = b;
    int by_type = rank((*x)->type) - rank((*y)->type);
    return by_type ? by_type : strcmp((*x)->name->data, (*y)->name->data);
}

static void sort(xds_list *list)
{
    if (list->len)
        qsort(list->data, list->len, sizeof(list->data[0]), compare);
}

static void seen_free(struct xds_seen *s)
{
    tc_rstr_unref(s->key);
    tc_rstr_unref(s->name);
    tc_rstr_unref(s->version);
    tc_rstr_unref(s->bytes);
    tc_rstr_unref(s->error);
    tc_rstr_unref(s->failed_version);
    tc_free(s);
}

/* Returns the view's entry of a resource; makes it if there is none, and then sets *added. */
static struct xds_seen *find(struct xds_view *v, const struct tc_xds_dump_entry *e, bool *added)
{
    struct xds_seen *s = NULL;
    tc_buf_clear(&v->scratch);
    tc_buf_printf(&v->scratch, "%s ", e->type->type_url);
    tc_buf_append_slice(&v->scratch, e->name);
    HASH_FIND(hh, v->table, v->scratch.data, v->scratch.len, s);
    *added = s == NULL;
    if (!s) {
        s = TC_NEW(struct xds_seen);
        s->key = tc_rstr_new(v->scratch.data, v->scratch.len);
        s->type = e->type;
        s->name = tc_rstr_new(e->name.data, e->name.len);
        HASH_ADD_KEYPTR(hh, v->table, s->key->data, s->key->len, s);
    }
    return s;
}

/* Makes *text a copy of `now`, or NULL if `now` is empty. Returns whether the text changed. */
static bool set_text(struct tc_rstr **text, struct tc_slice now)
{
    if (tc_slice_eq(tc_rstr_slice(*text), now))
        return false;
    tc_rstr_unref(*text);
    *text = now.len ? tc_rstr_new(now.data, now.len) : NULL;
    return true;
}

/* For tc_xds_client_dump. arg: the view. */
static void on_entry(void *arg, const struct tc_xds_dump_entry *e)
{
    struct xds_view *v = arg;
    bool changed;
    struct xds_seen *s = find(v, e, &changed);
    s->mark = v->mark;
    v->pending += e->state == TC_XDS_REQUESTED;
    /* A change of updated_ns alone does not count: a new stream sends resources again that have not changed. */
    changed |= s->state != e->state || s->failed_ns != e->failed_ns;
    s->state = e->state;
    s->updated_ns = e->updated_ns;
    s->failed_ns = e->failed_ns;
    changed |= set_text(&s->version, e->version);
    changed |= set_text(&s->failed_version, e->failed_version);
    changed |= set_text(&s->error, e->error ? tc_rstr_slice(e->error->text) : tc_slice_of(NULL, 0));
    s->new_bytes = !tc_rstr_eq(s->bytes, e->bytes) || (!s->bytes && e->bytes);
    if (s->bytes != e->bytes) {
        tc_rstr_unref(s->bytes);
        s->bytes = tc_rstr_ref((struct tc_rstr *)(uintptr_t)e->bytes);
    }
    if (changed || s->new_bytes)
        *tc_vec_push(&v->changed) = s;
}

static void drop_gone(struct xds_view *v)
{
    for (size_t i = 0; i < v->gone.len; i++)
        seen_free(v->gone.data[i]);
    v->gone.len = 0;
}

/* For tc_xds_client_pool_each. arg: the view. */
static void on_client(void *arg, const struct tc_xds_client *c, struct tc_slice scope)
{
    (void)scope;
    tc_xds_client_dump(c, on_entry, arg);
}

void xds_view_look(struct xds_view *v, const struct tc_xds_client_pool *pool)
{
    drop_gone(v);
    v->changed.len = 0;
    v->pending = 0;
    v->mark++;
    tc_xds_client_pool_each(pool, on_client, v);
    struct xds_seen *s, *next;
    HASH_ITER(hh, v->table, s, next)
    {
        if (s->mark == v->mark)
            continue;
        HASH_DELETE(hh, v->table, s);
        s->gone = true;
        *tc_vec_push(&v->gone) = s;
        *tc_vec_push(&v->changed) = s;
    }
    sort(&v->changed);
}

void xds_view_all(const struct xds_view *v, xds_list *out)
{
    for (struct xds_seen *s = v->table; s; s = s->hh.next)
        *tc_vec_push(out) = s;
    sort(out);
}

void xds_view_fini(struct xds_view *v)
{
    struct xds_seen *s, *next;
    HASH_ITER(hh, v->table, s, next)
    {
        HASH_DELETE(hh, v->table, s);
        seen_free(s);
    }
    drop_gone(v);
    tc_vec_fini(&v->gone);
    tc_vec_fini(&v->changed);
    tc_buf_fini(&v->scratch);
}
