"""A small FastAPI service that says whether a near-copy of a text is known, by PyPI's simhash and its index in memory.

    peer_serve.py DOCUMENTS.jsonl PORT
"""
import json
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from simhash import Simhash, SimhashIndex


class Document(BaseModel):
    id: str
    url: str = ""
    text: str


app = FastAPI()
with open(sys.argv[1]) as file:
    records = map(json.loads, file)
    index = SimhashIndex([(record["id"], Simhash(record["text"].split())) for record in records], k=3)


@app.get("/ready")
def ready():
    return {"status": "ready"}


@app.post("/check")
def check(document: Document):
    near = index.get_near_dups(Simhash(document.text.split()))
    return {"isDuplicate": bool(near), "originalId": near[0] if near else None}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
