#!/usr/bin/python3 -B
"""The files of the console as C arrays, plain and gzipped, for src/api/console/.

    pack.py OUT.c FILE...
"""
import gzip
import hashlib
import sys
from pathlib import Path

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
MOST = 200_000  # bytes of all files, gzipped


def array(name, data):
    yield f"static const unsigned char {name}[] = {{\n"
    for at in range(0, len(data), 32):
        yield "\t" + ",".join(map(str, data[at:at + 32])) + ",\n"
    yield "};\n"


def as_c(paths):
    rows, total = [], 0
    yield '#include "api/console/console.h"\n\n'
    for n, path in enumerate(paths):
        plain = path.read_bytes()
        packed = gzip.compress(plain, 9, mtime=0)
        total += len(packed)
        etag = hashlib.sha256(plain).hexdigest()[:20]
        yield from array(f"plain{n}", plain)
        yield from array(f"gzip{n}", packed)
        rows.append(f'\t{{ "{path.name}", "{TYPES[path.suffix]}", "\\"{etag}\\"", plain{n}, gzip{n}, '
                    f"sizeof plain{n}, sizeof gzip{n} }},\n")
    if total > MOST:
        sys.exit(f"pack.py: the console has {total} bytes gzipped; expected at most {MOST}")
    yield "\nconst struct console_file console_files[] = {\n"
    yield from rows
    yield f"}};\nconst unsigned console_n_files = {len(rows)};\n"


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.writelines(as_c([Path(name) for name in sys.argv[2:]]))


if __name__ == "__main__":
    main()
