"""Random messages of any type, and the pipe to a program that answers what it makes of one: for json_kinds.py, json_cases.py, kinds.py."""
import random
import struct

import google.protobuf
from google.protobuf.descriptor import FieldDescriptor as F

RANGES = {F.TYPE_INT32: (-2**31, 2**31 - 1), F.TYPE_SINT32: (-2**31, 2**31 - 1), F.TYPE_SFIXED32: (-2**31, 2**31 - 1),
          F.TYPE_UINT32: (0, 2**32 - 1), F.TYPE_FIXED32: (0, 2**32 - 1),
          F.TYPE_INT64: (-2**63, 2**63 - 1), F.TYPE_SINT64: (-2**63, 2**63 - 1), F.TYPE_SFIXED64: (-2**63, 2**63 - 1),
          F.TYPE_UINT64: (0, 2**64 - 1), F.TYPE_FIXED64: (0, 2**64 - 1)}


class Messages:
    """A subclass sets what differs: the alphabet of strings, the floats, the share of required fields that are set. It
    may fill types of its own in another way."""
    alphabet = "aZ0 _\n\u00e4\u20ac\U0001f600\x01\x7f"
    floats = [0.0, 1.5, -2.25, 1e-40, 3.0e38, float("inf"), float("-inf"), float("nan")]
    required = 1.0

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def text(self):
        return "".join(self.rng.choice(self.alphabet) for _ in range(self.rng.choice((0, 1, 3, 20))))

    def number(self, low, high):
        kind = self.rng.randrange(4)
        if kind == 0:
            return self.rng.choice((low, high))
        return self.rng.randint(low, high) if kind == 1 else max(low, min(high, self.rng.randint(-3, 130)))

    def real(self, _field):
        return self.rng.choice(self.floats)

    def scalar(self, field):
        if field.type in RANGES:
            return self.number(*RANGES[field.type])
        if field.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT):
            return self.real(field)
        if field.type == F.TYPE_BOOL:
            return self.rng.random() < 0.5
        if field.type == F.TYPE_STRING:
            return self.text()
        if field.type == F.TYPE_BYTES:
            return self.rng.randbytes(self.rng.choice((0, 1, 2, 3, 5, 200)))
        if field.enum_type.name == "NullValue":
            return 0
        values = [v.number for v in field.enum_type.values]
        # Numbers without a name pass where an enum is open.
        return self.rng.choice(values if field.enum_type.is_closed else values + [77, -1])

    def fill_map(self, message, field, depth):
        entries, (key, value) = getattr(message, field.name), field.message_type.fields
        for _ in range(self.rng.randrange(4)):
            if value.type == F.TYPE_MESSAGE:
                self.fill(entries[self.scalar(key)], depth)
            else:
                entries[self.scalar(key)] = self.scalar(value)

    def fill_field(self, message, field, depth):
        name = field.name
        if field.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
            if field.message_type.GetOptions().map_entry:
                self.fill_map(message, field, depth - 1)
            elif depth > 0 and field.is_repeated:
                for _ in range(self.rng.randrange(3)):
                    self.fill(getattr(message, name).add(), depth - 1)
            elif depth > 0 or (field.is_required and self.required == 1):
                getattr(message, name).SetInParent()
                self.fill(getattr(message, name), depth - 1)
        elif field.is_repeated:
            getattr(message, name).extend(self.scalar(field) for _ in range(self.rng.randrange(5)))
        else:
            setattr(message, name, self.scalar(field))

    def fill(self, message, depth):
        dense = self.rng.choice((0.05, 0.3, 0.9))
        for field in message.DESCRIPTOR.fields:
            if self.rng.random() < (self.required if field.is_required else dense):
                self.fill_field(message, field, depth)


def read(stream, n):
    data = stream.read(n)
    if len(data) != n:
        raise SystemExit("the program ended")
    return data


def ask(program, given, *head):
    """Asks about `given`, with the bytes `head` before it. Returns the kind of the answer, 0 for an error, and the answer."""
    program.stdin.write(bytes(head) + struct.pack("<I", len(given)) + given)
    program.stdin.flush()
    kind, size = struct.unpack("<BI", read(program.stdout, 5))
    return kind, read(program.stdout, size)


def conclude(counts):
    """Prints the last two lines, which the suites read."""
    print(f"protobuf {google.protobuf.__version__}")
    print(counts)
