"""Random messages of test/json through libtorc-json (interop_json) and Python's protobuf, both ways: equal.

usage: json_kinds.py PROGRAM FOLDER-OF-PB2-AND-SET COUNT SEED. Prints "messages N bytes N unequal N"."""
import json
import random
import struct
import subprocess
import sys

sys.path.insert(0, sys.argv[2])
import all_pb2
import google.protobuf
import old_pb2
from google.protobuf import any_pb2, json_format
from google.protobuf.descriptor import FieldDescriptor as F

PROGRAM, FOLDER, COUNT, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
TYPES = (all_pb2.All, old_pb2.Old, old_pb2.Demanding)
RANGES = {F.TYPE_INT32: (-2**31, 2**31 - 1), F.TYPE_SINT32: (-2**31, 2**31 - 1), F.TYPE_SFIXED32: (-2**31, 2**31 - 1),
          F.TYPE_UINT32: (0, 2**32 - 1), F.TYPE_FIXED32: (0, 2**32 - 1),
          F.TYPE_INT64: (-2**63, 2**63 - 1), F.TYPE_SINT64: (-2**63, 2**63 - 1), F.TYPE_SFIXED64: (-2**63, 2**63 - 1),
          F.TYPE_UINT64: (0, 2**64 - 1), F.TYPE_FIXED64: (0, 2**64 - 1)}
SPECIAL = [0.0, -0.0, 1.5, -2.25, 1e-40, 3.0e38, float("inf"), float("-inf"), float("nan")]
JSON, INDENT, NAMES, DEFAULTS, NUMBERS = 1, 2, 4, 8, 16
rng = random.Random(SEED)


def text():
    return "".join(rng.choice("aZ0 _\n\u00e4\u20ac\U0001f600\x00\x01\x7f\"\\/\u2028<") for _ in range(rng.choice((0, 1, 3, 20))))


def number(low, high):
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice((low, high))
    return rng.randint(low, high) if kind == 1 else max(low, min(high, rng.randint(-3, 130)))


def real(field, finite=False):
    kind = rng.randrange(3)
    if kind == 0:
        value = rng.choice(SPECIAL)
    elif kind == 1:
        value = rng.uniform(-1e6, 1e6) if rng.random() < 0.5 else float(rng.randint(-2**53, 2**53))
    else:
        value = struct.unpack("<d", rng.randbytes(8))[0]
    if field is None or field.type == F.TYPE_DOUBLE:
        pass
    elif kind == 2:
        value = struct.unpack("<f", rng.randbytes(4))[0]
    if value != value:
        value = float("nan")  # of many, which are one in JSON
    return 0.5 if finite and (value != value or abs(value) == float("inf")) else value


def scalar(field):
    if field.type in RANGES:
        return number(*RANGES[field.type])
    if field.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT):
        return real(field)
    if field.type == F.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == F.TYPE_STRING:
        return text()
    if field.type == F.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 2, 3, 5, 200)))
    if field.enum_type.name == "NullValue":
        return 0
    values = [v.number for v in field.enum_type.values]
    return rng.choice(values if field.enum_type.is_closed else values + [77, -1])


def fill_value(value, depth):
    kind = rng.randrange(6 if depth > 0 else 4)
    if kind == 0:
        value.null_value = 0
    elif kind == 1:
        value.number_value = real(None, True)
    elif kind == 2:
        value.string_value = text()
    elif kind == 3:
        value.bool_value = rng.random() < 0.5
    elif kind == 4:
        value.struct_value.SetInParent()
        fill_struct(value.struct_value, depth - 1)
    else:
        value.list_value.SetInParent()
        fill_list(value.list_value, depth - 1)


def fill_struct(message, depth):
    for _ in range(rng.randrange(4)):
        fill_value(message.fields[text()], depth)


def fill_list(message, depth):
    for _ in range(rng.randrange(4)):
        fill_value(message.values.add(), depth)


def fill_any(message, depth):
    kind = rng.randrange(4)
    if kind == 0:
        return
    content = rng.choice((all_pb2.All, old_pb2.Old, all_pb2.All.Inner, any_pb2.Any, *WELL_KNOWN.values()))()
    message.SetInParent()
    fill(content, depth - 1)
    message.Pack(content)


def fill_duration(message, _depth):
    sign = rng.choice((-1, 1))
    message.seconds = sign * rng.choice((0, 1, 315576000000, rng.randrange(10**9)))
    nanos = sign * rng.choice((0, 1, 999999999, 1000000 * rng.randrange(1000), 1000 * rng.randrange(1000000)))
    message.nanos = 0 if abs(message.seconds) == 315576000000 else nanos


def fill_timestamp(message, _depth):
    message.seconds = rng.choice((0, -62135596800, 253402300799, rng.randint(-62135596800, 253402300799)))
    message.nanos = rng.choice((0, 1, 999999999, 1000000 * rng.randrange(1000), 1000 * rng.randrange(1000000)))


def fill_mask(message, _depth):
    message.paths.extend(rng.choice(("a", "foo_bar", "a.b_c.d", "x1")) for _ in range(rng.randrange(4)))


FILLS = {"google.protobuf.Any": fill_any, "google.protobuf.Duration": fill_duration,
         "google.protobuf.Timestamp": fill_timestamp, "google.protobuf.FieldMask": fill_mask,
         "google.protobuf.Struct": fill_struct, "google.protobuf.ListValue": fill_list, "google.protobuf.Value": fill_value}
