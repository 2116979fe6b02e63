/* Reads the plugin's options. nanopb, a codec that this version does not have, is refused with a text of its own. */
#include "options.h"

#include "base/buf.h"
#include "names.h"

static bool side_read(struct pgt_options *options, struct tc_slice value, char **why)
{
    options->sides = tc_slice_eq_str(value, "client")   ? PGT_CLIENT
                     : tc_slice_eq_str(value, "server") ? PGT_SERVER
                     : tc_slice_eq_str(value, "both")   ? PGT_CLIENT | PGT_SERVER
                                                        : 0;
    return options->sides || tc_refuse(why, "side=%.*s: expected client, server or both", (int)value.len, value.data);
}

static bool codec_read(struct tc_slice value, char **why)
{
    if (tc_slice_eq_str(value, "protobuf-c"))
        return true;
    if (tc_slice_eq_str(value, "nanopb"))
        return tc_refuse(why, "codec=nanopb: this version generates code for protobuf-c only");
    return tc_refuse(why, "codec=%.*s: expected protobuf-c", (int)value.len, value.data);
}

static bool prefix_read(struct pgt_options *options, struct tc_slice value, char **why)
{
    options->prefix = value;
    if (value.len && pgt_is_identifier(value))
        return true;
    return tc_refuse(why, "prefix=%.*s: expected a C identifier", (int)value.len, value.data);
}

static bool program_read(struct pgt_options *options, struct tc_slice value, char **why)
{
    options->protoc_gen_c = value;
    return value.len || tc_refuse(why, "protoc-gen-c: expected the path of a program after a '='");
}

/* Reads an option that needs no value. `name` is its text, for "messages=true" without the "=true". Refuses any other
 * text as unknown. */
static bool flag_read(struct pgt_options *options, struct tc_slice name, char **why)
{
    if (tc_slice_eq_str(name, "messages"))
        options->messages = true;
    else if (tc_slice_eq_str(name, "reflection"))
        options->reflection = true;
    else if (tc_slice_eq_str(name, "strict"))
        options->strict = true;
    else
        return tc_refuse(
            why, "unknown option '%.*s': expected codec=, side=, prefix=, messages, reflection, strict, protoc-gen-c=",
            (int)name.len, name.data);
    return true;
}

static bool option_read(struct pgt_options *options, struct tc_slice part, char **why)
{
    ptrdiff_t at = tc_slice_find(part, tc_slice_str("="));
    if (at < 0)
        return flag_read(options, part, why);
    struct tc_slice name = tc_slice_of(part.data, (size_t)at);
    struct tc_slice value = tc_slice_of(part.data + at + 1, part.len - (size_t)at - 1);
    if (tc_slice_eq_str(name, "side"))
        return side_read(options, value, why);
    if (tc_slice_eq_str(name, "codec"))
        return codec_read(value, why);
    if (tc_slice_eq_str(name, "prefix"))
        return prefix_read(options, value, why);
    if (tc_slice_eq_str(name, "protoc-gen-c"))
        return program_read(options, value, why);
    if (tc_slice_eq_str(value, "true"))
        return flag_read(options, name, why);
    return flag_read(options, part, why);
}

bool pgt_options_read(struct pgt_options *options, const char *parameter, char **why)
{
    struct tc_slice rest = tc_slice_str(parameter), part;
    bool more = true;
    *options = (struct pgt_options){.sides = PGT_CLIENT | PGT_SERVER};
    while (tc_slice_split(&rest, &more, ',', &part))
        if (part.len && !option_read(options, part, why))
            return false;
    return true;
}
