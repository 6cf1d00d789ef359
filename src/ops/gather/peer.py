import torch as t


def torch(call):
    table, ids = call.inputs
    return {"embedding": lambda: t.nn.functional.embedding(ids, table).float()}
