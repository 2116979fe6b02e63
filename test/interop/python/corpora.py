"""Hands the plugin all .proto files of a corpus in one request: those compiled into the packages of this environment, or a file with a
FileDescriptorSet. A file that the plugin refuses, and the files that import it, are left out, and the rest is asked for again.

usage: corpora.py PLUGIN FOLDER [SET]. Prints "refused REASON" lines, "left out FILE" lines, and "files N"; writes the code into FOLDER."""
import importlib
import pathlib
import subprocess
import sys

import google
from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2

TOPS = ("envoy", "xds", "udpa", "validate", "opencensus", "opentelemetry", "google", "cel")


def installed():
    """All files of the environment's packages, each after its imports."""
    root, files = pathlib.Path(google.__path__[0]).parent, {}

    def add(descriptor):
        if descriptor.name not in files:
            for wanted in descriptor.dependencies:
                add(wanted)
            files[descriptor.name] = descriptor_pb2.FileDescriptorProto()
            descriptor.CopyToProto(files[descriptor.name])

    for top in TOPS:
        for path in sorted((root / top).rglob("*_pb2.py")):
            add(importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts)).DESCRIPTOR)
    return files


def ask(plugin, files):
    request = plugin_pb2.CodeGeneratorRequest(parameter="messages,reflection", file_to_generate=list(files), proto_file=files.values())
    done = subprocess.run([plugin], input=request.SerializeToString(), capture_output=True, check=False)
    sys.stderr.write(done.stderr.decode(errors="replace"))
    done.check_returncode()
    return plugin_pb2.CodeGeneratorResponse.FromString(done.stdout)


def main():
    plugin, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if len(sys.argv) > 3:
        data = pathlib.Path(sys.argv[3]).read_bytes()
        files = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(data).file}
    else:
        files = installed()
    answer = ask(plugin, files)
    while answer.error:
        print("refused", answer.error)
        name = answer.error.split(":")[0]
        if files.pop(name, None) is None:
            sys.exit(f"the plugin refuses without naming a file: {answer.error}")
        gone = {name}
        for other, file in list(files.items()):  # a file comes after its imports
            if gone & set(file.dependency):
                gone.add(other)
                print("left out", other)
                del files[other]
        answer = ask(plugin, files)
    for file in answer.file:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content, encoding="utf-8")
    print("files", len(files))


main()
