"""The same key to the same backend: one control plane, one set of backends, four clients."""
import collections
import dataclasses
import json
import os
import pathlib
import tempfile
import time

import build_peers
import meshes
import ring_model
from programs import Backends, ControlPlane, Failure, Program, bootstrap

# Where the clients' texts have switches, all are set to one side, but in the round of defaults.
# GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING is A113, which changes ring weights too, and which grpc-js does not have.
SWITCHES = {
    "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING": "false",
    "GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT": "false",
    "GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY": "true",
}
VARIANTS = {"torc": ring_model.TORC, "go": ring_model.GO, "python": ring_model.CORE, "node": ring_model.NODE}


@dataclasses.dataclass(frozen=True)
class Round:
    """Clients started with the same switches, and what these change in the model."""
    name: str
    share: float  # of the number of meshes asked for
    kinds: tuple = ()  # () takes all
    switches: dict = dataclasses.field(default_factory=dict)
    changes: dict = dataclasses.field(default_factory=dict)
    without: tuple = ()  # clients that do not have the switch
    bare: bool = False  # no switch is set: each client has the defaults of its own
    own: dict = dataclasses.field(default_factory=dict)  # what the clients' defaults change in their models
    explained: dict = dataclasses.field(default_factory=dict)  # reasons to differ that hold in this round


RAW = "{} multiplies raw weights of localities and endpoints (A42); Torc and grpc-go take shares (A113)"
DEFAULTS = ("plain", "weighted", "localities", "istio", "priorities", "dead")
ROUNDS = [
    Round("main", 1.0),
    Round("defaults", 0.1, DEFAULTS, bare=True, own={"torc": {"normalised": True}, "go": {"normalised": True}},
          explained={(who, kind): RAW.format(name) for who, name in (("python", "grpcio"), ("node", "grpc-js"))
                     for kind in ("localities", "istio", "weighted", "priorities")}),
    Round("a113", 0.1, ("weighted", "localities", "istio", "dead", "priorities"),
          {"GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING": "true"}, {"normalised": True}, ("node",)),
    Round("compat", 0.05, ("hash_key_ignored",), {"GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT": "true"},
          {"hash_key": False}),
    Round("request_hash_header", 0.05, ("request_hash_header", "empty_hash_header"), without=("node",)),
    Round("cap", 0.05, ("weighted", "localities", "policies"), {"GRPC_RING_HASH_CAP": "300"}, {"cap": 300}),
]

# Who may differ from Torc on meshes of which kind, and why. All other picks must be the same.
OUTGROWS = "grpc-js's combined hash outgrows 64 bits"
EXPLAINED = {
    ("go", "fraction_order"): "grpc-go allots fractional entries in order of hash keys",
    ("go", "locality_order"): "grpc-go allots fractional entries in order of hash keys",
    ("go", "regex_groups"): "grpc-go knows $1 in a substitution, not \\1",
    ("go", "terminal_absent"): "grpc-go goes on past a terminal policy whose header is absent",
    ("go", "ipv6_text"): "grpc-go hashes an IPv6 address as the resource writes it",
    ("go", "empty_hash_header"): "Torc takes an empty request_hash_header for none, as A76's prose has it",
    ("python", "empty_hash_header"): "Torc takes an empty request_hash_header for none, as A76's prose has it",
    ("node", "locality_order"): "grpc-js takes localities in the resource's order",
    ("node", "empty_rewrite"): "grpc-js ignores a rewrite whose substitution is empty",
    ("node", "ipv6_text"): "grpc-js hashes an IPv6 address as the resource writes it",
    ("node", "hash_key"): "grpc-js has no A76",
    ("node", "all"): "grpc-js has no A76; " + OUTGROWS,
    ("node", "policies"): OUTGROWS,
    ("node", "terminal_absent"): OUTGROWS,
}
# These need luck to show in a mesh; the others must show in a run of all kinds, or the explanation is out of date.
RARE = {("go", "fraction_order"), ("go", "locality_order"), ("node", "locality_order"), ("node", "terminal_absent"), ("node", "policies"),
        # With one locality the shares' rounding alone makes a difference.
        ("python", "weighted"), ("node", "weighted"), ("python", "priorities"), ("node", "priorities")}


