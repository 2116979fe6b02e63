"""Calls an echo server (`torc backend`) by libtorc.so and ctypes. usage: echo.py LIBTORC.SO TARGET"""
import sys

from torc import Channel, Error, Torc


def refused(function, *arguments, **fields):
    try:
        function(*arguments, **fields)
    except Error as error:
        return str(error)
    raise SystemExit("nothing was refused")


def main(library, target):
    torc = Torc(library)
    with Channel(torc, target, user_agent="python_ffi/1", keepalive_time_ms=20000, retries="off") as channel:
        print("unary:", channel.unary("echo.Echo/Say", b"hello\0world", [("x-user", b"ada")], timeout_ms=60000)[0])
        print("headers:", b"x-user: ada" in channel.unary("torc.test.Backend/Headers", b"", [("x-user", b"ada")], timeout_ms=60000)[0])
        stream = channel.stream("echo.Echo/Chat", timeout_ms=60000)
        stream.want(3)
        for i in range(3):
            stream.send(b"message %d" % i, last=i == 2)
        while (message := stream.receive(60000)) is not None:
            print("stream:", message)
        stream.finish()  # fails with the status, unless it is OK
        print("finished")
        print("failed:", refused(channel.unary, "torc.test.Backend/Fail", b"7", timeout_ms=60000))
        print("late:", refused(channel.unary, "torc.test.Backend/Hang", b"", timeout_ms=-1))
        print("options:", refused(channel.unary, "echo.Echo/Say", b"", no_such_field=1))
        print("state:", channel.describe()["state"])
    print("channel:", refused(Channel, torc, "nosuch:x"))
    print("range:", refused(Channel, torc, target, connect_timeout_ms=-7))


if __name__ == "__main__":
    main(*sys.argv[1:])
