/* protoc-gen-torc. The input is read as a CodeGeneratorRequest; the output for a valid one must be a
 * CodeGeneratorResponse. protoc-gen-c is not run (__wrap_pgt_messages_run): the request names the program, and could
 * name any program of the machine. */
#include "fuzz.h"
#include "messages.h"
#include "plugin.h"

bool __wrap_pgt_messages_run(struct tc_slice program, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                             struct tc_buf *response, char **why);

bool __wrap_pgt_messages_run(struct tc_slice program TC_UNUSED,
                             const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                             struct tc_buf *response TC_UNUSED, char **why)
{
    size_t size = google__protobuf__compiler__code_generator_request__get_packed_size(request);
    uint8_t *bytes = malloc(size + 1);
    TC_FUZZ_CHECK(google__protobuf__compiler__code_generator_request__pack(request, bytes) == size);
    Google__Protobuf__Compiler__CodeGeneratorRequest *read =
        google__protobuf__compiler__code_generator_request__unpack(NULL, size, bytes);
    TC_FUZZ_CHECK(read && read->n_proto_file == request->n_proto_file);
    google__protobuf__compiler__code_generator_request__free_unpacked(read, NULL);
    free(bytes);
    return tc_refuse(why, "not run here");
}

/* Checks a generated file: each comment ends its line and contains no other mark of a comment. Else a comment of the
 * .proto could end the generated comment that quotes it, and the rest would be code. */
static void check_comments(const char *text)
{
    bool inside = false;
    for (; *text; text++) {
        if (inside)
            TC_FUZZ_CHECK(text[0] != '/' || text[1] != '*');
        else
            TC_FUZZ_CHECK(text[0] != '*' || text[1] != '/');
        if (!inside && text[0] == '/' && text[1] == '*') {
            inside = true;
            text++;
        } else if (inside && text[0] == '*' && text[1] == '/') {
            inside = false;
            text++;
            TC_FUZZ_CHECK(text[1] == '\n');
        }
    }
    TC_FUZZ_CHECK(!inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_buf response = {0};
    char *why = NULL;
    bool good = pgt_run(tc_slice_of(data, size), &response, &why);
    TC_FUZZ_CHECK(good == !why);
    if (good) {
        Google__Protobuf__Compiler__CodeGeneratorResponse *r =
            google__protobuf__compiler__code_generator_response__unpack(NULL, response.len, (uint8_t *)response.data);
        TC_FUZZ_CHECK(r && r->supported_features == 1 && (!r->error || r->n_file == 0));
        for (size_t i = 0; i < r->n_file; i++)
            check_comments(r->file[i]->content);
        google__protobuf__compiler__code_generator_response__free_unpacked(r, NULL);
    }
    free(why);
    tc_buf_fini(&response);
    return 0;
}
