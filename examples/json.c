/* Reads a message as JSON (at most 64 KiB) by a descriptor set (at most 1 MiB). Prints its size on the wire, and the
 * message as JSON again. See docs/guide/json.md.
 *
 *   cc json.c -o json $(pkg-config --cflags --libs torc-json)
 *   echo '{"id": "7"}' | ./json shop.pb shop.Order */
#include <stdio.h>
#include <torc/json.h>

static char file[1 << 20], text[1 << 16];

/* Prints and frees the error, frees the schema, and returns the exit status of a failure. */
static int fail(torc_schema *schema, torc_error *error)
{
    fprintf(stderr, "%s\n", torc_error_text(error));
    torc_error_free(error);
    torc_schema_free(schema);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fputs("usage: json SET TYPE <JSON\n", stderr), 2;
    FILE *in = fopen(argv[1], "rb");
    if (!in)
        return perror(argv[1]), 1;
    size_t n = fread(file, 1, sizeof(file), in), size;
    fclose(in);

    torc_error *error = NULL;
    torc_schema *schema = torc_schema_new();
    torc_schema_add_set(schema, file, n, &error);
    if (torc_schema_link(schema, &error) != 0)
        return fail(schema, error);
    const torc_schema_message *type = torc_schema_find_message(schema, argv[2]);
    if (!type) {
        torc_schema_free(schema);
        return fprintf(stderr, "no message %s\n", argv[2]), 2;
    }

    void *bytes;
    char *json;
    struct torc_json_options pretty = {TORC_SIZE(torc_json_options), .indent = 2};
    n = fread(text, 1, sizeof(text), stdin);
    if (torc_json_to_bytes(schema, type, text, n, NULL, &bytes, &size, &error) != 0)
        return fail(schema, error);
    printf("%zu bytes\n", size);
    int rc = torc_json_from_bytes(schema, type, bytes, size, &pretty, &json, NULL, &error);
    torc_free(bytes);
    if (rc != 0)
        return fail(schema, error);
    puts(json);
    torc_free(json);
    torc_schema_free(schema);
    return 0;
}
