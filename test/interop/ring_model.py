"""What each client should do with a key, written a second time here: the request's hash from the route's hash policies
(A42), the ring (A42, A61, A76), the walk past endpoints that refuse connections. Where clients are known to differ, the
model has a variant for each; a disagreement is explained when both clients do what their variants say."""
import ipaddress
import math
import re
from bisect import bisect_left
from dataclasses import dataclass

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def rotl(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & MASK


def xxh64(data, seed=0):
    n, at = len(data), 0
    if n >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at <= n - 32:
            for i in range(4):
                word = int.from_bytes(data[at:at + 8], "little")
                lanes[i] = rotl((lanes[i] + word * P2) & MASK, 31) * P1 & MASK
                at += 8
        acc = sum(rotl(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            acc = ((acc ^ (rotl(lane * P2 & MASK, 31) * P1 & MASK)) * P1 + P4) & MASK
    else:
        acc = (seed + P5) & MASK
    acc = (acc + n) & MASK
    while at + 8 <= n:
        word = int.from_bytes(data[at:at + 8], "little")
        acc = (rotl(acc ^ (rotl(word * P2 & MASK, 31) * P1 & MASK), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= n:
        acc = (rotl(acc ^ (int.from_bytes(data[at:at + 4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        acc = rotl(acc ^ (byte * P5 & MASK), 11) * P1 & MASK
    acc = (acc ^ (acc >> 33)) * P2 & MASK
    acc = (acc ^ (acc >> 29)) * P3 & MASK
    return acc ^ (acc >> 32)


@dataclass(frozen=True)
class Variant:
    """How a client differs from the texts that Torc follows."""
    order: str = "locality"     # of fractional entries: "locality" (A42 in C-core's order), "key" (sorted), "listed"
    hash_key: bool = True       # A76
    canonical: bool = True      # address text as the socket address prints it, not as the resource has it
    groups: bool = True         # \1 in a rewrite's substitution is the group
    empty_rewrite: bool = True  # an empty substitution rewrites
    wrap: bool = True           # the combined hash stays within 64 bits
    absent_ends: bool = True    # a terminal policy ends the list though its own header is absent (A42's pseudo-code)
    normalised: bool = False    # A113's weights
    shares: bool = False        # A113's weights without its rounding
    empty_hash: bool = True     # an empty request_hash_header is a value (A76's pseudo-code; its prose says otherwise)
    cap: int = 4096             # of the client, on both sizes


TORC = Variant(empty_hash=False)
GO = Variant(order="key", canonical=False, groups=False, absent_ends=False)
CORE = Variant()
ENVOY = Variant(shares=True)
NODE = Variant(order="listed", hash_key=False, canonical=False, empty_rewrite=False, wrap=False)


def address_text(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def substitution(policy, variant):
    text = policy["substitution"]
    return text if variant.groups else text.replace("\\", "\\\\")


def request_hash(policies, headers, variant):
    """None when no policy gives a value: the request's hash is random then."""
    total = None
    for policy in policies:
        values = [value for name, value in headers if name == policy["header"]]
        if not values and not variant.absent_ends:
            continue
        if values and not policy["header"].endswith("-bin"):
            text = ",".join(values)
            if "regex" in policy and (policy["substitution"] or variant.empty_rewrite):
                text = re.sub(policy["regex"], substitution(policy, variant), text)
            value = xxh64(text.encode())
            if total is None:
                total = value
            elif variant.wrap:
                total = rotl(total, 1) ^ value
            else:
                total = ((total << 1) | (total >> 63)) ^ value
        if policy.get("terminal") and total is not None:
            break
    return total


def q31(weight, total):
    """A113: a share as UQ1.31."""
    return weight * (1 << 31) // total


def weighted_endpoints(mesh, variant):
    """(key, address that serves, weight) of the priority in use, in the order in which entries are allotted."""
    localities = [l for l in mesh["localities"] if l["priority"] == mesh["serving_priority"]]
    if variant.order == "locality":
        localities = sorted(localities, key=lambda l: (l["region"], l["zone"], l["sub_zone"]))
    locality_sum = sum(l["weight"] for l in localities)
    listed = []
    for locality in localities:
        endpoint_sum = sum(e["weight"] for e in locality["endpoints"])
        for e in locality["endpoints"]:
            host = str(ipaddress.ip_address(e["host"]))
            serves = address_text(host, e["port"])
            key = serves if variant.canonical else address_text(e["host"], e["port"])
            if variant.hash_key and e.get("hash_key"):
                key = e["hash_key"]
            weight = locality["weight"] * e["weight"]
            if variant.normalised:
                weight = max(1, (q31(locality["weight"], locality_sum) * q31(e["weight"], endpoint_sum)) >> 31)
            if variant.shares:
                weight = e["weight"] * (locality["weight"] / locality_sum) / endpoint_sum
            listed.append((key, serves, weight))
    if variant.order == "key":
        listed.sort(key=lambda e: e[0])
    return listed


def ring_entries(listed, smallest, largest, total):
    """The entries of a ring in its order: (hash, rank, address that serves)."""
    least = min(weight / total for _, _, weight in listed)
    scale = min(math.ceil(least * smallest) / least, largest)
    entries, made, wanted = [], 0.0, 0.0
    for rank, (key, serves, weight) in enumerate(listed):
        wanted += scale * (weight / total)
        i = 0
        while made < wanted:
            entries.append((xxh64(f"{key}_{i}".encode()), rank, serves))
            i += 1
            made += 1
    return sorted(entries)


def maglev_table(hosts, size):
    """The host in each slot, by the Maglev paper with Envoy's order (of keys), offset and skip, and Envoy's way to respect weights: in
    round i, a host of weight w takes a slot when i * w has reached what its slots so far cost it at the largest weight each."""
    total = sum(weight for _, weight in hosts)
    largest, table, free, rounds = max(weight for _, weight in hosts) / total, [None] * size, size, 0
    rows = [{"at": xxh64(key.encode()) % size, "skip": xxh64(key.encode(), 1) % (size - 1) + 1, "weight": weight / total, "spent": 0, "host": i}
            for i, (key, weight) in sorted(enumerate(hosts), key=lambda numbered: numbered[1][0])]
    while free:
        rounds += 1
        for row in rows:
            if rounds * row["weight"] < row["spent"] or not free:
                continue
            row["spent"] += largest
            while table[row["at"]] is not None:
                row["at"] = (row["at"] + row["skip"]) % size
            table[row["at"]] = row["host"]
            free -= 1
    return table


class Ring:
    def __init__(self, mesh, variant):
        listed = weighted_endpoints(mesh, variant)
        total = 1 if variant.shares else sum(weight for _, _, weight in listed)
        entries = ring_entries(listed, min(mesh["min_ring_size"], variant.cap), min(mesh["max_ring_size"], variant.cap), total)
        self.hashes = [entry[0] for entry in entries]
        self.serves = [entry[2] for entry in entries]

    def pick(self, value, dead):
        at = bisect_left(self.hashes, value) % len(self.hashes)
        for step in range(len(self.serves)):
            address = self.serves[(at + step) % len(self.serves)]
            if address not in dead:
                return address
        return None


def predict(mesh, calls, variant):
    """The address for each call; None where the pick is random."""
    ring = Ring(mesh, variant)
    dead = frozenset([*mesh["dead"], *mesh.get("stopped", ())])
    peers = []
    for headers in calls:
        value = request_hash(mesh["policies"], headers, variant)
        if mesh["kind"] == "empty_hash_header" and not variant.empty_hash and value == xxh64(b""):
            value = None
        peers.append(None if value is None else ring.pick(value, dead))
    return peers
