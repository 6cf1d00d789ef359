SPELLED = {
    "softmax": "torch.softmax({0}, {axis})",
    "log_softmax": "torch.log_softmax({0}, {axis})",
}
