"""Random messages of test/json through libtorc-json (interop_json) and Python's protobuf, both ways: equal.

usage: json_kinds.py PROGRAM FOLDER-OF-PB2-AND-SET COUNT SEED. Prints "unequal: WHY" lines, "protobuf VERSION" and
"messages N bytes N unequal N"."""
import json
import math
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import all_pb2
import old_pb2
from google.protobuf import any_pb2, json_format
from google.protobuf.descriptor import FieldDescriptor as F
from random_messages import Messages, ask, conclude

PROGRAM, FOLDER, COUNT, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
TYPES = (all_pb2.All, old_pb2.Old, old_pb2.Demanding, old_pb2.Picky)
JSON, INDENT, NAMES, DEFAULTS, NUMBERS = 1, 2, 4, 8, 16


class Json(Messages):
    """Well-known types have the values that have a JSON form, and Old has extensions."""
    alphabet = "aZ0 _\n\u00e4\u20ac\U0001f600\x00\x01\x7f\"\\/\u2028<"
    floats = [0.0, -0.0, 1.5, -2.25, 1e-40, 3.0e38, float("inf"), float("-inf"), float("nan")]

    def real(self, field):
        kind = self.rng.randrange(3)
        if kind == 0:
            value = self.rng.choice(self.floats)
        elif kind == 1:
            value = self.rng.uniform(-1e6, 1e6) if self.rng.random() < 0.5 else float(self.rng.randint(-2**53, 2**53))
        else:
            value = struct.unpack(*(("<f", self.rng.randbytes(4)) if field.type == F.TYPE_FLOAT else ("<d", self.rng.randbytes(8))))[0]
        return float("nan") if value != value else value  # of many, which are one in JSON

    def fill_value(self, value, depth):
        kind = self.rng.randrange(6 if depth > 0 else 4)
        if kind == 0:
            value.null_value = 0
        elif kind == 1:
            number = self.real(value.DESCRIPTOR.fields_by_name["number_value"])
            value.number_value = number if math.isfinite(number) else 0.5
        elif kind == 2:
            value.string_value = self.text()
        elif kind == 3:
            value.bool_value = self.rng.random() < 0.5
        elif kind == 4:
            value.struct_value.SetInParent()
            self.fill_struct(value.struct_value, depth - 1)
        else:
            value.list_value.SetInParent()
            self.fill_list(value.list_value, depth - 1)

    def fill_struct(self, message, depth):
        for _ in range(self.rng.randrange(4)):
            self.fill_value(message.fields[self.text()], depth)

    def fill_list(self, message, depth):
        for _ in range(self.rng.randrange(4)):
            self.fill_value(message.values.add(), depth)

    def fill_any(self, message, depth):
        if self.rng.randrange(4) == 0:
            return
        content = self.rng.choice((all_pb2.All, old_pb2.Old, all_pb2.All.Inner, any_pb2.Any, *WELL_KNOWN.values()))()
        message.SetInParent()
        self.fill(content, depth - 1)
        message.Pack(content)

    def nanos(self):
        return self.rng.choice((0, 1, 999999999, 1000000 * self.rng.randrange(1000), 1000 * self.rng.randrange(1000000)))

    def fill_duration(self, message, _depth):
        sign = self.rng.choice((-1, 1))
        message.seconds = sign * self.rng.choice((0, 1, 315576000000, self.rng.randrange(10**9)))
        message.nanos = 0 if abs(message.seconds) == 315576000000 else sign * self.nanos()

    def fill_timestamp(self, message, _depth):
        message.seconds = self.rng.choice((0, -62135596800, 253402300799, self.rng.randint(-62135596800, 253402300799)))
        message.nanos = self.nanos()

    def fill_mask(self, message, _depth):
        message.paths.extend(self.rng.choice(("a", "foo_bar", "a.b_c.d", "x1")) for _ in range(self.rng.randrange(4)))

    def fill_extensions(self, message):
        if self.rng.random() < 0.3:
            message.Extensions[old_pb2.text_extension] = self.text()
        if self.rng.random() < 0.3:
            message.Extensions[old_pb2.list_extension].extend([1, -2**63])
        if self.rng.random() < 0.3:
            message.Extensions[old_pb2.closed_extension] = 2
        if self.rng.random() < 0.3:
            message.Extensions[old_pb2.Old.nested_extension].o_int32 = 3

    def fill(self, message, depth):
        special = FILLS.get(message.DESCRIPTOR.full_name)
        if special:
            special(self, message, depth)
            return
        super().fill(message, depth)
        if isinstance(message, old_pb2.Old):
            self.fill_extensions(message)


FILLS = {"google.protobuf.Any": Json.fill_any, "google.protobuf.Duration": Json.fill_duration,
         "google.protobuf.Timestamp": Json.fill_timestamp, "google.protobuf.FieldMask": Json.fill_mask,
         "google.protobuf.Struct": Json.fill_struct, "google.protobuf.ListValue": Json.fill_list, "google.protobuf.Value": Json.fill_value}
WELL_KNOWN = {f.name: getattr(all_pb2.All(), f.name).__class__ for f in all_pb2.All.DESCRIPTOR.fields
              if f.name.startswith("w_") and not f.is_repeated and f.name != "w_empty"}


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


def check(program, rng, message, which):
    """Returns what is wrong, or None."""
    what = rng.choice((0, INDENT, NAMES, DEFAULTS, NUMBERS, NAMES | DEFAULTS | NUMBERS | INDENT))
    packed = message.SerializeToString()
    kind, answer = ask(program, packed, what, which)
    if not kind:
        return f"to JSON: {answer.decode()}"
    theirs = json_format.MessageToJson(message, **options_of(what))
    differs = difference(json.loads(answer), json.loads(theirs))
    if differs:
        return f"JSON: {differs}"
    if not same(json_format.Parse(answer.decode(), TYPES[which](), max_recursion_depth=300), message):
        return f"read by Python: {answer.decode()}"
    kind, back = ask(program, theirs.encode(), JSON, which)
    if not kind:
        return f"from JSON: {back.decode()}\n  {theirs}"
    if not same(TYPES[which].FromString(back), message):
        return f"from JSON: {back.hex()}\n  {theirs}"
    return None


def main():
    total = unequal = 0
    messages = Json(SEED)
    names = [t.DESCRIPTOR.full_name for t in TYPES]
    with subprocess.Popen([PROGRAM, f"{FOLDER}/set.pb", *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for i in range(COUNT):
            which = messages.rng.choice((0, 0, 0, 1, 2, 3))
            message = TYPES[which]()
            messages.fill(message, messages.rng.choice((0, 1, 1, 2)))
            total += message.ByteSize()
            wrong = check(program, messages.rng, message, which)
            if wrong:
                unequal += 1
                print(f"unequal: message {i} of seed {SEED}: {wrong}"[:3000])
                if unequal > 5:
                    break
        program.stdin.close()
    conclude(f"messages {COUNT} bytes {total} unequal {unequal}")
    return 1 if unequal or program.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
