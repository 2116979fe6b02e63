/* Feeds a fuzz target every file of the given folders, and every prefix of files of at most SMALL_BYTES, in builds
 * without TORC_FUZZ. Files whose names begin with a dot are left out. Each input is a copy of its exact size, so that a
 * sanitizer sees reads past its end; the copy of an empty input has one byte. */
#include <dirent.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"

#define SMALL_BYTES 128u

static void feed(const char *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    TC_FUZZ_CHECK(copy);
    memcpy(copy, data, len);
    TC_FUZZ_CHECK(LLVMFuzzerTestOneInput(copy, len) == 0);
    free(copy);
}

static void feed_file(const char *path)
{
    struct tc_buf text = {0};
    FILE *file = fopen(path, "rb");
    size_t n;
    if (!file) {
        perror(path);
        exit(1);
    }
    do {
        n = fread(tc_buf_reserve(&text, 65536), 1, 65536, file);
        text.len += n;
    } while (n);
    fclose(file);
    feed(tc_buf_cstr(&text), text.len);
    if (text.len <= SMALL_BYTES)
        for (size_t len = 0; len < text.len; len++)
            feed(text.data, len);
    tc_buf_fini(&text);
}

int main(int argc, char **argv)
{
    size_t files = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int n = scandir(argv[i], &names, NULL, alphasort);
        if (n < 0) {
            perror(argv[i]);
            return 1;
        }
        for (int k = 0; k < n; k++) {
            if (names[k]->d_name[0] != '.') {
                char *path = tc_asprintf("%s/%s", argv[i], names[k]->d_name);
                feed_file(path);
                tc_free(path);
                files++;
            }
            free(names[k]);
        }
        free(names);
    }
    printf("%zu files\n", files);
    return files == 0; /* an empty corpus proves nothing */
}
