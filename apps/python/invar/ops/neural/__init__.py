"""Functions of torch.nn.functional that are made of other functions of invar.ops: dropout of
channels, more losses, windows as columns, sampling from grids."""
