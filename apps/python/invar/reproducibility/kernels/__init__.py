"""What kernels of torch (operations of aten) compute under reproducible(), made of primitives: the
arithmetic that functions.py does not reach, such as that of torch's own gradients, of optimisers
and of in-place methods.

A handler has the name of an operation of aten and takes its arguments; the forms in place, with
`out` and over lists (_foreach_NAME) follow from it. f16 and bf16 are widened to f32, the whole
formula is computed there, one primitive after the other, and the result is rounded once."""
