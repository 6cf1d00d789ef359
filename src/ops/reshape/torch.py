SPELLED = {"bitcast": "{0}.view({dtype})", "reshape": "{0}.reshape({shape})"}