def client_command(paths, name):
    if name == "torc":
        return [paths.own("interop_agree")], {}
    return {"go": lambda: paths.go("agree"), "python": lambda: paths.python("agree.py"),
            "node": lambda: paths.node("agree.js")}[name]()


class Tally:
    def __init__(self):
        self.meshes = self.picks = self.agreed = self.stopped = 0
        self.seconds = 0.0
        self.version = ""
        self.explained = collections.Counter()
        self.faults = []


def save(paths, mesh, why):
    """A file that `torc serve-xds --resources` serves, one that `torc ring --endpoints` reads, and why they are there."""
    folder = paths.base / "failed-meshes"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{mesh['name']}.json"
    path.write_text(json.dumps({"version_info": "1", "resources": meshes.resources(mesh)}, indent=1), encoding="utf-8")
    listed = ring_model.weighted_endpoints(mesh, ring_model.TORC)
    (folder / f"{mesh['name']}.endpoints").write_text("".join(f"{key}={weight}\n" for key, _, weight in listed),
                                                      encoding="utf-8")
    (folder / f"{mesh['name']}.why").write_text(
        f"{why}\nring: --min {mesh['min_ring_size']} --max {mesh['max_ring_size']}\n", encoding="utf-8")
    return path


def first_fault(calls, got, wanted):
    bad = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
    return (f"{len(bad)} of {len(calls)} picks, the first: headers {calls[bad[0]]}: got {got[bad[0]]}, "
            f"wanted {wanted[bad[0]]}")


def judge(name, own, mesh, calls, got, torc, reasons):
    """(picks that differ from Torc's, a fault or None): every pick is Torc's, or differs as the model of that client
    does for a reason in the list."""
    different = sum(a != b for a, b in zip(got, torc))
    alive = meshes.alive_endpoints(mesh)
    own = [a if b is None and a in alive else b for a, b in zip(got, own)]  # random picks
    if got != own:
        return different, f"{mesh['name']}: {name} is not as its texts say: {first_fault(calls, got, own)}"
    if different and (name, mesh["kind"]) not in reasons:
        return different, f"{mesh['name']}: {name}: {first_fault(calls, got, torc)}"
    return different, None


def order_of(mesh, calls):
    """xDS, but for A76's request_hash_header, which stands in service configs only."""
    if not mesh["kind"].endswith("_hash_header"):
        return {"target": f"xds:///{mesh['name']}", "calls": calls}
    config = {"minRingSize": mesh["min_ring_size"], "maxRingSize": mesh["max_ring_size"],
              "requestHashHeader": mesh["policies"][0]["header"]}
    return {"target": "ipv4:" + ",".join(meshes.alive_endpoints(mesh)), "calls": calls,
            "service_config": json.dumps({"loadBalancingConfig": [{"ring_hash_experimental": config}]})}


