/* Options by name, over the table of base/options.c. torc/options.h has the contract.
 *
 * A torc_options holds the struct itself, which torc_options_data returns, and copies of the texts that the struct
 * points at. A number or a switch is checked when it is set, as the function that takes the struct checks it
 * (tc_option_check); a value that is refused leaves the struct as it was. Texts and pointers are checked only by that
 * function. What a pointer points at stays the application's. The application owns the object; one thread at a time. */
#include <torc/options.h>
#include <torc/size.h>

#include "base/buf.h"
#include "base/common.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parse.h"

/* A struct with more bytes or fields has no object. */
enum { MAX_BYTES = 512, MAX_FIELDS = 64 };

struct torc_options {
    const struct tc_options_struct *of;
    char *texts[MAX_FIELDS]; /* owned, by the field's number; NULL: none */
    union {
        uint64_t size;
        unsigned char bytes[MAX_BYTES];
    } data;
};

torc_options *torc_options_new(const char *kind, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    for (size_t i = 0; kind && i < TC_OPTIONS_KINDS; i++) {
        const struct tc_options_struct *s = &tc_options_structs[i];
        if (strcmp(s->tag, kind) != 0 || s->size > MAX_BYTES || s->n_fields > MAX_FIELDS)
            continue;
        torc_options *o = TC_NEW(torc_options);
        o->of = s;
        o->data.size = s->size;
        return o;
    }
    tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "kind: \"" TC_SHOWN "\" is not an options struct",
                 TC_SHOW(kind ? kind : ""));
    return NULL;
}

/* Returns NULL with an error if there is no such field, or `o` or `name` is NULL. */
static const struct tc_option *field_find(const torc_options *o, const char *name, torc_error **error)
{
    for (size_t i = 0; o && name && i < o->of->n_fields; i++)
        if (strcmp(o->of->fields[i].name, name) == 0)
            return &o->of->fields[i];
    if (!o || !name)
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: is NULL", o ? "name" : "options");
    else
        tc_error_set(error, TORC_ENOTFOUND, TORC_LAYER_API, "%s: \"" TC_SHOWN "\" is not a field of struct %s",
                     o->of->title, TC_SHOW(name), o->of->tag);
    return NULL;
}

static bool integer_parse(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t value;
    if (tc_parse_u64(tc_slice_str(text + negative), INT64_MAX, &value) != 0)
        return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* Writes the value that the text stands for. Returns false if the text is malformed for the type. */
static bool value_parse(enum tc_option_type type, const char *text, void *at)
{
    static const struct {
        const char *text;
        int32_t value;
    } switches[] = {{"on", TORC_ON}, {"off", TORC_OFF}, {"default", 0}};
    if (type == TC_OPTION_INTEGER)
        return integer_parse(text, at);
    if (type == TC_OPTION_NUMBER)
        return tc_parse_double(tc_slice_str(text), at) == 0;
    for (size_t i = 0; i < TC_ARRAY_LEN(switches); i++)
        if (strcmp(text, switches[i].text) == 0) {
            *(int32_t *)at = switches[i].value;
            return true;
        }
    return false;
}

/* Sets the field, one of o->of, from the text (NULL: the default). Returns false with an error, and the field keeps its
 * value. */
static bool field_set(torc_options *o, const struct tc_option *f, const char *text, torc_error **error)
{
    static const char *const wanted[] = {[TC_OPTION_INTEGER] = "a decimal number",
                                         [TC_OPTION_SWITCH] = "on, off or default",
                                         [TC_OPTION_NUMBER] = "a number"};
    unsigned char *at = o->data.bytes + f->offset;
    char **copy = &o->texts[f - o->of->fields];
    if (f->type == TC_OPTION_POINTER)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is a pointer: call torc_options_set_pointer",
                            o->of->title, f->name);
    if (f->type == TC_OPTION_TEXT) {
        char *fresh = text ? tc_strdup(text) : NULL; /* `text` may be the field's own */
        tc_free(*copy);
        *copy = fresh;
        memcpy(at, copy, sizeof(*copy));
        return true;
    }
    torc_options before = *o;
    size_t width = f->type == TC_OPTION_SWITCH ? sizeof(int32_t) : sizeof(int64_t);
    memset(at, 0, width);
    bool ok = !text || value_parse(f->type, text, at) ||
              tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is \"" TC_SHOWN "\", must be %s", o->of->title,
                           f->name, TC_SHOW(text), wanted[f->type]);
    ok = ok && tc_option_check(o->of, f, &o->data, error);
    if (!ok)
        o->data = before.data;
    return ok;
}

/* Returns what a setter returns: 0, or the code of *error. Frees `own`, which has the error if the application gave no
 * place for it. */
static int setter_end(bool ok, torc_error **error, torc_error *own)
{
    int code = ok ? 0 : torc_error_code(*error);
    torc_error_free(own);
    return code;
}

int torc_options_set(torc_options *o, const char *name, const char *value, torc_error **error)
{
    torc_error *own = NULL;
    torc_error **why = error ? error : &own;
    if (tc_error_pending(why))
        return torc_error_code(*why);
    const struct tc_option *f = field_find(o, name, why);
    bool ok = f && field_set(o, f, value, why);
    return setter_end(ok, why, own);
}

int torc_options_set_pointer(torc_options *o, const char *name, const void *value, torc_error **error)
{
    torc_error *own = NULL;
    torc_error **why = error ? error : &own;
    if (tc_error_pending(why))
        return torc_error_code(*why);
    const struct tc_option *f = field_find(o, name, why);
    bool ok = f && (f->type == TC_OPTION_POINTER ||
                    tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is not a pointer: call torc_options_set",
                                 o->of->title, f->name));
    if (ok)
        memcpy(o->data.bytes + f->offset, &value, sizeof(value));
    return setter_end(ok, why, own);
}

const void *torc_options_data(const torc_options *o)
{
    return o ? &o->data : NULL;
}

void torc_options_free(torc_options *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < TC_ARRAY_LEN(o->texts); i++)
        tc_free(o->texts[i]);
    tc_free(o);
}
