/* Runs of protoc: .proto files to descriptors (--proto), messages to text format and back (--format text).
 *
 * Standard input, output and error of protoc are unlinked files: a pipe would fill up while nobody reads it. A fourth
 * file, at descriptor SET_FD, has the descriptors that protoc is to read; it is empty for --proto. protoc_begin makes
 * the files, and protoc_end closes them.
 *
 * Names of files and types may come from a server. protoc must not take them for options: is_plain_name. */
#include "schema/protoc.h"

#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli.h"

extern char **environ;

enum { SET_FD = 3 };

/* One run of protoc. */
struct protoc {
    TC_VEC(char *) argv;
    FILE *in, *out, *err, *set; /* set: protoc opens it as /dev/fd/3 */
};

/* Takes ownership of the argument. */
static void protoc_add(struct protoc *p, char *argument)
{
    *tc_vec_push(&p->argv) = argument;
}

static void protoc_begin(struct protoc *p)
{
    *p = (struct protoc){.in = tmpfile(), .out = tmpfile(), .err = tmpfile(), .set = tmpfile()};
    protoc_add(p, tc_strdup("protoc"));
}

static void protoc_end(struct protoc *p)
{
    FILE *files[] = {p->in, p->out, p->err, p->set};
    for (size_t i = 0; i < TC_ARRAY_LEN(files); i++)
        if (files[i])
            fclose(files[i]);
    for (size_t i = 0; i < p->argv.len; i++)
        tc_free(p->argv.data[i]);
    tc_vec_fini(&p->argv);
}

/* Runs protoc. Returns its exit status, 128 plus the number of the signal that ended it, or -1 with errno. */
static int spawn(struct protoc *p)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status, rc;
    protoc_add(p, NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(p->in), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(p->out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(p->err), STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(p->set), SET_FD);
    rc = posix_spawnp(&pid, p->argv.data[0], &actions, NULL, p->argv.data, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (rc == 0 && waitpid(pid, &status, 0) < 0)
        rc = errno == EINTR ? 0 : errno;
    errno = rc;
    return rc ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Appends the whole file to *out. */
static void read_back(FILE *file, struct tc_buf *out)
{
    size_t n;
    rewind(file);
    while ((n = fread(tc_buf_reserve(out, 65536), 1, 65536, file)) > 0)
        out->len += n;
}

/* Runs protoc and appends its output to *out. Returns 0; or -1 with *out unchanged and the reason in *why, which must
 * be empty before: why protoc did not run, what it wrote on standard error, or its status if it wrote nothing. */
static int protoc_wait(struct protoc *p, struct tc_buf *out, struct tc_buf *why)
{
    int status = p->in && p->out && p->err && p->set ? spawn(p) : -2;
    if (status == 0) {
        read_back(p->out, out);
        return 0;
    }
    int error = errno;
    if (status >= 0)
        read_back(p->err, why);
    if (status == -2)
        tc_buf_printf(why, "cannot make a temporary file: %s", strerror(error));
    else if (status == -1 || (status == 127 && !why->len)) /* 127: posix_spawnp of an old libc, or a shell */
        tc_buf_printf(why, "protoc cannot be run (%s); install the protobuf compiler",
                      status == -1 && error != ENOENT ? strerror(error) : "it is not in PATH");
    else if (!why->len)
        tc_buf_printf(why, "protoc ended with status %d", status);
    return -1;
}

/* Adds -I with the folder of the file, if the path is absolute or goes up with "..": the file may then lie outside the
 * present folder, and protoc wants an -I that the file's path begins with. */
static void add_folder_of(struct protoc *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (path[0] == '/' || strncmp(path, "../", 3) == 0 || strstr(path, "/../"))
        protoc_add(p, tc_asprintf("-I%.*s", slash == path ? 1 : (int)(slash - path), path));
}

int protoc_run(const char *command, const struct schema_args *a, struct tc_buf *out)
{
    struct protoc p;
    struct tc_buf why = {0};
    protoc_begin(&p);
    protoc_add(&p, tc_strdup("--include_imports"));
    protoc_add(&p, tc_strdup("--descriptor_set_out=/dev/stdout"));
    for (size_t i = 0; i < a->import_paths.len; i++)
        protoc_add(&p, tc_asprintf("-I%s", a->import_paths.data[i]));
    for (size_t i = 0; i < a->protos.len && !a->import_paths.len; i++)
        add_folder_of(&p, a->protos.data[i]);
    if (!a->import_paths.len)
        protoc_add(&p, tc_strdup("-I."));
    /* protoc does not know "--": a file that begins with a dash is given as ./-file. */
    for (size_t i = 0; i < a->protos.len; i++)
        protoc_add(&p, tc_asprintf("%s%s", a->protos.data[i][0] == '-' ? "./" : "", a->protos.data[i]));
    int rc = protoc_wait(&p, out, &why) == 0 ? CLI_OK : CLI_FAILED;
    struct tc_slice rest = tc_buf_slice(&why), line;
    for (bool more = rest.len > 0; tc_slice_split(&rest, &more, '\n', &line);)
        if (line.len)
            cli_fail(command, "--proto: %.*s", (int)TC_MIN(line.len, (size_t)4096), line.data);
    protoc_end(&p);
    tc_buf_fini(&why);
    return rc;
}

/* Returns false for a name that protoc could take for an option. */
static bool is_plain_name(const char *name)
{
    return isalnum((unsigned char)*name) || *name == '_';
}

/* Runs protoc with `option`, "--encode" or "--decode", as protoc_encode and protoc_decode say. */
static int convert(const struct tc_descriptor_index *files, struct tc_slice set, const char *option, const char *type,
                   struct tc_slice in, struct tc_buf *out, struct tc_buf *why)
{
    struct protoc p;
    const struct tc_descriptor_file *file = tc_descriptor_index_symbol(files, tc_slice_str(type));
    if (!file || !is_plain_name(file->name) || !is_plain_name(type)) {
        tc_buf_printf(why, "the file of %s has a name that protoc does not take", type);
        return -1;
    }
    protoc_begin(&p);
    protoc_add(&p, tc_asprintf("--descriptor_set_in=/dev/fd/%d", SET_FD));
    protoc_add(&p, tc_asprintf("%s=%s", option, type));
    protoc_add(&p, tc_strdup(file->name));
    bool written = p.in && p.set && fwrite(in.data ? in.data : "", 1, in.len, p.in) == in.len &&
                   fwrite(set.data ? set.data : "", 1, set.len, p.set) == set.len && fflush(p.set) == 0 &&
                   fflush(p.in) == 0;
    int rc = -1;
    if (written) {
        rewind(p.in);
        rc = protoc_wait(&p, out, why);
    } else {
        tc_buf_printf(why, "cannot write a temporary file: %s", strerror(errno));
    }
    while (why->len && why->data[why->len - 1] == '\n')
        why->len--;
    protoc_end(&p);
    return rc;
}

int protoc_encode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type, struct tc_slice text,
                  struct tc_buf *out, struct tc_buf *why)
{
    return convert(files, set, "--encode", type, text, out, why);
}

int protoc_decode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type,
                  struct tc_slice message, struct tc_buf *out, struct tc_buf *why)
{
    return convert(files, set, "--decode", type, message, out, why);
}
