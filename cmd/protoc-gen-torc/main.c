/* protoc-gen-torc: a plugin of protoc (docs/guide/stubs.md). */
#include <stdio.h>
#include <string.h>

#include <torc/version.h>

#include "base/mem.h"
#include "plugin.h"

static const char usage[] =
    "Usage: protoc --torc_out=[OPTIONS:]DIR FILE.proto\n"
    "\n"
    "A plugin of protoc, which runs it: typed calls of gRPC services on Torc.\n"
    "Options, separated by commas:\n"
    "  messages           write the messages too (NAME.pb-c.h, NAME.pb-c.c), by protoc-gen-c\n"
    "  protoc-gen-c=PATH  the program that writes them; default: protoc-gen-c\n"
    "  prefix=NAME        begin function names with NAME instead of the package\n"
    "  reflection         add the file's serialised description\n"
    "  codec=protobuf-c   the library of the messages (the one there is)\n"
    "  side=client        functions for clients alone; side=server: for servers; side=both: the default\n"
    "  strict             servers refuse a service of which a method has no handler\n";

int main(int argc, char **argv)
{
    struct tc_buf request = {0}, response = {0};
    char *why = NULL;
    size_t n;
    if (argc > 1) {
        bool version = strcmp(argv[1], "--version") == 0;
        if (version)
            printf("protoc-gen-torc %s\n", TORC_VERSION);
        else
            fputs(usage, strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return version || strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    do {
        n = fread(tc_buf_reserve(&request, 65536), 1, 65536, stdin);
        request.len += n;
    } while (n);
    bool good = pgt_run(tc_buf_slice(&request), &response, &why);
    if (!good)
        fprintf(stderr, "protoc-gen-torc: %s\n", why);
    else if (fwrite(response.data, 1, response.len, stdout) != response.len || fflush(stdout) != 0)
        good = tc_refuse(&why, "cannot write");
    tc_free(why);
    tc_buf_fini(&request);
    tc_buf_fini(&response);
    return good ? 0 : 1;
}
