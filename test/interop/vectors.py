#!/usr/bin/env python3
"""The data set of docs/evidence/vectors.md, computed by ring_model.py and stride_model.py, which share no code with Torc:
`vectors.py` writes docs/evidence/vectors/*.json. The suite "vectors" makes the same texts, compares them with the committed ones, and
holds Torc against them."""
import json
import pathlib
import random
from bisect import bisect_left

import ring_model
import stride_model

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "evidence" / "vectors"
KEYS = ["", "ada", "grace", "user-17", "user-18", "/orders/4711", "Zürich", "a" * 40]
SCHEDULED = 64  # picks of a schedule


def hexed(value):
    return f"{value:#018x}"


def addresses(n):
    return [f"10.0.{i // 250}.{i % 250 + 1}:8080" for i in range(n)]


def walk(serves, at):
    """The endpoints in the order in which a pick tries them."""
    return list(dict.fromkeys(serves[at:] + serves[:at]))


def ring(name, endpoints, least, most, whole=True):
    listed = [(key, key, weight) for key, weight in endpoints]
    entries = ring_model.ring_entries(listed, least, most, sum(weight for _, weight in endpoints))
    hashes, serves = [entry[0] for entry in entries], [entry[2] for entry in entries]
    lookups = []
    for key in KEYS:
        value = ring_model.xxh64(key.encode())
        at = bisect_left(hashes, value) % len(hashes)
        lookups.append({"key": key, "hash": hexed(value), "index": at, "endpoint": serves[at], "walk": walk(serves, at)[:5]})
    vector = {"name": name, "endpoints": endpoints, "min_ring_size": least, "max_ring_size": most, "size": len(entries)}
    if whole:
        vector["entries"] = [[hexed(value), endpoint] for value, endpoint in zip(hashes, serves)]
    return {**vector, "lookups": lookups}


def rings():
    rng = random.Random(76)
    hundred = [[address, rng.randint(1, 10)] for address in addresses(100)]
    return [
        ring("one endpoint", [["10.0.0.1:8080", 1]], 1, 4096),
        ring("three endpoints, ten entries asked for: each has four, as the smallest share is rounded up", [[a, 1] for a in addresses(3)], 10, 4096),
        ring("weights 1, 2 and 5", [["a", 1], ["b", 2], ["c", 5]], 16, 4096),
        ring("a ring that its maximum makes small: some endpoints have no entry", [[a, 1] for a in addresses(7)], 1, 4),
        ring("IPv6 addresses and hash keys that are names", [["[2001:db8::1]:443", 3], ["blue", 1], ["green", 1]], 24, 4096),
        ring("weights far apart", [["10.0.0.1:8080", 1], ["10.0.0.2:8080", 1000]], 8, 4096, whole=False),
        ring("100 endpoints of weights 1 to 10", hundred, 1024, 4096, whole=False),
    ]


def maglev(name, hosts, size, whole=True):
    table = ring_model.maglev_table(hosts, size)
    lookups = [{"key": key, "hash": hexed(value), "slot": value % size, "endpoint": hosts[table[value % size]][0]}
               for key, value in ((key, ring_model.xxh64(key.encode())) for key in KEYS)]
    counts = [table.count(i) for i in range(len(hosts))]
    return {"name": name, "endpoints": hosts, "size": size, **({"table": table} if whole else {}), "slots_of_each": counts, "lookups": lookups}


def maglevs():
    return [
        maglev("three endpoints", [[a, 1] for a in addresses(3)], 11),
        maglev("weights 1, 2 and 5", [["a", 1], ["b", 2], ["c", 5]], 31),
        maglev("more endpoints than slots: some have none", [[a, 1] for a in addresses(9)], 7),
        maglev("100 endpoints, the default size", [[a, 1] for a in addresses(100)], 65537, whole=False),
    ]


def hash_policy(name, policies, headers):
    value = ring_model.request_hash(policies, headers, ring_model.TORC)
    return {"name": name, "policies": policies, "headers": headers, "hash": None if value is None else hexed(value)}


def hash_policies():
    user, shop = {"header": "user"}, {"header": "shop"}
    digits = {"header": "user", "regex": "[0-9]+", "substitution": "N"}
    swapped = {"header": "user", "regex": "([a-z]+)-([0-9]+)", "substitution": "\\2/\\1"}
    return [
        hash_policy("one header", [user], [["user", "ada"]]),
        hash_policy("an empty value is a value", [user], [["user", ""]]),
        hash_policy("several values, joined by commas", [user], [["user", "ada"], ["user", "grace"]]),
        hash_policy("two policies: the first hash is rotated left by one, then the second is xored", [user, shop], [["user", "ada"], ["shop", "7"]]),
        hash_policy("a policy without a value leaves the hash as it is", [user, shop], [["shop", "7"]]),
        hash_policy("a terminal policy ends the list once there is a hash", [{**user, "terminal": True}, shop], [["user", "ada"], ["shop", "7"]]),
        hash_policy("a terminal policy without a hash does not", [{**user, "terminal": True}, shop], [["shop", "7"]]),
        hash_policy("a rewrite of each match", [digits], [["user", "u17x4"]]),
        hash_policy("a rewrite with groups", [swapped], [["user", "ada-17"]]),
        hash_policy("a rewrite by nothing", [{**digits, "substitution": ""}], [["user", "17"]]),
        hash_policy("names that end in -bin have no value", [{"header": "user-bin"}], [["user-bin", "YWRh"]]),
    ]


def schedule(name, weights, sequence=0):
    scaled = stride_model.scaled_as_core(weights)
    places, after = stride_model.picks(scaled, SCHEDULED, sequence) if scaled else ([], sequence)
    return {"name": name, "weights": weights, "scaled": scaled, "sequence": sequence, "picks": places, "sequence_after": after}


def schedules():
    return [
        schedule("weights 1, 2 and 3", [1, 2, 3]),
        schedule("equal weights", [5, 5, 5, 5]),
        schedule("a weight of 0 is unknown and counts as the mean", [10, 0, 20]),
        schedule("one known weight of several", [7, 0, 0]),
        schedule("a weight above ten times the mean is cut", [81] + [1] * 19),
        schedule("a weight below a hundredth of the mean is raised", [100, 0.001, 100]),
        schedule("a sequence that wraps", [1, 2, 3], (1 << 32) - 10),
        schedule("all weights unknown: no schedule, round robin", [0, 0, 0]),
    ]


SETS = {"rings": rings, "maglev": maglevs, "hash_policies": hash_policies, "weighted_round_robin": schedules}


def text_of(vectors):
    """A vector a block, a field a line."""
    blocks = [",\n".join(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in vector.items()) for vector in vectors]
    return "[\n {\n" + "\n },\n {\n".join(blocks) + "\n }\n]\n"


if __name__ == "__main__":
    for set_name, make in SETS.items():
        (FOLDER / f"{set_name}.json").write_text(text_of(make()), encoding="utf-8")
