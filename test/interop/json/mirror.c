/* proto3 JSON by libtorc-json, for suite_json.py: interop_json SET TYPE...
 *
 * SET is a file with a FileDescriptorSet, of 16 MiB at most. A frame on standard input has:
 *
 *   1 byte    bits: 1 JSON to bytes (else bytes to JSON), 2 indent, 4 proto names, 8 emit defaults, 16 enum numbers,
 *             32 allow unknown, 64 allow partial
 *   1 byte    the index of its TYPE on the command line, from 0
 *   4 bytes   the length of the input, little endian; then the input
 *
 * The frame written back has a byte (1: the output, 0: the text of an error), the length in 4 bytes, little endian, and
 * the output or text. Exit 0 at the end of standard input. Exit 1 at a frame whose TYPE is unknown or whose input is
 * cut short, if a frame cannot be written, and, with the reason on standard error, if SET cannot be read or is
 * refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/json.h>

/* Writes a frame. Returns 0 if it cannot be written, else 1. */
static int put(unsigned char kind, const void *bytes, size_t n)
{
    unsigned char head[5] = {kind, (unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                             (unsigned char)(n >> 24)};
    return fwrite(head, 1, 5, stdout) == 5 && fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0;
}

static int32_t on(unsigned char what, int bit)
{
    return what & bit ? TORC_ON : TORC_OFF;
}

/* Converts one input and writes the frame for it. Returns 0 if the frame cannot be written, else 1. */
static int mirror(const torc_schema *schema, const torc_schema_message *type, unsigned char what, const void *in,
                  size_t n)
{
    const struct torc_json_options o = {TORC_SIZE(torc_json_options), .indent = what & 2 ? 3 : 0,
                                        .proto_names = on(what, 4),   .emit_defaults = on(what, 8),
                                        .enum_numbers = on(what, 16), .allow_unknown = on(what, 32),
                                        .allow_partial = on(what, 64)};
    torc_error *error = NULL;
    void *bytes = NULL;
    char *text = NULL;
    size_t size = 0;
    int rc = what & 1 ? torc_json_to_bytes(schema, type, in, n, &o, &bytes, &size, &error)
                      : torc_json_from_bytes(schema, type, in, n, &o, &text, &size, &error);
    int good =
        rc == 0 ? put(1, bytes ? bytes : text, size) : put(0, torc_error_text(error), strlen(torc_error_text(error)));
    torc_free(bytes);
    torc_free(text);
    torc_error_free(error);
    return good;
}

/* Adds the files of a file with a FileDescriptorSet, and links the schema. Returns 0, with the reason printed, if the
 * file cannot be read or the set is refused, else 1. */
static int load(torc_schema *schema, const char *path)
{
    enum { MAX_BYTES = 1 << 24 };
    torc_error *error = NULL;
    FILE *file = fopen(path, "rb");
    char *bytes = file ? malloc(MAX_BYTES + 1) : NULL;
    size_t n = bytes ? fread(bytes, 1, MAX_BYTES + 1, file) : 0;
    int good = bytes && !ferror(file) && n <= MAX_BYTES;
    if (!good)
        fprintf(stderr, "%s: %s\n", path, n > MAX_BYTES ? "more than 16 MiB" : strerror(errno));
    else if (torc_schema_add_set(schema, bytes, n, &error) != 0 || torc_schema_link(schema, &error) != 0)
        fprintf(stderr, "%s: %s\n", path, torc_error_text(error));
    good = good && !error;
    torc_error_free(error);
    if (file)
        fclose(file);
    free(bytes);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SET TYPE...\n", argv[0]);
        return 1;
    }
    torc_schema *schema = torc_schema_new();
    unsigned char head[6];
    int good = load(schema, argv[1]);
    while (good && fread(head, 1, 6, stdin) == 6) {
        size_t n = (size_t)head[2] | (size_t)head[3] << 8 | (size_t)head[4] << 16 | (size_t)head[5] << 24;
        char *in = malloc(n + 1);
        const char *name = head[1] + 2 < argc ? argv[head[1] + 2] : NULL;
        const torc_schema_message *type = torc_schema_find_message(schema, name);
        good = in && type && fread(in, 1, n, stdin) == n && mirror(schema, type, head[0], in, n);
        free(in);
    }
    torc_schema_free(schema);
    return !good;
}
