"""The cases of Go's protojson through libtorc-json (interop_json): what it takes and refuses, libtorc-json does, but for EXPECTED.

usage: json_cases.py PROGRAM FOLDER. FOLDER has set.pb and cases.json of test/interop/protojson. Prints "unequal: WHY"
lines, "protobuf VERSION" and "cases N unequal N expected N"."""
import json
import subprocess
import sys

sys.dont_write_bytecode = True
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from random_messages import ask, conclude

PROGRAM, FOLDER = sys.argv[1:3]
JSON, NAMES, DEFAULTS, NUMBERS, UNKNOWN, PARTIAL = 1, 4, 8, 16, 32, 64
# Cases in which Go differs from protobuf's other libraries, or takes more than the ProtoJSON page says, by the words that its
# description has.
EXPECTED = {
    "the values that a closed enum does not have are unknown fields, as in C++, Java and Python": (
        "repeated enum", "extensions of repeated fields", "proto2 enum set to", "UseEnumNumbers in repeated field"),
    "the JSON name of a group is that of its field, as in C++, Java and Python": ("proto group name", "UseProtoNames"),
    "durations have digits before the unit and behind the point, no plus sign, and may begin with 0": ("Duration ",),
    "paths of a FieldMask need not be identifiers": ("FieldMask ",),
    "a Value without a kind is null, as in Python": ("Value empty", "empty Value"),
    "writing does not ask for required fields": ("required field", "Any with missing required"),
    "an Any without @type is an error also where unknown fields are passed over": ("DiscardUnknown: Any without type",),
}
MOST_EXPECTED = 40


def wrong(case, kind, answer, message):
    """What differs, or None."""
    if bool(kind) == case["Fails"]:
        return f"{'taken' if kind else 'refused: ' + answer.decode()}"
    if case["Fails"]:
        return None
    if case["Kind"] == "write":
        ours, theirs = json.loads(answer), json.loads(bytes.fromhex(case["Text"]))
        return None if ours == theirs else f"JSON: {ours}\n  theirs: {theirs}"
    ours, theirs = (message.FromString(b).SerializePartialToString(deterministic=True) for b in (answer, bytes.fromhex(case["Wire"])))
    return None if ours == theirs else f"bytes: {ours.hex()}\n  theirs: {theirs.hex()}"


def what_of(case):
    what = JSON if case["Kind"] == "read" else 0
    for key, bit in (("Names", NAMES), ("Default", DEFAULTS), ("Numbers", NUMBERS), ("Unknown", UNKNOWN), ("Partial", PARTIAL)):
        what |= bit if case[key] else 0
    return what


def main():
    cases = [json.loads(line) for line in open(f"{FOLDER}/cases.json", encoding="utf-8")]
    cases = [case for case in cases if case["Wire"] != "none"]  # a message that has no bytes cannot be given
    names = sorted({case["Type"] for case in cases})
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(open(f"{FOLDER}/set.pb", "rb").read()).file
    waiting = {f.name: f for f in files}

    def add(name):
        f = waiting.pop(name, None)
        if f:
            for other in f.dependency:
                add(other)
            pool.Add(f)

    for name in list(waiting):
        add(name)
    unequal = expected = 0
    with subprocess.Popen([PROGRAM, f"{FOLDER}/set.pb", *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for case in cases:
            given = bytes.fromhex(case["Text" if case["Kind"] == "read" else "Wire"])
            kind, answer = ask(program, given, what_of(case), names.index(case["Type"]))
            message = message_factory.GetMessageClass(pool.FindMessageTypeByName(case["Type"]))
            difference = wrong(case, kind, answer, message)
            if difference and any(words in case["Desc"] for group in EXPECTED.values() for words in group):
                expected += 1
            elif difference:
                unequal += 1
                print(f"unequal: {case['Kind']} {case['Type']}: {case['Desc']}: {difference}\n  {bytes.fromhex(case['Text'])!r}"[:900])
        program.stdin.close()
    if expected > MOST_EXPECTED:
        unequal += 1
        print(f"unequal: {expected} cases differ as expected, {MOST_EXPECTED} at most")
    conclude(f"cases {len(cases)} unequal {unequal} expected {expected}")


main()
