"""Many breaks in one copy of the tree, each asleep until the environment names its number.

A function that a break edits is there once as it is and once for each of its breaks. What
callers reach chooses by SLUICE_BREAK:

    static int
    f(int a);
    static int
    f__0(int a)                   f as it is
    static int
    f__7(int a)                   f with break 7
    static int
    f(int a)
    {
            switch (planted_break) {
            case 7: return f__7(a);
            }
            return f__0(a);
    }

So one build serves hundreds of breaks. Only functions of C are woven; the other breaks are
planted one at a time.
"""
import collections
import re

HEADER = "src/base/planted.h"
HEADER_TEXT = """#ifndef PLANTED_H
#define PLANTED_H

#include <stdlib.h>

static int planted_break;

/* Before main, so that threads only read it. */
__attribute__((constructor)) static inline void
planted_read(void)
{
	const char *const number = getenv("SLUICE_BREAK");

	planted_break = number ? atoi(number) : 0;
}

#endif
"""
HEAD = re.compile(r"(?P<type>(?:\w.*\n)?)(?P<name>\w+)\((?P<params>[^{;]*)\)\s*\{")


class Unfit(Exception):
    """Why a function cannot be woven."""


def split(params):
    """The parameters, apart at the commas outside of brackets."""
    depth, part = 0, ""
    for c in params:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            yield part
            part = ""
        else:
            part += c
    yield part


def argument(param):
    """The name of a parameter."""
    param = re.sub(r"/\*.*?\*/", "", param, flags=re.S).strip()
    pointer = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)", param)  # to a function
    name = pointer or re.search(r"(\w+)$", re.sub(r"(?:\[[^\]]*\]\s*)+$", "", param).strip())
    if not name or "..." in param or "__attribute__" in param:
        raise Unfit(param)
    return name[1]


def arguments(params):
    if params.strip() == "void":
        return ""
    return ", ".join(map(argument, split(params)))


class Function:
    """A function of a file, and its versions."""

    def __init__(self, name, text):
        head = HEAD.match(text)
        if not head or head["name"] != name:
            raise Unfit(name)
        self.name, self.text, self.head = name, text, head
        self.arguments = arguments(head["params"])
        words = re.sub(r"\b(?:static|inline)\b", "", head["type"]).split()
        self.gives = words != ["void"]
        self.versions = {}  # {number: text}

    def renamed(self, text, number):
        at = self.head.start("name")
        return f"{text[:at]}{self.name}__{number}{text[at + len(self.name):]}"

    def call(self, number):
        call = f"{self.name}__{number}({self.arguments});"
        return f"return {call}" if self.gives else f"{call} return;"

    def woven(self):
        versions = [self.renamed(text, number) for number, text in [(0, self.text), *self.versions.items()]]
        cases = "".join(f"\tcase {number}: {self.call(number)}\n" for number in self.versions)
        head = self.text[:self.head.end() - 1].strip()
        return "\n".join([f"{head};", *versions, f"{head}\n{{\n\tswitch (planted_break) {{\n{cases}\t}}\n"
                          f"\t{self.call(0)}\n}}\n"])


class Loom:
    """What is woven into which function."""

    def __init__(self, sources, definitions):
        self.sources = sources
        self.definitions = definitions
        self.functions = collections.defaultdict(dict)  # {path: {(start, end): Function}}
        self.paths = {}  # {break: its files}
        self.numbers = {}  # {break: its number}

    def place(self, edit):
        """(path, span of the function, span of the text in it)."""
        path, start, end = edit.find(self.sources)
        if not path.endswith((".c", ".h")):
            raise Unfit(path)
        for span in self.definitions(path, self.sources[path], edit.name):
            if span[0] <= start and end <= span[1]:
                return path, span, (start - span[0], end - span[0])
        raise Unfit(edit.name)

    def add(self, name, edits):
        """Raises Unfit, or what edit.find raises; then nothing was added."""
        edited = {}  # {(path, span): (function, text)}
        for edit in edits:
            path, span, (start, end) = self.place(edit)
            if (path, span) in edited:
                raise Unfit("two edits of a function")
            function = self.functions[path].get(span) or Function(edit.name, self.sources[path][slice(*span)])
            if start < function.head.end():
                raise Unfit("the head of a function")
            text = function.text
            edited[path, span] = function, text[:start] + "\n".join(edit.new).strip() + text[end:]
        number = self.numbers[name] = len(self.numbers) + 1
        self.paths[name] = {path for path, _ in edited}
        for (path, span), (function, text) in edited.items():
            self.functions[path][span] = function
            function.versions[number] = text

    def woven(self, path):
        content = self.sources[path]
        for (start, end), function in sorted(self.functions[path].items(), reverse=True):
            content = content[:start] + function.woven() + content[end:]
        return f'#include "{HEADER.partition("/")[2]}"\n{content}'

    def files(self, without):
        """{path: content} of all that differs. `without`: paths that stay as they are."""
        paths = [path for path, functions in self.functions.items() if functions]
        return {HEADER: HEADER_TEXT,
                **{path: self.sources[path] if path in without else self.woven(path) for path in paths}}

    def awake(self, without):
        """{break: number} of those that are there whole."""
        return {name: number for name, number in self.numbers.items() if not self.paths[name] & without}