WELL_KNOWN = {f.name: getattr(all_pb2.All(), f.name).__class__ for f in all_pb2.All.DESCRIPTOR.fields
              if f.name.startswith("w_") and not f.is_repeated and f.name != "w_empty"}


def fill_map(message, field, depth):
    entries, (key, value) = getattr(message, field.name), field.message_type.fields
    for _ in range(rng.randrange(4)):
        if value.type == F.TYPE_MESSAGE:
            fill(entries[scalar(key)], depth)
        else:
            entries[scalar(key)] = scalar(value)


def fill_field(message, field, depth):
    many = field.is_repeated
    name = field.name
    if field.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        if field.message_type.GetOptions().map_entry:
            fill_map(message, field, depth - 1)
        elif depth > 0 and many:
            for _ in range(rng.randrange(3)):
                fill(getattr(message, name).add(), depth - 1)
        elif depth > 0 or field.is_required:
            getattr(message, name).SetInParent()
            fill(getattr(message, name), depth - 1)
    elif many:
        getattr(message, name).extend(scalar(field) for _ in range(rng.randrange(5)))
    else:
        setattr(message, name, scalar(field))


def fill_extensions(message):
    if rng.random() < 0.3:
        message.Extensions[old_pb2.text_extension] = text()
    if rng.random() < 0.3:
        message.Extensions[old_pb2.list_extension].extend([1, -2**63])
    if rng.random() < 0.3:
        message.Extensions[old_pb2.closed_extension] = 2
    if rng.random() < 0.3:
        message.Extensions[old_pb2.Old.nested_extension].o_int32 = 3


def fill(message, depth):
    special = FILLS.get(message.DESCRIPTOR.full_name)
    if special:
        special(message, depth)
        return
    dense = rng.choice((0.05, 0.3, 0.9))
    for field in message.DESCRIPTOR.fields:
        if field.is_required or rng.random() < dense:
            fill_field(message, field, depth)
    if isinstance(message, old_pb2.Old):
        fill_extensions(message)


def read(stream, n):
    data = stream.read(n)
    if len(data) != n:
        raise SystemExit("the program ended")
    return data


def ask(program, what, which, given):
    program.stdin.write(struct.pack("<BBI", what, which, len(given)) + given)
    program.stdin.flush()
    kind, size = struct.unpack("<BI", read(program.stdout, 5))
    return kind, read(program.stdout, size)


def same(a, b):
    """The bytes within an Any may have their fields in another order."""
    return json_format.MessageToDict(a) == json_format.MessageToDict(b) if b"type.googleapis.com" in b.SerializeToString() else a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def options_of(what):
    return {"preserving_proto_field_name": bool(what & NAMES), "use_integers_for_enums": bool(what & NUMBERS),
            "always_print_fields_with_no_presence": bool(what & DEFAULTS), "indent": 2 if what & INDENT else None}


def difference(ours, theirs, path="$"):
    """Where two values of JSON differ first; None: nowhere."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *theirs]:
            if key not in ours or key not in theirs:
                return f"{path}.{key}: {ours.get(key)!r}, theirs {theirs.get(key)!r}"
            found = difference(ours[key], theirs[key], f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return next((d for d in (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs))) if d), None)
    if ours is None and theirs == 0:  # NullValue with numbers for enums: null, as C++ writes it
        return None
    if isinstance(ours, float) and isinstance(theirs, float) and 0 < abs(ours) < 1.2e-38 and struct.pack("<f", ours) == struct.pack("<f", theirs):
        return None  # the smallest floats have fewer digits than Python writes
    return None if ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool) else f"{path}: {ours!r}, theirs {theirs!r}"


def check(program, message, which):
    """Returns what is wrong, or None."""
    what = rng.choice((0, INDENT, NAMES, DEFAULTS, NUMBERS, NAMES | DEFAULTS | NUMBERS | INDENT))
    packed = message.SerializeToString()
    kind, answer = ask(program, what, which, packed)
    if not kind:
        return f"to JSON: {answer.decode()}"
    theirs = json_format.MessageToJson(message, **options_of(what))
    differs = difference(json.loads(answer), json.loads(theirs))
    if differs:
        return f"JSON: {differs}"
    if not same(json_format.Parse(answer.decode(), TYPES[which](), max_recursion_depth=300), message):
        return f"read by Python: {answer.decode()}"
    kind, back = ask(program, JSON, which, theirs.encode())
    if not kind:
        return f"from JSON: {back.decode()}\n  {theirs}"
    if not same(TYPES[which].FromString(back), message):
        return f"from JSON: {back.hex()}\n  {theirs}"
    return None


def main():
    total = unequal = 0
    names = [t.DESCRIPTOR.full_name for t in TYPES]
    with subprocess.Popen([PROGRAM, f"{FOLDER}/set.pb", *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for i in range(COUNT):
            which = rng.choice((0, 0, 0, 1, 2))
            message = TYPES[which]()
            fill(message, rng.choice((0, 1, 1, 2)))
            total += message.ByteSize()
            wrong = check(program, message, which)
            if wrong:
                unequal += 1
                print(f"unequal: message {i} of seed {SEED}: {wrong}"[:3000])
                if unequal > 5:
                    break
        program.stdin.close()
    print(f"protobuf {google.protobuf.__version__}")
    print(f"messages {COUNT} bytes {total} unequal {unequal}")
    return 1 if unequal or program.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
