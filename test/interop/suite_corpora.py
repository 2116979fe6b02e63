"""The plugin against .proto files of others, as descriptors out of their packages: Envoy's API and what it imports (xds-protos), and etcd,
OpenTelemetry, grpc-proto and the rpc folder of googleapis (Go modules). It writes code that compiles, or names the file that it
refuses and why."""
import pathlib
import re
import subprocess
import tempfile

import build_peers
from programs import HERE, Failure

INCLUDE = HERE.parent.parent / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
# Each refusal, and how many files import the refused one.
REFUSED = {
    "python": {"cel/expr/conformance/proto2/test_all_types.proto: TestAllTypes.nestedgroup is a group: protobuf-c has no groups": 1,
               "google/protobuf/json_enumvalue_options.proto: syntax 'editions': protobuf-c knows proto2 and proto3": 1},
    "descriptors": {"google/protobuf/go_features.proto: go extends .google.protobuf.FeatureSet: protobuf-c has no extensions": 0},
}
# Files that must be among those compiled: that a corpus is there at all.
HAS = {"python": ["envoy/config/cluster/v3/cluster.torc.c", "envoy/service/discovery/v3/ads.torc.c", "google/rpc/error_details.torc.c"],
       "descriptors": ["rpc.torc.c", "opentelemetry/proto/collector/metrics/v1/metrics_service.torc.c", "google/rpc/status.torc.c",
                       "grpc/health/v1/health.torc.c", "grpc/lookup/v1/rls.torc.c"]}


def compiles(folder, suffix, *command):
    """None, or the compiler's errors about all files with the suffix, which it gets as one."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob(f"*{suffix}"))
    text = "".join(f'#include "{name}"\n' for name in names)
    done = subprocess.run([*command, "-fsyntax-only", "-I", str(folder), "-I", str(INCLUDE), "-"], input=text, capture_output=True,
                          text=True, check=False)
    return f"{' '.join(command)}: {done.stderr[:2000]}" if done.returncode else None


def corpus(paths, peer, folder):
    command, env = paths.python("corpora.py")
    if peer == "descriptors":
        described = folder / "set.pb"
        described.write_bytes(subprocess.run([paths.peer("descriptors") / "descriptors"], stdout=subprocess.PIPE, check=True).stdout)
        command = [*command, str(paths.build / "protoc-gen-torc"), str(folder), str(described)]
    else:
        command = [*command, str(paths.build / "protoc-gen-torc"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    files = re.search(r"^files (\d+)$", done.stdout, re.M)
    if done.returncode or not files:
        raise Failure(f"corpora.py: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    refused = re.findall(r"^refused (.*)$", done.stdout, re.M)
    return int(files[1]), refused, len(re.findall(r"^left out ", done.stdout, re.M))


def run(paths, options):
    for peer in REFUSED:
        if options.peers and peer not in options.peers:
            continue
        row = {"peer": {"python": "Envoy's API", "descriptors": "etcd, OTLP, gRPC, rpc"}[peer], "version": ""}
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                count, refused, left_out = corpus(paths, peer, folder)
                why = [f"refused: {text}" for text in refused if text not in REFUSED[peer]]
                why += [f"not refused: {text}" for text in REFUSED[peer] if text not in refused]
                if left_out != sum(REFUSED[peer].values()):
                    why.append(f"{left_out} files import a refused one")
                why += [f"{wanted} was not written" for wanted in HAS[peer] if not (folder / wanted).exists()]
                why += filter(None, [compiles(folder, ".torc.c", "gcc", "-x", "c", "-std=c99", *WARNINGS),
                                     compiles(folder, ".torc.c", "g++", "-x", "c++", "-std=c++11", *WARNINGS),
                                     compiles(folder, ".pb-c.c", "gcc", "-x", "c", "-std=c99")])
        except build_peers.Missing as missing:
            yield {**row, "skipped": 1, "why": [str(missing)]}
            continue
        cases = count + len(refused) + left_out
        yield {**row, "cases": cases, "passed": cases - len(why), "failed": len(why), "why": why,
               "notes": [f"{count} files compile; refused: {text}" for text in refused]}