class Comparison:
    """One control plane and one set of backends, and the clients of one round at a time."""

    def __init__(self, paths, options, pool, plane, folder):
        self.paths, self.options, self.pool, self.plane = paths, options, pool, plane
        self.bootstrap = pathlib.Path(folder) / "bootstrap.json"
        self.bootstrap.write_text(bootstrap(plane.address), encoding="utf-8")
        self.places = json.loads(pool.line())
        self.number = 0

    def run(self, a_round, tallies):
        wanted = []
        for i in range(max(len(a_round.kinds), round(self.options.meshes * a_round.share))):
            kind = a_round.kinds[i % len(a_round.kinds)] if a_round.kinds else None
            wanted.append(meshes.make(self.number, self.options.seed, self.places, kind))
            self.number += 1
        self.plane.order("set", version=a_round.name, resources=[r for m in wanted for r in meshes.resources(m)])
        clients = {}
        if a_round.bare:
            for switch in SWITCHES:
                os.environ.pop(switch, None)
        try:
            for name in set(tallies) - set(a_round.without):
                command, env = client_command(self.paths, name)
                switches = {} if a_round.bare else {**SWITCHES, **a_round.switches}
                switches["GRPC_XDS_BOOTSTRAP"] = str(self.bootstrap)
                clients[name] = Program(command, {**env, **switches})
                tallies[name].version = json.loads(clients[name].line())["version"]
            for mesh in wanted:
                self.one_mesh(a_round, mesh, clients, tallies)
            clients["torc"].finish()
        finally:
            for client in clients.values():
                client.__exit__()

    def one_mesh(self, a_round, mesh, clients, tallies):
        calls = meshes.random_calls(mesh, self.options.keys)
        for name in clients:
            tallies[name].meshes += 1
        self.ask(a_round, mesh, calls, clients, tallies)
        alive = meshes.alive_endpoints(mesh)
        if mesh["kind"] not in ("plain", "request_hash_header") or len(alive) < 3:
            return
        # The channels stay; some of the backends go.
        gone = alive[::3]
        self.pool.ask_ok({"stop": gone})
        for name, client in clients.items():  # what was sent on a connection that is being cut may fail: that is not asked
            client.ask(order_of(mesh, calls), wait=120)
        self.ask(a_round, {**mesh, "stopped": gone}, calls, clients, tallies)
        self.pool.ask_ok({"start": gone})
        for name in clients:
            tallies[name].stopped += len(calls)

    def ask(self, a_round, mesh, calls, clients, tallies):
        answers = {}
        for name, client in clients.items():
            started = time.monotonic()
            answers[name] = client.ask(order_of(mesh, calls), wait=120)["peers"]
            tallies[name].seconds += time.monotonic() - started
        models = {}
        for name, got in answers.items():
            tally = tallies[name]
            variant = dataclasses.replace(VARIANTS[name], **a_round.changes, **a_round.own.get(name, {}))
            if variant not in models:
                models[variant] = ring_model.predict(mesh, calls, variant)
            reasons = {**EXPLAINED, **a_round.explained}
            different, fault = judge(name, models[variant], mesh, calls, got, answers["torc"], reasons)
            tally.picks += len(got)
            tally.agreed += len(got) - different
            if fault:
                tally.faults.append(fault)
                print(f"{fault}; saved {save(self.paths, mesh, fault)}", flush=True)
            elif different:
                tally.explained[mesh["kind"], reasons[name, mesh["kind"]]] += different


def row(name, tally, torc, whole):
    faults = torc.faults + tally.faults
    if not tally.picks:
        raise Failure("nothing was compared")
    if whole:
        listed = [*EXPLAINED.items(), *(item for a_round in ROUNDS for item in a_round.explained.items())]
        faults += [f"{kind} is listed as a reason to differ and shows no difference: {why}"
                   for (who, kind), why in listed
                   if who == name and (who, kind) not in RARE and not tally.explained[kind, why]]
    notes = [f"{tally.picks} picks in {tally.seconds:.0f} s, {tally.agreed} as Torc's, {sum(tally.explained.values())} "
             f"otherwise and explained; {tally.stopped} of them with backends stopped meanwhile"]
    notes += [f"{n} picks of kind {kind} differ: {why}" for (kind, why), n in sorted(tally.explained.items())]
    failed = min(len(faults), tally.meshes)
    return {"peer": name, "version": tally.version, "cases": tally.meshes, "failed": failed,
            "passed": tally.meshes - failed, "why": faults[:10], "notes": notes}


def run(paths, options):
    """Yields a row for each peer."""
    peers = []
    for name in options.peers or ["go", "python", "node"]:
        try:
            client_command(paths, name)
            peers.append(name)
        except build_peers.Missing as missing:
            yield {"peer": name, "version": "", "skipped": 1, "why": [str(missing)]}
    if not peers:
        return
    tallies = {name: Tally() for name in ["torc", *peers]}
    with Backends(paths) as pool, ControlPlane(paths) as plane, tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(paths, options, pool, plane, folder)
        for a_round in ROUNDS:
            comparison.run(a_round, tallies)
    for name in peers:
        yield row(name, tallies[name], tallies["torc"], options.meshes >= 100)
