"""Torc for Python by ctypes: what a binding needs is functions alone. Nothing here knows the layout of a struct; options are set by
name (torc/options.h), outcomes are read by getters (torc/result.h). A call that waits gives up Python's lock, as ctypes does."""
import ctypes
import json

POINTER, TEXT, SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
INT, LONG = ctypes.c_int, ctypes.c_int64
SEND_LAST = 1

# What is returned, name, arguments.
FUNCTIONS = [
    (POINTER, "torc_options_new", TEXT, POINTER), (INT, "torc_options_set", POINTER, TEXT, TEXT, POINTER),
    (INT, "torc_options_set_pointer", POINTER, TEXT, POINTER, POINTER), (POINTER, "torc_options_data", POINTER),
    (None, "torc_options_free", POINTER), (INT, "torc_error_code", POINTER), (TEXT, "torc_error_text", POINTER),
    (None, "torc_error_free", POINTER), (POINTER, "torc_credentials_insecure"),
    (POINTER, "torc_channel_new", POINTER, TEXT, POINTER, POINTER), (None, "torc_channel_free", POINTER),
    (INT, "torc_channel_describe", POINTER, POINTER), (None, "torc_free", POINTER), (POINTER, "torc_metadata_new"),
    (INT, "torc_metadata_add", POINTER, TEXT, TEXT, SIZE), (TEXT, "torc_metadata_find", POINTER, TEXT, POINTER),
    (None, "torc_metadata_free", POINTER), (POINTER, "torc_unary", POINTER, TEXT, TEXT, SIZE, POINTER),
    (POINTER, "torc_stream_open", POINTER, TEXT, POINTER, POINTER),
    (INT, "torc_stream_send", POINTER, TEXT, SIZE, ctypes.c_uint, LONG), (INT, "torc_stream_want", POINTER, ctypes.c_uint32),
    (INT, "torc_stream_receive", POINTER, LONG, POINTER), (POINTER, "torc_stream_finish", POINTER), (None, "torc_stream_free", POINTER),
    (POINTER, "torc_message_data", POINTER), (SIZE, "torc_message_size", POINTER), (INT, "torc_result_code", POINTER),
    (TEXT, "torc_result_text", POINTER), (POINTER, "torc_result_error", POINTER), (POINTER, "torc_result_response", POINTER),
    (POINTER, "torc_result_headers", POINTER), (TEXT, "torc_result_peer", POINTER), (None, "torc_result_free", POINTER),
    (TEXT, "torc_strerror", INT), (TEXT, "torc_status_code_name", INT),
]


class Error(Exception):
    """A function of Torc failed, or an RPC ended with a status other than OK."""


class Torc:
    def __init__(self, library="libtorc.so.0.2"):
        self.lib = ctypes.CDLL(library)
        for result, name, *arguments in FUNCTIONS:
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name[len("torc_"):], function)

    def made(self, constructor, *arguments):
        """What a constructor returns, whose last argument is a torc_error **."""
        error = POINTER()
        result = constructor(*arguments, ctypes.byref(error))
        if error.value:
            text = self.error_text(error).decode()
            self.error_free(error)
            raise Error(text)
        return result

    def checked(self, code):
        if code < 0:
            raise Error(self.strerror(code).decode())
        return code

    def options(self, kind, **fields):
        """An options struct: numbers, switches and texts as text, pointers as c_void_p. To be freed by options_free."""
        made = self.made(self.options_new, kind.encode())
        try:
            for name, value in fields.items():
                setter = self.options_set_pointer if isinstance(value, POINTER) else self.options_set
                self.made(setter, made, name.encode(), value if isinstance(value, POINTER) else str(value).encode())
        except Error:
            self.options_free(made)
            raise
        return made

    def bytes_of(self, message):
        return ctypes.string_at(self.message_data(message), self.message_size(message))


class Channel:
    def __init__(self, torc, target, **fields):
        self.torc = torc
        options = torc.options("torc_channel_options", credentials=POINTER(torc.credentials_insecure()), **fields)
        try:
            self.handle = torc.made(torc.channel_new, None, target.encode(), torc.options_data(options))
        finally:
            torc.options_free(options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.torc.channel_free(self.handle)

    def describe(self):
        text = POINTER()
        self.torc.checked(self.torc.channel_describe(self.handle, ctypes.byref(text)))
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            self.torc.free(text)

    def unary(self, method, request, metadata=(), **fields):
        """Makes a unary RPC; returns the response and the peer."""
        torc = self.torc
        sent = torc.metadata_new()
        for name, value in metadata:
            torc.checked(torc.metadata_add(sent, name.encode(), value, len(value)))
        options = torc.options("torc_call_options", metadata=POINTER(sent), **fields)
        result = torc.unary(self.handle, method.encode(), request, len(request), torc.options_data(options))
        torc.options_free(options)
        torc.metadata_free(sent)
        return outcome(torc, result)

    def stream(self, method, **fields):
        return Stream(self, method, fields)


class Stream:
    def __init__(self, channel, method, fields):
        self.torc = channel.torc
        options = self.torc.options("torc_call_options", **fields)
        try:
            self.handle = self.torc.made(self.torc.stream_open, channel.handle, method.encode(), self.torc.options_data(options))
        finally:
            self.torc.options_free(options)

    def send(self, message, last=False):
        self.torc.checked(self.torc.stream_send(self.handle, message, len(message), SEND_LAST if last else 0, -1))

    def want(self, n):
        self.torc.checked(self.torc.stream_want(self.handle, n))

    def receive(self, timeout_ms=-1):
        """The next message; None at the end of the RPC."""
        message = POINTER()
        if self.torc.checked(self.torc.stream_receive(self.handle, timeout_ms, ctypes.byref(message))) == 0:
            return None
        return self.torc.bytes_of(message)

    def finish(self):
        result = self.torc.stream_finish(self.handle)
        self.torc.stream_free(self.handle)
        return outcome(self.torc, result)


def outcome(torc, result):
    """The response (None: none) and the peer of an RPC that succeeded; frees the result."""
    try:
        error = torc.result_error(result)
        if error:
            raise Error(f"{torc.status_code_name(torc.result_code(result)).decode()}: {torc.error_text(error).decode()}")
        response = torc.result_response(result)
        return (torc.bytes_of(response) if response else None), torc.result_peer(result).decode()
    finally:
        torc.result_free(result)
