#include "server/yaml.h"

#include <math.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"

#define MAX_DEPTH 100u
#define MAX_NODES 4000000u
/* libyaml looks for an anchor among all others. */
#define MAX_ANCHORS 10000u
/* What a text may hold without aliases is less than this; a few bytes of them must not become millions of values. */
#define FREE_NODES 100000u
#define NODES_PER_BYTE 16u

struct convert {
    yaml_document_t *doc;
    size_t nodes, max_nodes;
    char *why;
};

static json_t *fail(struct convert *c, const yaml_node_t *node, const char *reason)
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

/* YAML 1.2 core schema, section 10.3.2. */
static json_t *plain_scalar(struct tc_slice s)
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
    struct tc_slice digits = s.len && s.data[0] == '+' ? tc_slice_of(s.data + 1, s.len - 1) : s;
    if (tc_parse_i64(digits, &i) == 0)
        return json_integer(i);
    bool numeric = digits.len && strchr("-.0123456789", digits.data[0]) && strpbrk(digits.data, "0123456789");
    if (numeric && tc_parse_double(digits, &d) == 0)
        return json_real(d);
    return json_stringn(s.data, s.len);
}

static json_t *convert(struct convert *c, int index, unsigned depth);

static json_t *convert_mapping(struct convert *c, const yaml_node_t *node, unsigned depth)
{
    json_t *obj = json_object();
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(c->doc, p->key);
        if (!key || key->type != YAML_SCALAR_NODE) {
            fail(c, node, "a key must be a scalar");
            json_decref(obj);
            return NULL;
        }
        const char *name = (const char *)key->data.scalar.value;
        if (json_object_get(obj, name)) {
            fail(c, key, "a key stands twice");
            json_decref(obj);
            return NULL;
        }
        json_t *value = convert(c, p->value, depth + 1);
        if (!value || json_object_set_new(obj, name, value) != 0) {
            fail(c, key, "a key or value is not valid UTF-8");
            json_decref(obj);
            return NULL;
        }
    }
    return obj;
}

static json_t *convert_sequence(struct convert *c, const yaml_node_t *node, unsigned depth)
{
    json_t *arr = json_array();
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
        json_t *value = convert(c, *i, depth + 1);
        if (!value || json_array_append_new(arr, value) != 0) {
            json_decref(arr);
            return NULL;
        }
    }
    return arr;
}

static json_t *convert(struct convert *c, int index, unsigned depth)
{
    yaml_node_t *node = yaml_document_get_node(c->doc, index);
    if (!node)
        return NULL;
    if (depth > MAX_DEPTH)
        return fail(c, node, "nested deeper than 100");
    if (++c->nodes > c->max_nodes)
        return fail(c, node, c->max_nodes < MAX_NODES ? "aliases make too many values" : "more than 4000000 values");
    switch (node->type) {
    case YAML_MAPPING_NODE:
        return convert_mapping(c, node, depth);
    case YAML_SEQUENCE_NODE:
        return convert_sequence(c, node, depth);
    case YAML_SCALAR_NODE: {
        struct tc_slice s = tc_slice_of(node->data.scalar.value, node->data.scalar.length);
        json_t *v = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_scalar(s) : json_stringn(s.data, s.len);
        return v ? v : fail(c, node, "not valid UTF-8");
    }
    default:
        return fail(c, node, "empty value");
    }
}

static char *problem_text(const yaml_parser_t *parser)
{
    return tc_asprintf("line %zu, column %zu: %s", parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                       parser->problem ? parser->problem : "malformed");
}

static bool has_anchor(const yaml_event_t *e)
{
    return (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
           (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
           (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

struct shape {
    unsigned depth, anchors;
};

/* What is wrong with the document at this event; NULL: nothing. */
static const char *too_much(struct shape *s, const yaml_event_t *e)
{
    if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT)
        s->depth++;
    else if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
        s->depth--;
    s->anchors += has_anchor(e);
    if (s->depth > MAX_DEPTH + 1) /* the root is at depth 0 */
        return "nested deeper than 100";
    return s->anchors > MAX_ANCHORS ? "more than 10000 anchors" : NULL;
}

static void parser_start(yaml_parser_t *parser, struct tc_slice text)
{
    yaml_parser_set_input_string(parser, (const unsigned char *)(text.data ? text.data : ""), text.len);
}

/* The events of the first document alone: to load one takes libyaml the square of its depth, and of its anchors. */
static bool shape_fits(struct tc_slice text, char **why)
{
    yaml_parser_t parser;
    yaml_event_t event;
    struct shape shape = {0};
    bool end = false;
    if (!yaml_parser_initialize(&parser)) {
        *why = tc_strdup("out of memory");
        return false;
    }
    parser_start(&parser, text);
    while (!end && !*why) {
        if (!yaml_parser_parse(&parser, &event)) {
            *why = problem_text(&parser);
            break;
        }
        const char *reason = too_much(&shape, &event);
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
    if (!shape_fits(text, why))
        return NULL;
    if (!yaml_parser_initialize(&parser)) {
        *why = tc_strdup("out of memory");
        return NULL;
    }
    parser_start(&parser, text);
    if (!yaml_parser_load(&parser, &doc)) {
        *why = problem_text(&parser);
        goto done;
    }
    if (!yaml_document_get_root_node(&doc)) {
        *why = tc_strdup("the file is empty");
    } else {
        size_t most = text.len < MAX_NODES / NODES_PER_BYTE ? FREE_NODES + text.len * NODES_PER_BYTE : MAX_NODES;
        struct convert c = {.doc = &doc, .max_nodes = TC_MIN(most, (size_t)MAX_NODES)};
        result = convert(&c, 1, 0);
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
