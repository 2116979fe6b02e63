/* protoc writes the descriptors into an unlinked file that is its standard output, and its errors into another: neither
 * can fill up as a pipe does while nobody reads. */
#include "schema/protoc.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli.h"

extern char **environ;

static void append_argument(void *argv, char *owned)
{
    TC_VEC(char *) *v = argv;
    *tc_vec_push(v) = owned;
}

/* Appends the folder of a file with an absolute path: protoc asks for a folder that has the file. */
static void add_folder_of(void *argv, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (path[0] == '/')
        append_argument(argv, tc_asprintf("-I%.*s", slash == path ? 1 : (int)(slash - path), path));
}

/* Returns the exit status of protoc, or -1 with errno. */
static int spawn(char **argv, FILE *out, FILE *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0, rc;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
    rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = rc;
    return rc ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void read_back(FILE *file, struct tc_buf *out)
{
    size_t n;
    rewind(file);
    while ((n = fread(tc_buf_reserve(out, 65536), 1, 65536, file)) > 0)
        out->len += n;
}

/* Prints what protoc says, a line for each of its lines. */
static void show_errors(const char *command, FILE *err)
{
    struct tc_buf text = {0};
    read_back(err, &text);
    struct tc_slice rest = tc_slice_trim(tc_buf_slice(&text)), line;
    for (bool more = rest.len > 0; tc_slice_split(&rest, &more, '\n', &line);)
        if (line.len)
            cli_fail(command, "protoc: %.*s", (int)TC_MIN(line.len, (size_t)4096), line.data);
    tc_buf_fini(&text);
}

int protoc_run(const char *command, const struct schema_args *a, struct tc_buf *out)
{
    TC_VEC(char *) argv = {0};
    FILE *set = tmpfile(), *err = tmpfile();
    int rc = CLI_OK;
    append_argument(&argv, tc_strdup("protoc"));
    append_argument(&argv, tc_strdup("--include_imports"));
    append_argument(&argv, tc_strdup("--descriptor_set_out=/dev/stdout"));
    for (size_t i = 0; i < a->import_paths.len; i++)
        append_argument(&argv, tc_asprintf("-I%s", a->import_paths.data[i]));
    for (size_t i = 0; i < a->protos.len && !a->import_paths.len; i++)
        add_folder_of(&argv, a->protos.data[i]);
    if (!a->import_paths.len)
        append_argument(&argv, tc_strdup("-I."));
    /* protoc knows no "--": a file that begins with a dash is given as ./-file. */
    for (size_t i = 0; i < a->protos.len; i++)
        append_argument(&argv, tc_asprintf("%s%s", a->protos.data[i][0] == '-' ? "./" : "", a->protos.data[i]));
    append_argument(&argv, NULL);
    if (!set || !err) {
        rc = cli_fail(command, "--proto: cannot make a temporary file: %s", strerror(errno));
        goto done;
    }
    int status = spawn(argv.data, set, err);
    if (status < 0 || status == 127) {
        rc = cli_fail(command,
                      "--proto: protoc cannot be run (%s); install the protobuf compiler, or use --protoset with what "
                      "protoc --include_imports --descriptor_set_out wrote elsewhere",
                      status < 0 && errno != ENOENT ? strerror(errno) : "it is not in PATH");
        goto done;
    }
    if (status == 0) {
        read_back(set, out);
    } else {
        show_errors(command, err);
        rc = cli_fail(command, "--proto: protoc ended with status %d", status);
    }
done:
    if (set)
        fclose(set);
    if (err)
        fclose(err);
    for (size_t i = 0; i < argv.len; i++)
        tc_free(argv.data[i]);
    tc_vec_fini(&argv);
    return rc;
}
