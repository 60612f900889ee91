"""The words that openapi.py and its parts are written in."""


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def parameter(name):
    return {"$ref": f"#/components/parameters/{name}"}


def string(**more):
    return {"type": "string", **more}


def integer(**more):
    return {"type": "integer", **more}


def boolean():
    return {"type": "boolean"}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def record(required, members, **more):
    """An object that has these members and no others."""
    return {"type": "object", "required": required, "properties": members,
            "additionalProperties": False, **more}


def content(schema):
    return {"application/json": {"schema": schema}}


def answer(schema, text):
    return {"description": text, "content": content(schema)}


def query(name, schema, required=False, text=None):
    row = {"name": name, "in": "query", "schema": schema}
    if required:
        row["required"] = True
    if text:
        row["description"] = text
    return row


def in_path(name, schema):
    return {"name": name, "in": "path", "schema": schema, "required": True}


def call(name, tag, summary, answers, parameters=(), body=None, free=False,
         other="Error"):
    """An operation; answers: of codes. Any other code is an error."""
    if not any(code in answers for code in ("200", "202")):
        raise ValueError(f"{name} never goes well")
    row = {"operationId": name, "tags": [tag], "summary": summary}
    if parameters:
        row["parameters"] = list(parameters)
    if body is not None:
        row["requestBody"] = {"required": True, "content": content(body)}
    if free:
        row["security"] = []
    row["responses"] = {**answers, "default": {"$ref": f"#/components/responses/{other}"}}
    return row
