"""The same key to the same backend: one control plane, one set of backends, four clients."""
import collections
import json
import time

import build_peers
import meshes
import ring_model
from programs import ControlPlane, Failure, Program, bootstrap

# Where the clients' texts have switches, all are set to one side. GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING is A113,
# which changes ring weights too.
SWITCHES = {
    "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING": "false",
    "GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT": "false",
    "GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY": "true",
}
VARIANTS = {"torc": ring_model.TORC, "go": ring_model.GO, "python": ring_model.CORE, "node": ring_model.NODE}
EXPLAINED = {
    "fraction_order": "grpc-go allots fractional entries in order of hash keys, grpc-js in the resource's order",
    "locality_order": "grpc-go and grpc-js do not put localities in order of region, zone, sub_zone",
    "regex_groups": "grpc-go knows $1 in a substitution, not \\1",
    "empty_rewrite": "grpc-js ignores a rewrite whose substitution is empty",
    "terminal_absent": "grpc-go goes on past a terminal policy whose header is absent; grpc-js's combined hash outgrows "
                       "64 bits",
    "ipv6_text": "grpc-go and grpc-js hash an IPv6 address as the resource writes it",
    "hash_key": "grpc-js has no A76",
    "all": "grpc-js has no A76, and its combined hash outgrows 64 bits",
    "policies": "grpc-js's combined hash outgrows 64 bits",
}


def client_command(paths, name):
    if name == "torc":
        return [paths.own("interop_agree")], {}
    return {"go": lambda: paths.go("agree"), "python": lambda: paths.python("agree.py"),
            "node": lambda: paths.node("agree.js")}[name]()


def backends(paths):
    command, env = paths.go("backends")
    return Program(command + ["-n", "40", "-dead", "12", "-v6", "6"], env)


class Tally:
    def __init__(self):
        self.picks = self.agreed = self.explained = 0
        self.by_kind = collections.Counter()
        self.faults = []


def save(paths, mesh, why):
    folder = paths.base / "failed-meshes"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{mesh['name']}.json"
    path.write_text(json.dumps({"version_info": "1", "resources": meshes.resources(mesh)}, indent=1), encoding="utf-8")
    (folder / f"{mesh['name']}.why.txt").write_text(why, encoding="utf-8")
    return path


def first_fault(calls, got, wanted):
    bad = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
    i = bad[0]
    return f"{len(bad)} of {len(calls)} picks, the first: headers {calls[i]}: got {got[i]}, wanted {wanted[i]}"


def judge(name, mesh, calls, got, torc, tally):
    """Every pick of the peer is Torc's, or what the peer's variant of the model says."""
    own = ring_model.predict(mesh, calls, VARIANTS[name])
    tally.picks += len(got)
    if got != own:
        tally.faults.append(f"{mesh['name']}: {name} is not as its texts say: {first_fault(calls, got, own)}")
        return False
    different = sum(a != b for a, b in zip(got, torc))
    if different and mesh["kind"] in meshes.LIKE and name != "node":
        tally.faults.append(f"{mesh['name']}: {name}: {first_fault(calls, got, torc)}")
        return False
    tally.agreed += len(got) - different
    tally.explained += different
    tally.by_kind[mesh["kind"]] += different
    return True


def run(paths, options):
    """Yields a row for each peer."""
    peers, skipped = [], {}
    for name in options.peers or ["go", "python", "node"]:
        try:
            client_command(paths, name)
            peers.append(name)
        except build_peers.Missing as missing:
            skipped[name] = str(missing)
    for name, why in skipped.items():
        yield {"peer": name, "version": "", "skipped": 1, "why": [why]}
    if peers:
        yield from compare(paths, options, peers)


def compare(paths, options, peers):
    tallies = {name: Tally() for name in ["torc", *peers]}
    seconds = collections.Counter()
    with backends(paths) as pool, ControlPlane(paths) as plane:
        places = json.loads(pool.line())
        wanted = [meshes.make(i, options.seed, places) for i in range(options.meshes)]
        plane.order("set", version="1", resources=[r for mesh in wanted for r in meshes.resources(mesh)])
        path = paths.base / "bootstrap.json"
        path.write_text(bootstrap(plane.address), encoding="utf-8")
        clients, versions = {}, {}
        try:
            for name in tallies:
                command, env = client_command(paths, name)
                clients[name] = Program(command, {**env, **SWITCHES, "GRPC_XDS_BOOTSTRAP": str(path)})
                versions[name] = json.loads(clients[name].line())["version"]
            for mesh in wanted:
                one_mesh(paths, mesh, options, clients, tallies, seconds)
        finally:
            for client in clients.values():
                client.__exit__()
    for name in peers:
        yield row(name, versions[name], options, tallies[name], tallies["torc"], seconds[name])


def one_mesh(paths, mesh, options, clients, tallies, seconds):
    calls = meshes.random_calls(mesh, options.keys)
    answers = {}
    for name, client in clients.items():
        started = time.monotonic()
        answers[name] = client.ask({"target": f"xds:///{mesh['name']}", "calls": calls}, wait=120)["peers"]
        seconds[name] += time.monotonic() - started
    torc = answers["torc"]
    for name, got in answers.items():
        if not judge(name, mesh, calls, got, torc, tallies[name]):
            print(f"saved {save(paths, mesh, tallies[name].faults[-1])}", flush=True)


def row(name, version, options, tally, torc, seconds):
    faults = torc.faults + tally.faults
    why = [f"{n} picks of kind {kind} differ: {EXPLAINED[kind]}" for kind, n in sorted(tally.by_kind.items()) if n]
    if not tally.picks:
        raise Failure("nothing was compared")
    return {"peer": name, "version": version, "cases": options.meshes, "failed": len(faults),
            "passed": options.meshes - len(faults), "why": faults[:10],
            "notes": [f"{tally.picks} picks in {seconds:.0f} s, {tally.agreed} as Torc's, {tally.explained} otherwise "
                      "and explained"] + why}
