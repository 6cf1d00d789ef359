def spelled(c):
    return (
        f"functional.layer_norm({c[0]}, {c.shape_of(1)}, "
        f"{', '.join(c[i] for i in range(1, len(c)))}, eps={c.text('epsilon')})"
    )


SPELLED = {"layernorm": spelled}
