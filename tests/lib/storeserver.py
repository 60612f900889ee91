"""A real store server of a test's own: what azurite.py and rgw.py share."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class StoreServer:
    """`environment`: what a client needs beside the URL. A start that fails leaves no process."""

    PROGRAMS = ()

    def __init__(self, folder):
        for program in self.PROGRAMS:
            if not shutil.which(program):
                raise RuntimeError(f"{program} is not installed: make test installs it")
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.start()
            self.make_space()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @classmethod
    def main(cls, variable):
        """Runs the command of the arguments with the store in its environment."""
        with tempfile.TemporaryDirectory(prefix=f"{variable.lower()}-") as folder, cls(folder) as server:
            env = {**os.environ, **server.environment, variable: server.url()}
            return subprocess.call(sys.argv[1:], env=env)
