# torch.group_norm, because that of functional refuses groups of one element.
SPELLED = {"groupnorm": "torch.group_norm({0}, {groups}, {1}, {2}, {epsilon})"}
