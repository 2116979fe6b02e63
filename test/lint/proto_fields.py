#!/usr/bin/env python3
"""Holds every field of proto/ (name, number, type, label, oneof) against the official definitions.

The official files are those that the npm package @grpc/grpc-js-xds carries; the well-known types come from protobufjs,
which it depends on. Both are read by protobufjs, so that the parser is not the one that built ours. What the package
lacks is in ELSEWHERE with the reason.
Exit status: 0 all fields agree, 1 a difference, 77 skipped (a tool or the network is missing).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

PACKAGE, VERSION = "@grpc/grpc-js-xds", "1.14.1"

# Definitions that the pinned package does not carry: full name of a file, message, enum, field or enum value -> reason.
NEWER = "newer than the package; held against go-control-plane"
ABSENT = "not an Envoy API; held against google.golang.org/grpc and github.com/cncf/xds"
KNOWN = "protobufjs does not have it; held against google.golang.org/protobuf"
LB = "envoy.extensions.load_balancing_policies."
ELSEWHERE = {
    "google/protobuf/api.proto": KNOWN,
    "google/protobuf/source_context.proto": KNOWN,
    "google/protobuf/type.proto": KNOWN,
    "grpc/health/v1/health.proto": ABSENT,
    "grpc/reflection/v1/reflection.proto": ABSENT,
    "grpc/reflection/v1alpha/reflection.proto": ABSENT,
    "grpc/testing/empty.proto": ABSENT,
    "grpc/testing/messages.proto": ABSENT,
    "xds/data/orca/v3/orca_load_report.proto": ABSENT,
    "xds/service/orca/v3/orca.proto": ABSENT,
    "envoy/extensions/load_balancing_policies/override_host/v3/override_host.proto": NEWER,
    "envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.proto": NEWER,
    LB + "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin.metric_names_for_computing_utilization":
        NEWER,
    LB + "common.v3.ConsistentHashingLbConfig.hash_policy": NEWER,
    "envoy.admin.v3.ClientResourceStatus.RECEIVED_ERROR": NEWER,  # A88
    "envoy.config.endpoint.v3.LbEndpointCollection.entries": NEWER,  # A95
    "envoy.admin.v3.ClientResourceStatus.TIMEOUT": NEWER,  # A88
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext.auto_host_sni": NEWER,  # A101
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext.auto_sni_san_validation": NEWER,  # A101
    "envoy.service.discovery.v3.DeltaDiscoveryResponse.resource_errors": NEWER,  # xRFC TP3
    "envoy.service.discovery.v3.DiscoveryResponse.resource_errors": NEWER,  # xRFC TP3
    "envoy.service.discovery.v3.ResourceError": NEWER,  # xRFC TP3
}

# Loads the files named on stdin and prints {messages: {name: {field: facts}}, enums: {name: {value: number}}}.
READER = r"""
const fs = require('fs'), path = require('path'), pb = require('protobufjs');
const deps = path.join(path.dirname(require.resolve('@grpc/grpc-js-xds/package.json')), 'deps');
const dirs = ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map(d => path.join(deps, d));
const wanted = fs.readFileSync(0, 'utf8').split('\n').filter(Boolean);
const root = new pb.Root(), known = [], missing = [];
// Annotations extend descriptor.proto, which the package does not carry, and define no field: they are left out.
root.resolvePath = (origin, target) => {
  if (pb.common.get(target)) return target;
  if (/(^|\/)annotations\/|^validate\/|^google\/api\//.test(target)) return null;
  const dir = dirs.find(d => fs.existsSync(path.join(d, target)));
  return dir ? path.join(dir, target) : null;
};
for (const f of wanted)
  (pb.common.get(f) || dirs.some(d => fs.existsSync(path.join(d, f))) ? known : missing).push(f);
root.resolveAll = () => root;  // each field is resolved below, as some lead to files that nobody carries
root.loadSync(known, {keepCase: true});
const out = {messages: {}, enums: {}, missing};
const name = t => t.fullName.slice(1);
const snake = s => s.replace(/[A-Z]/g, c => '_' + c.toLowerCase());
function walk(ns) {
  for (const o of ns.nestedArray) {
    if (o instanceof pb.Type) {
      const common = name(o).startsWith('google.protobuf.');
      const fields = out.messages[name(o)] = {};
      for (const f of o.fieldsArray) {
        let type = f.type;
        try { f.resolve(); if (f.resolvedType) type = name(f.resolvedType); } catch (e) { type = '?' + f.type; }
        fields[common ? snake(f.name) : f.name] = {number: f.id, type, key: f.map ? f.keyType : '',
          repeated: f.repeated, oneof: f.partOf && !(f.options && f.options.proto3_optional) ? f.partOf.name : ''};
      }
    } else if (o instanceof pb.Enum) {
      out.enums[name(o)] = Object.assign({}, o.values);
    }
    if (o.nestedArray) walk(o);
  }
}
walk(root);
process.stdout.write(JSON.stringify(out));
"""

SCALARS = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool",
           9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64"}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields_of(data):
    """The wire fields of one message as {number: [value, ...]}; the descriptors use varints and bytes alone."""
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        out.setdefault(number, []).append(value)
    return out


def text(fields, number):
    return fields.get(number, [b""])[0].decode()


def read_enum(fields, prefix, file, out):
    values = {text(v, 1): v.get(2, [0])[0] for v in map(fields_of, fields.get(2, []))}
    out["enums"][prefix + text(fields, 1)] = values
    out["files"][prefix + text(fields, 1)] = file


def read_message(fields, prefix, file, out):
    """descriptor.proto: DescriptorProto name 1, field 2, nested_type 3, enum_type 4, oneof_decl 8, options 7."""
    name = prefix + text(fields, 1)
    nested = [fields_of(n) for n in fields.get(3, [])]
    maps = {}
    for n in nested:
        if fields_of(n.get(7, [b""])[0]).get(7, [0])[0]:  # MessageOptions.map_entry
            entry = {f.get(3)[0]: field_type(f) for f in map(fields_of, n[2])}
            maps[name + "." + text(n, 1)] = (entry[1], entry[2])
        else:
            read_message(n, name + ".", file, out)
    for e in fields.get(4, []):
        read_enum(fields_of(e), name + ".", file, out)
    oneofs = [text(fields_of(o), 1) for o in fields.get(8, [])]
    message = {}
    for raw in fields.get(2, []):
        f = fields_of(raw)
        key, kind = maps.get(field_type(f), ("", field_type(f)))
        oneof = oneofs[f[9][0]] if 9 in f and 17 not in f else ""
        message[text(f, 1)] = {"number": f[3][0], "type": kind, "key": key, "oneof": oneof,
                               "repeated": f[4][0] == 3 and not key}
    out["messages"][name] = message
    out["files"][name] = file


def field_type(f):
    """FieldDescriptorProto name 1, number 3, label 4, type 5, type_name 6, oneof_index 9, proto3_optional 17."""
    kind = f[5][0]
    return SCALARS.get(kind) or text(f, 6).lstrip(".")


def read_set(data):
    """FileDescriptorSet file 1; FileDescriptorProto name 1, package 2, message_type 4, enum_type 5."""
    out = {"messages": {}, "enums": {}, "files": {}}
    for raw in fields_of(data).get(1, []):
        f = fields_of(raw)
        prefix = text(f, 2) + "." if text(f, 2) else ""
        for m in f.get(4, []):
            read_message(fields_of(m), prefix, text(f, 1), out)
        for e in f.get(5, []):
            read_enum(fields_of(e), prefix, text(f, 1), out)
    return out


def ours(source, build):
    root = os.path.join(source, "proto")
    names = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files
                   if f.endswith(".proto"))
    target = os.path.join(build, "proto_fields.pb")
    subprocess.run(["protoc", "-I", root, "--descriptor_set_out", target] + names, check=True)
    with open(target, "rb") as f:
        return names, read_set(f.read())


def official(build, names):
    cache = os.path.join(build, "proto_fields")
    stamp = os.path.join(cache, f"installed-{VERSION}")
    if not os.path.exists(stamp):
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        with open(os.path.join(cache, "package.json"), "w") as f:
            f.write('{"private": true}\n')
        done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--no-package-lock",
                               f"{PACKAGE}@{VERSION}"], cwd=cache, capture_output=True, text=True, timeout=100)
        if done.returncode != 0:
            reasons = [line for line in done.stderr.splitlines() if line.startswith("npm err")] or ["no reason given"]
            skip("the package could not be installed: " + reasons[-1 if len(reasons) == 1 else 1][:200])
        open(stamp, "w").close()
    done = subprocess.run(["node", "-e", READER], cwd=cache, input="\n".join(names), capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr)
        sys.exit(1)
    return json.loads(done.stdout)


def excused(*names):
    return any(n in ELSEWHERE for n in names)


def compare(mine, theirs):
    """The differences as lines, and how many fields and values were compared."""
    found, compared, used = [], 0, set()
    for name, fields in sorted(mine["messages"].items()):
        file = mine["files"][name]
        for field, facts in fields.items():
            full = f"{name}.{field}"
            official_facts = theirs["messages"].get(name, {}).get(field)
            if official_facts is None:
                used |= {n for n in (file, name, full) if n in ELSEWHERE}
                if not excused(file, name, full):
                    found.append(f"{full}: not in the official definition")
                continue
            compared += 1
            for fact, value in facts.items():
                if official_facts[fact] != value:
                    found.append(f"{full}: {fact} is {value}, official {official_facts[fact]}")
        if not fields and name not in theirs["messages"]:
            used |= {n for n in (file, name) if n in ELSEWHERE}
            if not excused(file, name):
                found.append(f"{name}: not in the official definitions")
    for name, values in sorted(mine["enums"].items()):
        file = mine["files"][name]
        for value, number in values.items():
            number = number - (1 << 64) if number >> 63 else number
            full = f"{name}.{value}"
            if value not in theirs["enums"].get(name, {}):
                used |= {n for n in (file, name, full) if n in ELSEWHERE}
                if not excused(file, name, full):
                    found.append(f"{full}: not in the official definition")
                continue
            compared += 1
            if theirs["enums"][name][value] != number:
                found.append(f"{full}: number is {number}, official {theirs['enums'][name][value]}")
    found += [f"ELSEWHERE names {n}, which is not missing" for n in sorted(set(ELSEWHERE) - used)]
    return found, compared


def unheard(source):
    """The folders of Envoy's .proto files that test/interop/go/protofields does not import: it would know none of their
    messages, and it runs in `make check` alone."""
    with open(os.path.join(source, "test/interop/go/protofields/main.go")) as f:
        imported = set(re.findall(r'"github.com/envoyproxy/go-control-plane/(envoy/[^"]+)"', f.read()))
    root = os.path.join(source, "proto")
    folders = {os.path.relpath(d, root) for d, _, files in os.walk(os.path.join(root, "envoy")) if files}
    return [f"test/interop/go/protofields/main.go does not import {f}" for f in sorted(folders - imported)]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--source", required=True)
    args.add_argument("--build", required=True)
    args = args.parse_args()
    found = unheard(args.source)
    if found:
        print("\n".join(found))
        return 1
    for tool in ("protoc", "npm", "node"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    names, mine = ours(args.source, args.build)
    try:
        theirs = official(args.build, names)
    except subprocess.TimeoutExpired:
        skip("npm install took too long")
    found, compared = compare(mine, theirs)
    for line in found:
        print(line)
    print(f"{compared} fields and enum values agree with {PACKAGE} {VERSION}, {len(ELSEWHERE)} names are held elsewhere"
          if not found else f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
