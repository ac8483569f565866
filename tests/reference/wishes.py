"""How likely everyone is where, by wishes and flows: all chains of all people, tick by tick, in plain loops."""

import numpy as np


def likely_places(flows, chance, sweeps, scalings):
    """Chances of each place: (ticks, people, places).

    `flows` is a list for each tick of (origin, goal, number) that lead to it; `chance` is (ticks, people, places), 0 where
    somebody cannot be.
    """
    ticks, people, places = chance.shape
    forward, backward = np.zeros(chance.shape), np.ones(chance.shape)
    weight = [np.ones(len(each)) for each in flows]
    for turn in range(2 * sweeps):
        onwards = turn % 2 == 0
        if onwards:
            forward[0] = chance[0] / chance[0].sum(axis=1, keepdims=True)
        for tick in range(1, ticks) if onwards else range(ticks - 1, 0, -1):
            o, g, n = np.array(flows[tick]).T
            w = weight[tick]
            product = np.array(
                [
                    [w[k] * forward[tick - 1, p, o[k]] * (chance * backward)[tick, p, g[k]] for k in range(len(n))]
                    for p in range(people)
                ]
            )
            for _ in range(scalings):
                total = product.sum(axis=1, keepdims=True)
                product = np.divide(product, total, out=np.zeros_like(product), where=total > 1e-300)
                expected = product.sum(axis=0)
                factor = np.where(expected > 1e-3, n / np.maximum(expected, 1e-3), 1.0)
                w = np.maximum(w * factor / (w * factor).max(), 1e-100)
                product = product * factor
            weight[tick] = w
            message = np.zeros((people, places))
            for k in range(len(n)):
                if onwards:
                    message[:, g[k]] += w[k] * forward[tick - 1, :, o[k]] * chance[tick, :, g[k]]
                else:
                    message[:, o[k]] += w[k] * chance[tick, :, g[k]] * backward[tick, :, g[k]]
            lost = message.sum(axis=1) <= 1e-30
            message[lost] = chance[tick][lost] if onwards else 1.0
            message /= message.sum(axis=1, keepdims=True)
            if onwards:
                forward[tick] = message
            else:
                backward[tick - 1] = message
    both = forward * backward
    return both / both.sum(axis=2, keepdims=True)
