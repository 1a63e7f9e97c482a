"""JAX: `output="numpy"` gives arrays, in the same order and as resumable as tensors; labels are planes or numbers.

python docs/recipes/jax_numpy.py PACK
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from readers import open_dataset

data = open_dataset(sys.argv[1], split="train", label="index")
mean, std = (jnp.array(values)[:, None, None] for values in (data.mean, data.std))


def loss_of(weights: dict[str, jax.Array], images: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the cross entropy of the labelled pixels."""
    pixels = (images.astype(jnp.float32) / 255 - mean) / std
    logits = jax.lax.conv(pixels, weights["kernel"], (1, 1), "SAME") + weights["bias"][:, None, None]
    known = labels < len(data.classes)  # ignored pixels have a number above all classes
    target = jnp.where(known, labels, 0)[:, None].astype(jnp.int32)
    right = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), target, axis=1)[:, 0]
    return -(right * known).sum() / known.sum()


@jax.jit
def step(weights: dict[str, jax.Array], images: jax.Array, labels: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    loss, slope = jax.value_and_grad(loss_of)(weights, images, labels)
    return jax.tree.map(lambda weight, by: weight - 0.1 * by, weights, slope), loss


if __name__ == "__main__":
    classes = len(data.classes)
    kernel = np.random.default_rng(0).normal(0, 0.1, (classes, 3, 3, 3))
    weights = {"kernel": jnp.array(kernel, jnp.float32), "bias": jnp.zeros(classes)}
    loader = data.loader(6, shuffle=True, drop_last=True, seed=7, output="numpy")  # one shape: compiled once
    for epoch in range(4):
        losses = []
        for images, labels in loader:
            weights, loss = step(weights, images, labels)
            losses.append(float(loss))
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.6f}")
