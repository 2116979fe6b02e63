/* --protoset-out and --proto-out-dir. Names of files may come from a server: is_safe keeps them inside the folder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli.h"
#include "proto/wire.h"
#include "schema/schema.h"

/* Appends a file after those that it imports, unless done[file->index]. */
static void append_file(const struct tc_descriptor_index *x, const struct tc_descriptor_file *file, bool *done,
                        struct tc_buf *out)
{
    if (done[file->index])
        return;
    done[file->index] = true;
    for (size_t i = 0; i < file->imports.len; i++) {
        const struct tc_descriptor_file *import = tc_descriptor_index_file(x, file->imports.data[i]);
        if (import)
            append_file(x, import, done, out);
    }
    tc_wire_append(out, 1, file->bytes);
}

static int write_file(const struct schema *s, const char *option, const char *path, struct tc_slice text)
{
    FILE *out = fopen(path, "we");
    bool good = out && fwrite(text.data ? text.data : "", 1, text.len, out) == text.len;
    int why = errno;
    if (out && fclose(out) != 0 && good) {
        good = false;
        why = errno;
    }
    return good ? 0 : cli_fail(s->command, "%s: cannot write %s: %s", option, path, strerror(why));
}

void schema_append_set(const struct schema *s, struct tc_buf *set)
{
    bool *done = tc_calloc(s->files.files.len + 1, sizeof(bool));
    for (size_t i = 0; i < s->files.files.len; i++)
        append_file(&s->files, s->files.files.data[i], done, set);
    tc_free(done);
}

static int write_set(const struct schema *s, const char *path)
{
    struct tc_buf set = {0};
    schema_append_set(s, &set);
    int rc = write_file(s, "--protoset-out", path, tc_buf_slice(&set));
    tc_buf_fini(&set);
    return rc;
}

/* Returns true for the relative path of a .proto file, if no part of it is empty or begins with a dot, and if it has no
 * control character and no backslash. So a server's names can overwrite nothing but .proto files in the folder. */
static bool is_safe(const char *name)
{
    struct tc_slice rest = tc_slice_str(name), part;
    for (bool more = true; tc_slice_split(&rest, &more, '/', &part);)
        if (!part.len || *part.data == '.')
            return false;
    if (!tc_slice_ends(tc_slice_str(name), tc_slice_str(".proto")))
        return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == '\\' || *p == 0x7f)
            return false;
    return true;
}

/* Makes the folders of a path: for each slash from index `from` on, the folder whose path ends there. A folder may
 * exist. Returns 0, or -1 with errno; the path is the same as before. */
static int make_folders(char *path, size_t from)
{
    for (char *p = path + from; (p = strchr(p, '/')); p++) {
        *p = '\0';
        int rc = mkdir(path, 0777);
        *p = '/';
        if (rc != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int write_text(const struct schema *s, const char *folder, const char *name)
{
    torc_error *error = NULL;
    if (!is_safe(name))
        return cli_fail(
            s->command,
            "--proto-out-dir: the name of the file \"%s\" is not the path of a .proto file inside of the folder", name);
    char *text = torc_schema_describe(s->types, name, &error);
    if (!text)
        return cli_fail_error(s->command, error);
    char *path = tc_asprintf("%s/%s", folder, name);
    int rc = make_folders(path, 1) == 0
                 ? write_file(s, "--proto-out-dir", path, tc_slice_str(text))
                 : cli_fail(s->command, "--proto-out-dir: cannot make the folder of %s: %s", path, strerror(errno));
    tc_free(path);
    torc_free(text);
    return rc;
}

int schema_write(const struct schema *s, const struct schema_args *a)
{
    int rc = a->protoset_out ? write_set(s, a->protoset_out) : 0;
    for (size_t i = 0; i < s->files.files.len && rc == 0 && a->proto_out_dir; i++)
        rc = write_text(s, a->proto_out_dir, s->files.files.data[i]->name);
    return rc;
}
