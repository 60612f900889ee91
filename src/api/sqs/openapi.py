"""The part of the SQS dialect in the OpenAPI document. docs/sqs.md has the actions."""
from openapi_words import TEXT, ref, string, whole

JSON = "application/x-amz-json-1.0"
FORM = "application/x-www-form-urlencoded"

SCHEMAS = {
    "SqsRequest": {"type": "object", "description": "The parameters of the action; unknown ones are ignored."},
    "SqsForm": {"type": "object", "required": ["Action"], "properties": {"Action": TEXT}},
    "SqsAnswer": {"type": "object"},
    "SqsError": whole({"__type": string(pattern="^com.amazonaws.sqs#"), "message": TEXT}),
}


def bodies(json, **more):
    return {"content": {JSON: {"schema": ref(json)}, **more}}


RESPONSES = {
    "SqsError": {"description": "The code is in __type, x-amzn-query-error and, in XML, Code.",
                 **bodies("SqsError", **{"text/xml": {}})},
}


def action(name, summary):
    return {"post": {
        "operationId": name,
        "tags": ["SQS"],
        "summary": summary,
        "requestBody": {"required": True, **bodies("SqsRequest", **{FORM: {"schema": ref("SqsForm")}})},
        "responses": {
            "200": {"description": "The result of the action, in the protocol of the request.",
                    **bodies("SqsAnswer", **{"text/xml": {}})},
            "default": {"$ref": "#/components/responses/SqsError"},
        },
    }}


PATHS = {
    "/": action("sqs", "An action of Amazon SQS: JSON 1.0 with X-Amz-Target, or a form with Action"),
    "/sqs": action("sqsBelow", "The same below a prefix"),
    "/sqs/{account}/{queue}": {
        **action("sqsQueue", "The same at the URL of a queue"),
    },
}
PATHS["/sqs/{account}/{queue}"]["post"]["parameters"] = [
    {"name": name, "in": "path", "required": True, "schema": ref("Name")} for name in ("account", "queue")]
