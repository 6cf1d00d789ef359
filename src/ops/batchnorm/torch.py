SPELLED = {"batchnorm": "functional.batch_norm({0}, {3}, {4}, {1}, {2}, eps={epsilon})"}
