"""Certificates for tests, made by the openssl command: not by the code under test."""
import subprocess

YEARS_AGO = "20200101000000Z"


def openssl(*args, cwd, text=None):
    done = subprocess.run(["openssl", *args], cwd=cwd, input=text, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Certs:
    """A folder with a CA, and what it signs: certs["ca.pem"] is a path."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.authority("ca")

    def __getitem__(self, name):
        return str(self.folder / name)

    def authority(self, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
                "-days", "30", cwd=self.folder)

    def make(self, name, *names, ca="ca", subject=None, expired=False, into=None):
        """name.pem and name.key, or the files of another name."""
        into = into or name
        extensions = "[x]\nkeyUsage=digitalSignature\n"
        if names:
            extensions += "subjectAltName=" + ",".join(names) + "\n"
        (self.folder / "x.cnf").write_text(extensions)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{into}.key", "-out", f"{into}.csr", "-subj",
                subject or f"/CN={name}", cwd=self.folder)
        dates = ["-days", "30"]
        if expired:
            (self.folder / "index.txt").write_text("")
            (self.folder / "ca.cnf").write_text(
                "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\n"
                "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
            openssl("ca", "-batch", "-config", "ca.cnf", "-in", f"{into}.csr", "-cert", f"{ca}.pem",
                    "-keyfile", f"{ca}.key", "-out", f"{into}.pem", "-startdate", YEARS_AGO,
                    "-enddate", "20200201000000Z", "-extfile", "x.cnf", "-extensions", "x",
                    "-notext", cwd=self.folder)
        else:
            openssl("x509", "-req", "-in", f"{into}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
                    "-CAcreateserial", "-out", f"{into}.pem", *dates, "-extfile", "x.cnf",
                    "-extensions", "x", cwd=self.folder)
        return self[f"{into}.pem"], self[f"{into}.key"]
