/* Converts YAML to JSON values, with libyaml.
 *
 * The text is not trusted: a small text can cost much time and memory. A document is parsed twice. The first pass
 * (yaml_shape_fits) looks at the document's events alone, and rejects deep nesting and too many anchors: libyaml's
 * loader compares anchors with each other in quadratic time. The second pass (tc_yaml_parse) loads the document and
 * converts it. Aliases are expanded: the depth is checked again, and max_nodes bounds the values that this makes. The
 * text is borrowed for the call, the result is the caller's. Pure functions, any thread. */
#include "controlplane/yaml.h"

#include <math.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"

enum {
    MAX_DEPTH = 100,
    MAX_NODES = 4000000,
    MAX_ANCHORS = 10000, /* libyaml compares a new anchor with all others */
    /* A text may make FREE_NODES values, and NODES_PER_BYTE more for each of its bytes, but at most MAX_NODES. A text
     * without aliases makes fewer; a few bytes of aliases must not become millions of values. */
    FREE_NODES = 100000,
    NODES_PER_BYTE = 16
};

struct yaml_conversion {
    yaml_document_t *doc;
    size_t nodes, max_nodes; /* values made so far, and how many there may be */
    char *why;               /* the first reason, owned; NULL: none */
};

/* Keeps the first reason, with its place. Returns NULL for the caller to return. */
static json_t *yaml_fail(struct yaml_conversion *c, const yaml_node_t *node, const char *reason)
{
    if (!c->why)
        c->why =
            tc_asprintf("line %zu, column %zu: %s", node->start_mark.line + 1, node->start_mark.column + 1, reason);
    return NULL;
}

static bool is_one_of(struct tc_slice s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tc_slice_eq_str(s, words[i]))
            return true;
    return false;
}

/* YAML 1.2 core schema, section 10.3.2, with the exceptions of tc_yaml_parse. A NUL must follow `s`. Returns a new
 * reference, or NULL if `s` is not valid UTF-8. */
static json_t *yaml_plain_scalar(struct tc_slice s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};
    int64_t i;
    double d;
    if (is_one_of(s, nulls, TC_ARRAY_LEN(nulls)))
        return json_null();
    if (is_one_of(s, trues, TC_ARRAY_LEN(trues)))
        return json_true();
    if (is_one_of(s, falses, TC_ARRAY_LEN(falses)))
        return json_false();
    bool plus = s.len > 1 && s.data[0] == '+' && !strchr("+-", s.data[1]);
    struct tc_slice digits = plus ? tc_slice_of(s.data + 1, s.len - 1) : s;
    if (tc_parse_i64(digits, &i) == 0)
        return json_integer(i);
    bool numeric = digits.len && strchr("-.0123456789", digits.data[0]) && strpbrk(digits.data, "0123456789");
    if (numeric && tc_parse_double(digits, &d) == 0)
        return json_real(d);
    return json_stringn(s.data, s.len);
}

/* Returns the value of a node, a new reference. Returns NULL with the reason in c->why, or without one if memory ran
 * out. `index`: of the node, from 1. `depth`: 0 for the root. */
static json_t *yaml_convert(struct yaml_conversion *c, int index, unsigned depth);

/* JSON objects have string keys, each once. A scalar key of any kind becomes a string; a mapping with another key, or
 * with a key twice, is rejected. */
static json_t *yaml_convert_mapping(struct yaml_conversion *c, const yaml_node_t *node, unsigned depth)
{
    json_t *obj = json_object();
    bool ok = true;
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; ok && p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(c->doc, p->key);
        const char *name = key && key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : NULL;
        ok = false;
        if (!name)
            yaml_fail(c, node, "a key must be a scalar");
        else if (strlen(name) != key->data.scalar.length)
            yaml_fail(c, key, "a key has a NUL");
        else if (json_object_get(obj, name))
            yaml_fail(c, key, "a key stands twice");
        else if (json_object_set_new(obj, name, yaml_convert(c, p->value, depth + 1)) != 0)
            yaml_fail(c, key, "a key or value is not valid UTF-8");
        else
            ok = true;
    }
    if (ok)
        return obj;
    json_decref(obj);
    return NULL;
}

static json_t *yaml_convert_sequence(struct yaml_conversion *c, const yaml_node_t *node, unsigned depth)
{
    json_t *arr = json_array();
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
        json_t *value = yaml_convert(c, *i, depth + 1);
        if (!value || json_array_append_new(arr, value) != 0) {
            json_decref(arr);
            return NULL;
        }
    }
    return arr;
}

