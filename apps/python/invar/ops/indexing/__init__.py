"""Elements by index: embeddings, gather and scatter (gather.1 to gather.9), and order (topk.1 to
topk.5). Indices are i64 (or i32); a negative one counts from the end, except in embeddings. On the
host an index out of range is refused; on a GPU the next call reports it."""
