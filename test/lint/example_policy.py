#!/usr/bin/env python3
"""The policy in docs/internals/adding-a-policy.md is the one that test/unit/lb/policies/example_test.c compiles."""
import argparse
import pathlib
import re
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True)
parser.add_argument("--build")
source = pathlib.Path(parser.parse_args().source)

test = (source / "test/unit/lb/policies/example_test.c").read_text()
page = (source / "docs/internals/adding-a-policy.md").read_text()
code = re.search(r"/\* example: begin \*/\n(.*?)/\* example: end \*/\n", test, re.S)
shown = re.search(r"```c\n(.*?)```\n", page, re.S)
if not code or not shown:
    sys.exit("example_policy: no marks in example_test.c, or no C block in adding-a-policy.md")
if code.group(1) != shown.group(1):
    sys.exit("example_policy: the code block of docs/internals/adding-a-policy.md differs from example_test.c")
