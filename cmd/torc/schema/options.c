#include "schema/options.h"

#include "base/mem.h"
#include "cli.h"

bool schema_option(struct schema_args *a, int code, const char *value)
{
    switch (code) {
    case SCHEMA_PROTOSET:
        *tc_vec_push(&a->protosets) = value;
        return true;
    case SCHEMA_PROTO:
        *tc_vec_push(&a->protos) = value;
        return true;
    case SCHEMA_IMPORT_PATH:
        *tc_vec_push(&a->import_paths) = value;
        return true;
    case SCHEMA_REFLECT:
        a->reflect = true;
        return true;
    case SCHEMA_PROTOSET_OUT:
        a->protoset_out = value;
        return true;
    case SCHEMA_PROTO_OUT_DIR:
        a->proto_out_dir = value;
        return true;
    default:
        return false;
    }
}

int schema_args_check(const char *command, const struct schema_args *a)
{
    int rc = 0;
    for (size_t i = 0; i < a->protosets.len && rc == 0; i++)
        rc = cli_path(command, "--protoset", a->protosets.data[i]);
    for (size_t i = 0; i < a->protos.len && rc == 0; i++)
        rc = cli_path(command, "--proto", a->protos.data[i]);
    for (size_t i = 0; i < a->import_paths.len && rc == 0; i++)
        rc = cli_path(command, "--import-path", a->import_paths.data[i]);
    if (rc == 0 && a->protoset_out)
        rc = cli_path(command, "--protoset-out", a->protoset_out);
    if (rc == 0 && a->proto_out_dir)
        rc = cli_path(command, "--proto-out-dir", a->proto_out_dir);
    if (rc == 0 && a->import_paths.len && !a->protos.len)
        rc = cli_usage(command, "--import-path goes with --proto");
    return rc;
}

bool schema_args_offline(const struct schema_args *a)
{
    return a->protosets.len || a->protos.len;
}

void schema_args_fini(struct schema_args *a)
{
    tc_vec_fini(&a->protosets);
    tc_vec_fini(&a->protos);
    tc_vec_fini(&a->import_paths);
}
