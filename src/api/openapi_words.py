"""The words that openapi.py and its parts are written in."""


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def parameter(name):
    return {"$ref": f"#/components/parameters/{name}"}


def string(**more):
    return {"type": "string", **more}


def integer(**more):
    return {"type": "integer", **more}


TEXT = string()
COUNT = integer(minimum=0)
FLAG = {"type": "boolean"}
TIME = ref("Time")
MOMENT = ref("Moment")


def array(items, **more):
    return {"type": "array", "items": items, **more}


def record(required, members, **more):
    """An object that has these members and no others."""
    return {"type": "object", "required": required, "properties": members,
            "additionalProperties": False, **more}


def whole(members):
    """An object that has all these members and no others."""
    return record([*members], members)


def each(schema, names):
    """Members of one kind: their names, in a list or with spaces between them."""
    return {name: schema for name in (names.split() if isinstance(names, str) else names)}


def content(schema):
    return {"application/json": {"schema": schema}}


def answer(schema, text):
    return {"description": text, "content": content(schema)}


def ok(schema, text):
    """The good answer. schema: or the name of one."""
    return {"200": answer(ref(schema) if isinstance(schema, str) else schema, text)}


# Answers of a stream: docs/stream.md.
STREAM = {"101": {"description": "The connection has frames from now on: docs/stream.md."}}


def no_stream(error):
    return {**STREAM, "426": answer(ref(error), "Without the fields Connection: Upgrade and Upgrade: sluice-stream.")}


def query(name, schema, required=False, text=None):
    row = {"name": name, "in": "query", "schema": schema}
    if required:
        row["required"] = True
    if text:
        row["description"] = text
    return row


def in_header(name, schema, text):
    return {"name": name, "in": "header", "schema": schema, "required": True, "description": text}


def in_path(name, schema):
    return {"name": name, "in": "path", "schema": schema, "required": True}


def call(name, tag, summary, answers, parameters=(), body=None, free=False,
         other="Error"):
    """An operation; answers: of codes. Any other code is an error."""
    if not any(code in answers for code in ("101", "200", "202", "204", "302")):
        raise ValueError(f"{name} never goes well")
    row = {"operationId": name, "tags": [tag], "summary": summary}
    if parameters:
        row["parameters"] = list(parameters)
    if body is not None:
        row["requestBody"] = {"required": True, "content": content(ref(body) if isinstance(body, str) else body)}
    if free:
        row["security"] = []
    row["responses"] = {**answers, "default": {"$ref": f"#/components/responses/{other}"}}
    return row
