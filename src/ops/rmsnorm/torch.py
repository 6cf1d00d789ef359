SPELLED = {
    "rmsnorm": lambda c: (
        f"functional.rms_norm({c[0]}, {c.shape_of(1)}, {c[1]}, {c.text('epsilon')})"
    )
}
