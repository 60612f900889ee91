"""Tokens for tests, made by Python and the openssl command: not by the code under test.

    key = Secret("0123456789abcdef0123456789abcdef")
    key.token(scope="payments:read")
"""
import base64
import hashlib
import hmac
import json
import subprocess
import time


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Key:
    """What signs; a subclass says how."""
    alg = kid = None

    def token(self, header=None, **claims):
        head = {"alg": self.alg, **({"kid": self.kid} if self.kid else {}), **(header or {})}
        body = {"sub": "tester", "exp": int(time.time()) + 3600, **claims}
        body = {name: value for name, value in body.items() if value is not None}
        return self.sign_text(json.dumps(head), json.dumps(body))

    def sign_text(self, head, body):
        signing = encode(head.encode()) + "." + encode(body.encode())
        return signing + "." + encode(self.sign(signing.encode()))

    def bearer(self, **claims):
        return {"Authorization": "Bearer " + self.token(**claims)}


class Secret(Key):
    def __init__(self, secret, bits=256, kid=None):
        self.secret = secret.encode() if isinstance(secret, str) else secret
        self.alg, self.kid = f"HS{bits}", kid
        self.digest = getattr(hashlib, f"sha{bits}")

    def sign(self, data):
        return hmac.new(self.secret, data, self.digest).digest()

    def jwk(self):
        return {"kty": "oct", "alg": self.alg, "k": encode(self.secret), "kid": self.kid}


def openssl(*args, data=None):
    done = subprocess.run(["openssl", *args], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Pair(Key):
    """A private key in a file, its public half in another."""
    MAKE = {"RS256": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            "ES256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            "EdDSA": ["ED25519"]}

    def __init__(self, folder, alg, kid=None):
        self.alg, self.kid = alg, kid
        self.private = str(folder / f"{alg}-{kid}.key")
        self.public = str(folder / f"{alg}-{kid}.pem")
        openssl("genpkey", "-algorithm", *self.MAKE[alg], "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)

    def sign(self, data):
        if self.alg == "EdDSA":
            with open(self.private + ".data", "wb") as f:
                f.write(data)
            return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.private,
                           "-in", self.private + ".data")
        signature = openssl("dgst", "-sha256", "-sign", self.private, data=data)
        return pair_of(signature) if self.alg == "ES256" else signature

    def jwk(self):
        der = openssl("pkey", "-pubin", "-in", self.public, "-outform", "DER")
        row = {"kid": self.kid, "use": "sig", "alg": self.alg}
        if self.alg == "ES256":
            return {**row, "kty": "EC", "crv": "P-256", "x": encode(der[-64:-32]),
                    "y": encode(der[-32:])}
        if self.alg == "EdDSA":
            return {**row, "kty": "OKP", "crv": "Ed25519", "x": encode(der[-32:])}
        text = openssl("rsa", "-pubin", "-in", self.public, "-noout", "-modulus").decode()
        return {**row, "kty": "RSA", "n": encode(bytes.fromhex(text.strip().split("=")[1])),
                "e": "AQAB"}


def pair_of(der):
    """r and s of an ECDSA signature, 32 bytes each."""
    out, at = b"", 2
    for _ in range(2):
        n = der[at + 1]
        out += der[at + 2:at + 2 + n].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + n
    return out
