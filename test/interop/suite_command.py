"""torc call and list beside grpcurl, by the reflection of grpc-go and of grpcio: the same services, the same JSON field for field, the
same exit status."""
import json
import pathlib
import re
import struct
import subprocess
import tempfile

from programs import HERE, WAIT, Program

JSON, PROTO = HERE.parent / "json", HERE.parent.parent / "proto"
COUNT = 200
FD = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
TEST = "grpc.testing.TestService"
# Method, request, and whether what the server tells changes from call to call: then only which fields there are is compared.
CALLS = [
    ("grpc.health.v1.Health/Check", {}, False),
    ("grpc.health.v1.Health/Check", {"service": "shop.Orders"}, False),
    ("grpc.health.v1.Health/Check", {"service": "none"}, False),
    ("grpc.health.v1.Health/List", {}, False),
    ("grpc.channelz.v1.Channelz/GetTopChannels", {}, True),
    ("grpc.channelz.v1.Channelz/GetServers", {"startServerId": "0"}, True),
    ("grpc.channelz.v1.Channelz/GetServer", {"serverId": "9999"}, False),
    (f"{TEST}/UnaryCall", {"responseSize": 5, "payload": {"body": "AAEC"}}, False),
    (f"{TEST}/UnaryCall", {"responseStatus": {"code": 9, "message": "not so"}}, False),
    (f"{TEST}/StreamingOutputCall", {"responseParameters": [{"size": 1}, {"size": 2}]}, False),
    (FD, {"fileContainingSymbol": TEST}, False),
    (FD, {"fileByFilename": "none.proto"}, False),
]


class Tools:
    """The two programs, on one server."""

    def __init__(self, paths, address):
        self.torc, self.grpcurl, self.address = paths.command(), paths.peer("probes") / "grpcurl", address

    @staticmethod
    def run(*command, text=None):
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, input=text, timeout=WAIT, check=False)

    def ours(self, method, request, *flags):
        """The exit status and the responses of torc."""
        done = self.run(self.torc, "call", "-o", "json", "--exit-status", "grpc", "-d", "@", *flags, self.address, method, text=request)
        lines = [json.loads(line) for line in done.stdout.split("\n") if line]
        found = [line["message"] for line in lines if "message" in line] + [line["call"] for line in lines if "call" in line]
        return done.returncode, [f["response"] for f in found if "response" in f], done.stderr

    def theirs(self, method, request, *flags):
        """The exit status and the responses of grpcurl."""
        done = self.run(self.grpcurl, "-plaintext", "-d", "@", *flags, self.address, method, text=request)
        values, rest = [], done.stdout.strip()
        while rest:
            try:
                value, end = json.JSONDecoder().raw_decode(rest)
            except ValueError:
                value, end = f"not JSON: {rest}", len(rest)
            values.append(value)
            rest = rest[end:].strip()
        return done.returncode, values, done.stderr


def fields(value):
    """The names of fields alone."""
    if isinstance(value, dict):
        return {key: fields(inner) for key, inner in value.items()}
    return [fields(inner) for inner in value[:1]] if isinstance(value, list) else None


def compare(what, ours, theirs, loose=False):
    """A fault, or None."""
    if loose:
        ours, theirs = (ours[0], fields(ours[1]), ""), (theirs[0], fields(theirs[1]), "")
    return None if ours[:2] == theirs[:2] else f"{what}: {ours!r}, grpcurl {theirs!r}"[:2000]


EXTENSIONS = ["text_extension", "list_extension", "closed_extension", "Old.nested_extension"]
# What grpcurl cannot read or write, by its own words.
CANNOT = ["cannot set field \\S+ to null", "nil Value", "expecting start of JSON object", "Any JSON doesn't have '@type'", "bad Duration", "google.protobuf.FieldMask has no known field"]


def named(value):
    """An object of grpcurl's, which writes the names of extensions in lowerCamelCase, by names of extensions as others write them."""
    names = {f"[torc.test.json.{re.sub('_(.)', lambda m: m[1].upper(), name)}]": f"[torc.test.json.{name}]" for name in EXTENSIONS}
    return {names.get(key, key): inner for key, inner in value.items()}


def quirk(ours, theirs, path, defaults):
    """Whether grpcurl is known to differ: it writes null for messages that are not there and NULL_VALUE for NullValue, leaves out -0.0 and
    empty BytesValue, and by -emit-defaults adds fields of proto2 that have presence."""
    return ((ours is None and (theirs == "NULL_VALUE" or defaults)) or (theirs is None and repr(ours) == "-0.0")
            or (theirs is None and ours == "" and path.endswith("wBytes")))


