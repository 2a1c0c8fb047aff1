"""What Schemathesis needs to know of doppel: bodies of lines, and the rules that a schema cannot express.

`valid_is_accepted` and `invalid_is_refused` are positive_data_acceptance and negative_data_rejection with exactly these exceptions.
"""
import json
import re

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return "\n".join(json.dumps(item) for item in (value if isinstance(value, list) else [value])).encode()


# Requests that fit the schema and are refused all the same, by the type of the problem and what its detail says.
NOT_IN_THE_SCHEMA = [
    # JSON Schema cannot count words; a document without any can be checked, but not added.
    ("bad-document", r"the document has no id, no URL and no words"),
    # Whether a key was used before is no matter of a schema.
    ("key-reused", r""),
    # A pattern cannot say that each part comes once, which parts go together, or which hashes libcrypto has.
    ("bad-document", r"recipe: repeated part"),
    ("bad-document", r"recipe: space=drop goes with chars="),
    ("bad-document", r"recipe: invalid value in `(hash|first|sample)="),
    # The bits of a fingerprint are those of the recipe.
    ("bad-document", r"a distance of \d+ bits, in fingerprints of \d+"),
    # JSON Schema counts characters, the index bytes.
    ("bad-document", r"names of fields of \d+ bytes"),
    # Any bytes are a file; those of a spreadsheet or an archive are refused.
    ("type", r"the file is (a spreadsheet|an old Office file)"),
    # Results may have any other field; client generators do not know a property that is forbidden.
    ("wrong-shape", r'the field "folded" is reserved'),
]


@schemathesis.check
def valid_is_accepted(context, response, case):
    if response.status_code in (400, 415, 422):
        problem = response.json()
        # Which fields an index keeps is a matter of the index.
        if "{index}" in case.operation.path and problem["detail"].startswith("unknown field "):
            return None
        # Any bytes are a file to the schema; not all can be read.
        if case.operation.path == "/v1/records" and problem["type"].rpartition(":")[2] in ("bad-document", "bad-encoding", "type"):
            return None
        for kind, detail in NOT_IN_THE_SCHEMA:
            if problem["type"] == "urn:doppel:problem:" + kind and re.match(detail, problem["detail"]):
                return None
    return positive_data_acceptance(context, response, case)


@schemathesis.check
def invalid_is_refused(context, response, case):
    # OpenAPI 3.0 has no schema for the lines of a body, which is a string to it; a bad line gets a problem of its own, in an answer of 200.
    sent = {name: value for name, value in case.query.items() if value != []}
    if case.operation.path.endswith("/batch") and sent in ({"op": "check"}, {"op": "add"}):
        return None
    return negative_data_rejection(context, response, case)
