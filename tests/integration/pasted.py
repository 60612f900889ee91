"""Examples of a page, pasted: every block of sh runs in one shell, in order, as it stands.

    printed = run(shell_blocks(page), folder, {"127.0.0.1:7171": "127.0.0.1:40123"})

Only addresses are replaced: the test puts its own in place of the page's, since no test may use a
fixed port; and /tmp/, /srv/ and /var/lib/ by a folder of its own.
"""
import os
import re
import signal
import subprocess

BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
MARK = "--- end of a block ---"


def blocks(page):
    """[(kind, text)] of all fences, in order."""
    return BLOCK.findall(page)


def shell_blocks(page):
    return [text for kind, text in blocks(page) if kind == "sh"]


def placed(text, addresses):
    for said, real in addresses.items():
        text = re.sub(rf"(?<![\w.]){re.escape(said)}(?!\d)", real, text)
    return text


def run(texts, folder, addresses, path=()):
    """Paste the blocks. Returns what each of them printed; a failure names the block."""
    script = "".join(f"{placed(text, addresses)}\necho '{MARK}'\n" for text in texts)
    script = re.sub(r"(?<![\w.])/(tmp|srv|var/lib)/", f"{folder}/", script)
    env = {**os.environ, "PATH": ":".join([*map(str, path), os.environ["PATH"]]), "HOME": str(folder),
           "XDG_CONFIG_HOME": str(folder / "config")}
    with open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as errors:
        shell = subprocess.Popen(["bash", "-eu", "-c", script], cwd=folder, env=env, stdout=out, stderr=errors,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = shell.wait(timeout=240)
        finally:
            end(shell.pid)
    printed = (folder / "stdout").read_text().split(MARK + "\n")
    failed = texts[len(printed) - 1] if len(printed) <= len(texts) else ""
    assert code == 0, (failed, printed[-1], (folder / "stderr").read_text())
    return printed[:-1]


def end(group):
    """What the shell has left running; it is a group of its own."""
    try:
        os.killpg(group, signal.SIGTERM)
    except ProcessLookupError:
        pass
