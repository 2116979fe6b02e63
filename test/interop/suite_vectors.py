"""Torc against the data set of docs/evidence/vectors.md: rings and Maglev tables by `torc ring`, hash policies by `torc call --explain` over
an xDS channel, schedules by the scheduler of weighted_round_robin. The committed files must be what vectors.py makes."""
import json

import vectors
from plane_world import check
from programs import Failure, Program
from suite_published import hash_of_call, torc

KINDS = {"rings": "ring_hash", "maglev": "maglev", "hash_policies": "hash policies", "weighted_round_robin": "weighted_round_robin"}


def asked(vector):
    return [part for key, weight in vector["endpoints"] for part in ("-e", f"{key}={weight}")]


def lookups(paths, arguments, vector, index):
    """What `torc ring --key` says of each key."""
    keys = [part for lookup in vector["lookups"] for part in ("--key", lookup["key"])]
    rows = [json.loads(line) for line in torc(paths, "ring", *arguments, *keys, "-o", "json").splitlines()]
    wanted = [{"key": l["key"], "hash": l["hash"], "ring_index": l[index], "endpoint": l["endpoint"]} for l in vector["lookups"]]
    check(rows == wanted, f"lookups: {rows}")


def ring(paths, vector):
    arguments = [*asked(vector), "--min", str(vector["min_ring_size"]), "--max", str(vector["max_ring_size"])]
    entries = [line.split() for line in torc(paths, "ring", *arguments, "--dump").splitlines()]
    check(len(entries) == vector["size"], f"the ring has {len(entries)} entries")
    entries = [[vectors.hexed(int(value)), endpoint] for value, endpoint in entries]
    check(entries == vector.get("entries", entries), f"the ring is {entries}")
    lookups(paths, arguments, vector, "index")
    keys = [part for lookup in vector["lookups"] for part in ("--walk", lookup["key"])]
    walks = [json.loads(line)["walk"] for line in torc(paths, "ring", *arguments, *keys, "-o", "json").splitlines()]
    check([walk[:5] for walk in walks] == [lookup["walk"] for lookup in vector["lookups"]], f"walks: {walks}")


def maglev(paths, vector):
    arguments = [*asked(vector), "--maglev", "--table-size", str(vector["size"])]
    names = [key for key, _ in vector["endpoints"]]
    table = [names.index(line.split()[1]) for line in torc(paths, "ring", *arguments, "--dump").splitlines()]
    check(table == vector.get("table", table), f"the table is {table}")
    check([table.count(i) for i in range(len(names))] == vector["slots_of_each"], "the slots of each endpoint")
    lookups(paths, arguments, vector, "slot")


def hash_policy(paths, vector):
    got = [hash_of_call(paths, vector["policies"], vector["headers"]) for _ in range(1 if vector["hash"] else 2)]
    if vector["hash"]:
        check(int(got[0], 16) == int(vector["hash"], 16), f"the hash is {got[0]}")
    else:
        check(got[0] != got[1], f"the hash is {got[0]}, and not a random one")


def schedule(paths, vector):
    with Program([paths.own("interop_stride")]) as program:
        weights = " ".join(map(repr, vector["weights"]))
        program.process.stdin.write(f"{vector['sequence']} {vectors.SCHEDULED} {weights}\n")
        program.process.stdin.flush()
        got = program.line().split()
    check(got == [str(n) for n in (*vector["picks"], vector["sequence_after"])], f"the picks and the sequence are {got}")


def run(paths, options):
    if options.peers and "published" not in options.peers:
        return
    for (name, make), judge in zip(vectors.SETS.items(), (ring, maglev, hash_policy, schedule), strict=True):
        made, faults = make(), []
        if (vectors.FOLDER / f"{name}.json").read_text(encoding="utf-8") != vectors.text_of(made):
            faults.append(f"{name}.json is not what vectors.py writes")
        for vector in made:
            try:
                judge(paths, vector)
            except Failure as failure:
                faults.append(f"{vector['name']}: {failure}")
        cases = len(made) + 1
        yield {"peer": f"vectors: {KINDS[name]}", "version": "", "cases": cases, "passed": cases - len(faults), "failed": len(faults), "why": faults}