static json_t *yaml_convert(struct yaml_conversion *c, int index, unsigned depth)
{
    yaml_node_t *node = yaml_document_get_node(c->doc, index);
    if (!node)
        return NULL;
    if (depth > MAX_DEPTH)
        return yaml_fail(c, node, "nested deeper than 100");
    if (++c->nodes > c->max_nodes)
        return yaml_fail(c, node,
                         c->max_nodes < MAX_NODES ? "aliases make too many values" : "more than 4000000 values");
    switch (node->type) {
    case YAML_MAPPING_NODE:
        return yaml_convert_mapping(c, node, depth);
    case YAML_SEQUENCE_NODE:
        return yaml_convert_sequence(c, node, depth);
    case YAML_SCALAR_NODE: {
        struct tc_slice s = tc_slice_of(node->data.scalar.value, node->data.scalar.length);
        json_t *v =
            node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? yaml_plain_scalar(s) : json_stringn(s.data, s.len);
        return v ? v : yaml_fail(c, node, "not valid UTF-8");
    }
    default:
        return yaml_fail(c, node, "empty value");
    }
}

/* Returns the line and the column of a byte of a text in UTF-8; `index` stays 0. */
static yaml_mark_t yaml_mark_of(struct tc_slice text, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < TC_MIN(offset, text.len); i++)
        if (text.data[i] == '\n')
            mark = (yaml_mark_t){.line = mark.line + 1};
        else
            mark.column += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return mark;
}

/* An error of the reader, which decodes the text, has an offset instead of a mark. */
static char *yaml_problem_text(const yaml_parser_t *parser, struct tc_slice text)
{
    yaml_mark_t mark =
        parser->error == YAML_READER_ERROR ? yaml_mark_of(text, parser->problem_offset) : parser->problem_mark;
    return tc_asprintf("line %zu, column %zu: %s", mark.line + 1, mark.column + 1,
                       parser->problem ? parser->problem : "malformed");
}

static bool event_has_anchor(const yaml_event_t *e)
{
    return (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
           (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
           (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

struct yaml_shape {
    unsigned depth, anchors;
};

/* Returns the limit that the document exceeds at this event, or NULL. */
static const char *shape_exceeds(struct yaml_shape *s, const yaml_event_t *e)
{
    if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT)
        s->depth++;
    else if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
        s->depth--;
    s->anchors += event_has_anchor(e);
    if (s->depth > MAX_DEPTH + 1) /* the root is at depth 0 */
        return "nested deeper than 100";
    return s->anchors > MAX_ANCHORS ? "more than 10000 anchors" : NULL;
}

static void yaml_parser_start(yaml_parser_t *parser, struct tc_slice text)
{
    yaml_parser_set_input_string(parser, (const unsigned char *)(text.data ? text.data : ""), text.len);
}

/* The first pass. Returns false, with the reason in *why, if the text is malformed or exceeds a limit, or memory ran
 * out. *why is NULL before. */
static bool yaml_shape_fits(struct tc_slice text, char **why)
{
    yaml_parser_t parser;
    yaml_event_t event;
    struct yaml_shape shape = {0};
    bool end = false;
    if (!yaml_parser_initialize(&parser)) {
        *why = tc_strdup("out of memory");
        return false;
    }
    yaml_parser_start(&parser, text);
    while (!end && !*why) {
        if (!yaml_parser_parse(&parser, &event)) {
            *why = yaml_problem_text(&parser, text);
            break;
        }
        const char *reason = shape_exceeds(&shape, &event);
        if (reason)
            *why =
                tc_asprintf("line %zu, column %zu: %s", event.start_mark.line + 1, event.start_mark.column + 1, reason);
        end = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return !*why;
}

json_t *tc_yaml_parse(struct tc_slice text, char **why)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    json_t *result = NULL;
    *why = NULL;
    if (!yaml_shape_fits(text, why))
        return NULL;
    if (!yaml_parser_initialize(&parser)) {
        *why = tc_strdup("out of memory");
        return NULL;
    }
    yaml_parser_start(&parser, text);
    if (!yaml_parser_load(&parser, &doc)) {
        *why = yaml_problem_text(&parser, text);
        goto done;
    }
    if (!yaml_document_get_root_node(&doc)) {
        *why = tc_strdup("the file is empty");
    } else {
        size_t most = text.len < MAX_NODES / NODES_PER_BYTE ? FREE_NODES + text.len * NODES_PER_BYTE : MAX_NODES;
        struct yaml_conversion c = {.doc = &doc, .max_nodes = TC_MIN(most, (size_t)MAX_NODES)};
        result = yaml_convert(&c, 1, 0);
        if (!result)
            *why = c.why ? c.why : tc_strdup("malformed");
        else
            tc_free(c.why);
    }
    yaml_document_delete(&doc);
done:
    yaml_parser_delete(&parser);
    return result;
}
