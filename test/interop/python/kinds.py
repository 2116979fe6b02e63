"""Random messages of test/stubs, packed by Python's protobuf, through Torc's generated code (interop_stubs) and back: equal. A message that
lacks a required field is refused with the name of one that Python's protobuf misses, too.

usage: kinds.py PROGRAM FOLDER-OF-PB2 COUNT SEED. Prints "messages N", then how many bytes they had."""
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, sys.argv[2])
import google.protobuf
import kinds_pb2
import other_pb2
from google.protobuf.descriptor import FieldDescriptor as F

PROGRAM, COUNT, SEED = sys.argv[1], int(sys.argv[3]), sys.argv[4]
TYPES = (kinds_pb2.Kinds, other_pb2.Old, other_pb2.Needs)
RANGES = {F.TYPE_INT32: (-2**31, 2**31 - 1), F.TYPE_SINT32: (-2**31, 2**31 - 1), F.TYPE_SFIXED32: (-2**31, 2**31 - 1),
          F.TYPE_UINT32: (0, 2**32 - 1), F.TYPE_FIXED32: (0, 2**32 - 1),
          F.TYPE_INT64: (-2**63, 2**63 - 1), F.TYPE_SINT64: (-2**63, 2**63 - 1), F.TYPE_SFIXED64: (-2**63, 2**63 - 1),
          F.TYPE_UINT64: (0, 2**64 - 1), F.TYPE_FIXED64: (0, 2**64 - 1)}
FLOATS = [0.0, 1.5, -2.25, 1e-40, 3.0e38, float("inf"), float("-inf"), float("nan")]
KEPT = 0.97  # of the required fields
rng = random.Random(SEED)


def text():
    """Without NUL, which Torc refuses: a C string ends there."""
    return "".join(rng.choice("aZ0 _\n\u00e4\u20ac\U0001f600\x01\x7f") for _ in range(rng.choice((0, 1, 3, 20))))


def number(low, high):
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice((low, high))
    return rng.randint(low, high) if kind == 1 else max(low, min(high, rng.randint(-3, 130)))


def scalar(field):
    if field.type in RANGES:
        return number(*RANGES[field.type])
    if field.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT):
        return rng.choice(FLOATS)
    if field.type == F.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == F.TYPE_STRING:
        return text()
    if field.type == F.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 5, 200)))
    values = [v.number for v in field.enum_type.values]
    # An enum of proto3 is open: numbers without a name pass.
    return rng.choice(values + [77, -1] if field.enum_type.file.name == "kinds.proto" else values)


def fill_map(message, field, depth):
    entries, (key, value) = getattr(message, field.name), field.message_type.fields
    for _ in range(rng.randrange(4)):
        if value.type == F.TYPE_MESSAGE:
            fill(entries[scalar(key)], depth)
        else:
            entries[scalar(key)] = scalar(value)


def fill_field(message, field, depth):
    many = field.is_repeated
    if field.type == F.TYPE_MESSAGE:
        if field.message_type.GetOptions().map_entry:
            fill_map(message, field, depth - 1)
        elif depth > 0 and many:
            for _ in range(rng.randrange(3)):
                fill(getattr(message, field.name).add(), depth - 1)
        elif depth > 0:
            getattr(message, field.name).SetInParent()
            fill(getattr(message, field.name), depth - 1)
    elif many:
        getattr(message, field.name).extend(scalar(field) for _ in range(rng.randrange(5)))
    else:
        setattr(message, field.name, scalar(field))


def fill(message, depth):
    dense = rng.choice((0.05, 0.3, 0.9))
    for field in message.DESCRIPTOR.fields:
        if rng.random() < (KEPT if field.is_required else dense):
            fill_field(message, field, depth)


def read(stream, n):
    data = stream.read(n)
    if len(data) != n:
        raise SystemExit("the program ended")
    return data


def ask(program, which, packed):
    program.stdin.write(struct.pack("<BI", which, len(packed)) + packed)
    program.stdin.flush()
    kind, size = struct.unpack("<BI", read(program.stdout, 5))
    return kind, read(program.stdout, size)


def missing_in(message, path=""):
    """The paths of required fields that are not set; protobuf's own FindInitializationErrors crashes with some messages of upb's."""
    for field in message.DESCRIPTOR.fields:
        if field.is_required and not message.HasField(field.name):
            yield path + field.name
    for field, value in message.ListFields():
        if field.type == F.TYPE_MESSAGE:
            is_map = field.message_type.GetOptions().map_entry
            if is_map and field.message_type.fields_by_name["value"].type != F.TYPE_MESSAGE:
                continue
            for inner in value.values() if is_map else value if field.is_repeated else [value]:
                yield from missing_in(inner, path + field.name + ("[]." if is_map or field.is_repeated else ".") + ("value." if is_map else ""))


def main():
    total = unequal = refused = 0
    with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for i in range(COUNT):
            which = (0, 1, 2, 0)[i % 4]
            message = TYPES[which]()
            fill(message, rng.choice((0, 1, 1, 2)))
            packed = message.SerializePartialToString()
            missing = set(missing_in(message))
            if bool(missing) == message.IsInitialized():
                raise SystemExit(f"message {i} of seed {SEED}: protobuf does not miss {missing}")
            total += len(packed)
            kind, answer = ask(program, which, packed)
            back = TYPES[which].FromString(answer) if kind else None
            refusal = re.fullmatch(r"[\w.]+: field (.+): is required, and missing", answer.decode()) if not kind else None
            if refusal and re.sub(r"\[\d+\]", "[]", refusal[1]) in missing:
                refused += 1
                continue
            if not kind or missing or back.SerializePartialToString(deterministic=True) != message.SerializePartialToString(deterministic=True):
                unequal += 1
                print(f"unequal: message {i} of seed {SEED}: {answer if not kind else answer.hex()} of {packed.hex()}"[:2000])
                if unequal > 5:
                    break
        program.stdin.close()
    print(f"protobuf {google.protobuf.__version__}")
    print(f"messages {COUNT} bytes {total} unequal {unequal}")
    if not COUNT // 100 < refused < COUNT // 2:
        raise SystemExit(f"{refused} of {COUNT} messages lacked a required field")
    return 1 if unequal or program.returncode else 0


sys.exit(main())