def difference(ours, theirs, known=lambda ours, theirs, path: False, path="$"):
    """Where two values of JSON differ first; None: nowhere."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        theirs = named(theirs)
        found = (difference(ours.get(key), theirs.get(key), known, f"{path}.{key}") for key in {*ours, *theirs})
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        found = (difference(a, b, known, f"{path}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs)))
    else:
        same = ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)
        if isinstance(ours, float) and isinstance(theirs, float) and 0 < abs(ours) < 1.2e-38:
            same = struct.pack("<f", ours) == struct.pack("<f", theirs)  # the smallest floats have fewer digits than Python writes
        found = [None if same or known(ours, theirs, path) else f"{path}: {ours!r}, wanted {theirs!r}"]
    return next((one for one in found if one), None)


def compare_message(given, ours, theirs):
    """Faults of one random message, beside Python's own JSON and beside grpcurl; None, or "cannot" where grpcurl cannot."""
    found = f"exit {ours[0]}: {ours[2]}" if ours[0] else difference(ours[1], [given["response"]])
    if found:
        return f"beside Python: {found}"
    if any(re.search(text, theirs[2] + str(theirs[1])) for text in CANNOT):
        return "cannot"
    found = f"exit {theirs[0]}: {theirs[2]}" if theirs[0] else difference(
        ours[1], theirs[1], lambda a, b, path: quirk(a, b, path, given["defaults"]))
    return f"beside grpcurl: {found}" if found else None


def compare_lists(tools, services):
    def lines(*command):
        done = tools.run(*command)
        return done.returncode, sorted(done.stdout.split())

    yield compare("list", lines(tools.torc, "list", tools.address), lines(tools.grpcurl, "-plaintext", tools.address, "list"))
    for service in services:
        ours = lines(tools.torc, "list", tools.address, service)
        theirs = lines(tools.grpcurl, "-plaintext", tools.address, "list", service)
        yield compare(service, (ours[0], [name.replace("/", ".") for name in ours[1]]), theirs)


def row_of(peer, version, faults):
    faults = list(faults)
    cannot = faults.count("cannot")
    wrong = [fault for fault in faults if fault and fault != "cannot"]
    notes = [f"{cannot} messages beside Python's JSON alone: grpcurl cannot read or write them (CANNOT in suite_command.py)"] if cannot else []
    return {"notes": notes, "peer": f"grpcurl on {peer}", "version": version, "cases": len(faults), "passed": len(faults) - len(wrong), "failed": len(wrong),
            "why": wrong[:10]}


def run_go(paths):
    command, env = paths.go("reflect")
    with Program(command, env) as server:
        tools = Tools(paths, server.word_after("listening"))
        faults = list(compare_lists(tools, ["grpc.health.v1.Health", "grpc.channelz.v1.Channelz", TEST, "none.Such"]))
        for method, request, loose in CALLS:
            text = json.dumps(request)
            faults.append(compare(f"{method} {text}", tools.ours(method, text), tools.theirs(method, text), loose))
        server.finish()
    return faults


def run_python(paths, options):
    (program, script), env = paths.python("command_server.py")
    with tempfile.TemporaryDirectory() as folder:
        old = (JSON / "old.proto").read_text(encoding="utf-8")  # grpcurl refuses every schema that has a message set
        (pathlib.Path(folder) / "old.proto").write_text(re.sub(r"^message Set \{.*?^\}", "", old, flags=re.M | re.S), encoding="utf-8")
        subprocess.run([program, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{JSON}", f"-I{PROTO}", f"--python_out={folder}", "--include_imports",
                        f"--descriptor_set_out={folder}/set.pb", "all.proto", "old.proto"], check=True)
        with Program([program, script, "-", folder, str(COUNT), options.seed], env) as server:
            requests = [json.loads(server.line()) for _ in range(COUNT)]
            tools = Tools(paths, server.word_after("listening"))
            yield from compare_lists(tools, ["torc.test.json.Store"])
            for given in requests:
                flags = ["-emit-defaults"] if given["defaults"] else []
                ours = tools.ours(given["method"], given["request"], *flags)
                theirs = tools.theirs(given["method"], given["request"], *flags)
                found = compare_message(given, ours, theirs)
                yield found and (found if found == "cannot" else f"message {given['i']} of seed {options.seed}: {found}")
            server.finish()


def run(paths, options):
    pinned = (HERE / "probes" / "go.mod").read_text(encoding="ascii")
    version = re.search(r"fullstorydev/grpcurl v(\S+)", pinned)[1]
    paths.peer("probes")
    if not options.peers or "go" in options.peers:
        yield row_of("grpc-go", version, run_go(paths))
    if not options.peers or "python" in options.peers:
        yield row_of("grpcio", version, run_python(paths, options))
