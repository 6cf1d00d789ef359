"""What workers of test_reproducible_workers.py compute: importable, so that processes which are
started anew find it. Run as a script, it is enabled for the whole process and starts such
workers."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor

import invar
import torch
from built import digest, whole


def computed(_=None):
    """Whether the mode holds here, and the digest of what is computed."""
    x = whole((40, 1500), 3, 2.0**-15)
    y = torch.softmax(torch.nn.functional.gelu(x @ x.T), -1).exp().sum(0)
    return invar.reproducible.is_active(), digest([y])


class Samples(torch.utils.data.Dataset):
    """Each sample is computed by the worker that loads it."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return str(computed())


def samples(**options):
    loader = torch.utils.data.DataLoader(Samples(), batch_size=None, num_workers=1, **options)
    return [eval(text) for text in loader]


def script():
    """All that a script starts after one line at its top."""
    invar.reproducible.enable()
    invar.reproducible.enable()
    found, here = [computed()], []
    thread = threading.Thread(target=lambda: here.append(computed()))
    thread.start()
    thread.join()
    with invar.reproducible():  # leaves what is enabled
        found.append(computed())
    found += [*here, computed(), *samples()]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found.append(pool.submit(computed).result())
        found.append(pool.submit(samples).result()[0])  # workers of workers
    print(found)


if __name__ == "__main__":
    script()
