"""The compiled heart of the step solver: a transportation simplex, and the walk through a day on top of it.

The simplex works on people in groups (rows) and places with free room (columns). It keeps a spanning tree of positive
and zero flows and no list of arcs: a cost is looked up in a table or computed from coordinates when it is needed, so
its memory grows with groups + places, not with their product. The tree is kept strongly feasible (an arc without flow
always points to the root), which rules out cycling however many ties there are.

Nodes of the tree: place j is node j, group i is node places + i, the root is node places + groups. A group hangs on a
place or on the root, a place always on a group. Only groups with children are chained into their parent's list of
children: most groups are leaves, and a leaf needs no visit because its potential follows from its parent's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled

__all__ = ["EXTRAPOLATE", "POPULAR", "SAME_POINT_KM", "run_steps", "solve_dense"]

EXTRAPOLATE = 1
POPULAR = 2
# Two points closer than this are one point: the rounding of p + (p - o) is far below, any real distance far above.
SAME_POINT_KM = 1e-11

# A problem with more than so many groups x places works with short lists, of so many places for each group.
WIDE_CELLS = 1 << 14
SHORTLIST = 8
# Out of so many groups the best arc is taken.
WIDE_BLOCK = 1
NARROW_BLOCK = 16
# After so many pivots the sums of rounding errors in the potentials are cleared before optimality is declared.
PIVOTS_BEFORE_REFRESH = 64

# Rows of the tree: for each node its parent, its first child, its next and previous sibling, whether it is chained
# into its parent's children, its depth; and scratch.
PARENT, CHILD, AFTER, BEFORE, LINKED, DEPTH, STACK = range(7)

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Floats = NDArray[np.float64]
# Centres of the places in play, targets of the groups in play (point, and place whose H is meant, -1 for none, or `IS_AWAY`),
# H as a CSR matrix, centres of all places; which of the places in play is away, or -1, and what leaving or returning costs.
Geometry = tuple[Floats, Floats, Floats, Floats, Indices, Ints, Ints, Floats, Floats, Ints, float]
IS_AWAY = -2


# No "contract" and no "reassoc": the same bits on every machine. Without NaN a minimum can be vectorised.
step_kernel = compiled(error_model="numpy", fastmath={"nnan", "nsz"})

# Numba counts references to every array it hands to a function, at some nanoseconds each: what runs often gets few.
# It also compiles a function once more for an argument that began as a literal: hence int(np.int64(0)) here and there.


@step_kernel
def distances(begin: int, end: int, places: int, geometry: Geometry, rows: Floats) -> None:
    """Fill rows with the costs of groups begin to end - 1: the distances from places to the nearest target."""
    place_x, place_y, group_x, group_y, group_at, indptr, indices, x, y, away_place, away_km = geometry
    # Plain loops of one purpose each: that is what the compiler turns into vector code.
    for group in range(begin, end):
        i = group - begin
        qx = group_x[group]
        qy = group_y[group]
        for j in range(places):
            dx = place_x[j] - qx
            dy = place_y[j] - qy
            rows[i, j] = dx * dx + dy * dy
        at = group_at[group]
        if at >= 0:
            for k in range(indptr[at], indptr[at + 1]):
                qx = x[indices[k]]
                qy = y[indices[k]]
                for j in range(places):
                    dx = place_x[j] - qx
                    dy = place_y[j] - qy
                    square = dx * dx + dy * dy
                    rows[i, j] = square if square < rows[i, j] else rows[i, j]
        for j in range(places):
            rows[i, j] = np.sqrt(rows[i, j])
        # Away has no coordinates: staying there costs nothing, leaving for it and returning from it the same from anywhere.
        if at == IS_AWAY:
            for j in range(places):
                rows[i, j] = away_km
        if away_place[0] >= 0:
            rows[i, away_place[0]] = 0.0 if at == IS_AWAY else away_km


@step_kernel
def pair_cost(group: int, place: int, geometry: Geometry) -> float:
    """Cost of a group going to a place, as in `distances`."""
    place_x, place_y, group_x, group_y, group_at, indptr, indices, x, y, away_place, away_km = geometry
    at = group_at[group]
    if at == IS_AWAY or place == away_place[0]:
        return 0.0 if at == IS_AWAY and place == away_place[0] else away_km
    dx = place_x[place] - group_x[group]
    dy = place_y[place] - group_y[group]
    least = dx * dx + dy * dy
    if at >= 0:
        for k in range(indptr[at], indptr[at + 1]):
            dx = place_x[place] - x[indices[k]]
            dy = place_y[place] - y[indices[k]]
            least = min(least, dx * dx + dy * dy)
    return float(np.sqrt(least))


@step_kernel
def cheapest_in_table(group: int, places: int, prices: Floats, table: Floats) -> tuple[int, float]:
    """Find the place with the least cost minus price for a group, the first of several."""
    first = 0
    least = np.inf
    for j in range(places):
        value = table[group, j] - prices[j]
        if value < least:
            least = value
            first = j
    return first, float(least)


@step_kernel
def cheapest(
    group: int, places: int, prices: Floats, row: Floats, table: Floats, geometry: Geometry
) -> tuple[int, float]:
    """Find the same, with or without a table, and leave all values in `row`."""
    if table.shape[0] > 0:
        for j in range(places):
            row[0, j] = table[group, j] - prices[j]
    else:
        distances(group, group + 1, places, geometry, row)
        for j in range(places):
            row[0, j] -= prices[j]
    least = np.inf
    for j in range(places):
        least = row[0, j] if row[0, j] < least else least
    first = 0
    while row[0, first] != least:
        first += 1
    return first, float(least)


@step_kernel
def shortlist(places: int, prices: Floats, row: Floats, best: Floats, choice: Indices, choice_cost: Floats) -> None:
    """Note the places with the least values in `row`, and their costs."""
    most = len(choice)
    size = 0
    worst = np.inf
    for j in range(places):
        value = row[0, j]
        if value < worst:
            k = min(size, most - 1)
            while k > 0 and best[k - 1] > value:
                best[k] = best[k - 1]
                choice[k] = choice[k - 1]
                k -= 1
            best[k] = value
            choice[k] = j
            size = min(size + 1, most)
            if size == most:
                worst = best[most - 1]
    for k in range(most):
        choice_cost[k] = best[k] + prices[choice[k]]


@step_kernel
def link(node: int, tree: Indices) -> None:
    """Chain a node into the children of its parent."""
    up = tree[PARENT, node]
    head = tree[CHILD, up]
    tree[AFTER, node] = head
    tree[BEFORE, node] = -1
    if head >= 0:
        tree[BEFORE, head] = node
    tree[CHILD, up] = node
    tree[LINKED, node] = 1


@step_kernel
def unlink(node: int, tree: Indices) -> None:
    """Take a node out of the children of its parent."""
    before = tree[BEFORE, node]
    after = tree[AFTER, node]
    if before >= 0:
        tree[AFTER, before] = after
    else:
        tree[CHILD, tree[PARENT, node]] = after
    if after >= 0:
        tree[BEFORE, after] = before
    tree[LINKED, node] = 0


@step_kernel
def solve(
    groups: int,
    places: int,
    supply: Ints,
    demand: Ints,
    table: Floats,
    geometry: Geometry,
    scale: float,
    tree: Indices,
    flow: Ints,
    arc_cost: Floats,
    prices: Floats,
    row: Floats,
    best: Floats,
    choice: Indices,
    choice_cost: Floats,
) -> float:
    """Solve a balanced transportation problem; the flows stay in the tree.

    Parameters
    ----------
    supply, demand
        (groups,), (places,) int64, all positive, with the same sum. `demand` is used up.
    table
        (groups, places) float64 costs, finite; or of no rows, and `geometry` gives them.
    scale
        How large costs can be, at least; what counts as zero depends on it and on the costs seen at the start.
    tree
        (7, nodes) int32 scratch; afterwards row 0 holds the parent of each node.
    flow, arc_cost
        (nodes,) int64, float64: people, and cost of one of them, on the arc between a node and its parent.
    prices
        (places,) float64, the dual values of the places.
    row, best, choice, choice_cost
        (1, places), (SHORTLIST,), (groups, SHORTLIST) scratch.

    Returns
    -------
    A bound on how far the total cost may lie above the least one, from the dual values.
    """
    parent = tree[PARENT]
    first_child = tree[CHILD]
    after = tree[AFTER]
    linked = tree[LINKED]
    depth = tree[DEPTH]
    stack = tree[STACK]
    root = places + groups
    # In a large problem most rounds look only at a short list of places for each group (narrow), and a look at all
    # places (wide) makes new lists. The last look is always wide.
    listed = places > 2 * SHORTLIST and groups * places > WIDE_CELLS
    fast = table.shape[0] > 0 and not listed
    for node in range(root + 1):
        parent[node] = root
        first_child[node] = -1
        linked[node] = 0
        flow[node] = 0
        arc_cost[node] = 0.0
    depth[root] = 0

    # Start: each group in turn fills the nearest room that is left. A place hangs on the group that fills it up, a
    # group on the place that takes its last person, unless that person fills the place.
    for j in range(places):
        prices[j] = 0.0
    largest = scale
    for i in range(groups):
        rest = supply[i]
        while rest > 0:
            if fast:
                j, cost = cheapest_in_table(i, places, prices, table)
            else:
                j, cost = cheapest(i, places, prices, row, table, geometry)
            largest = max(largest, abs(cost))
            moved = min(rest, demand[j])
            rest -= moved
            demand[j] -= moved
            if demand[j] == 0:
                prices[j] = -np.inf
                parent[j] = places + i
                flow[j] = moved
                arc_cost[j] = cost
            else:
                parent[places + i] = j
                flow[places + i] = moved
                arc_cost[places + i] = cost
    for j in range(places):
        link(j, tree)
    for node in range(places, root):
        if first_child[node] >= 0:
            link(node, tree)

    tolerance = 1e-13 * max(largest, 1e-30)
    wide = True
    renew = True
    looked = 0
    pivots = 0
    clean = 0
    violation = 0.0
    i = int(np.int64(0))
    while True:
        if renew:
            # Depths and prices afresh from the tree: no sum of rounding errors survives.
            size = 1
            stack[0] = root
            while size > 0:
                size -= 1
                a = stack[size]
                child = first_child[a]
                while child >= 0:
                    depth[child] = depth[a] + 1
                    if child < places:
                        up = parent[a]
                        prices[child] = arc_cost[child] - (0.0 if up == root else arc_cost[a] - prices[up])
                    stack[size] = child
                    size += 1
                    child = after[child]
            renew = False
            pivots = 0
            looked = 0
            clean = 0
            violation = 0.0

        # The best arc of a block of groups enters.
        enter = -1
        j = 0
        reduced = -tolerance
        block = WIDE_BLOCK if wide else NARROW_BLOCK
        while clean < groups and (block > 0 or enter < 0):
            up = parent[places + i]
            potential = 0.0 if up == root else arc_cost[places + i] - prices[up]
            if wide:
                if fast:
                    k, value = cheapest_in_table(i, places, prices, table)
                else:
                    k, value = cheapest(i, places, prices, row, table, geometry)
                if listed:
                    shortlist(places, prices, row, best, choice[i], choice_cost[i])
                value -= potential
                if value < 0.0:
                    violation -= value * supply[i]
                if value < reduced:
                    reduced = value
                    enter = i
                    j = k
            else:
                for m in range(SHORTLIST):
                    k = int(choice[i, m])
                    value = choice_cost[i, m] - prices[k] - potential
                    if value < reduced:
                        reduced = value
                        enter = i
                        j = k
            block -= 1
            clean += 1
            looked += 1
            i += 1
            if i == groups:
                i = 0
        if enter < 0:
            if wide and pivots < PIVOTS_BEFORE_REFRESH:
                return violation
            wide = True
            renew = True
            continue
        clean = 0
        violation = 0.0
        pivots += 1
        if listed and wide and looked >= groups:
            wide = False
        node = places + enter
        up = parent[node]

        # The cycle that i -> j closes. Up from the group, flow falls on the arcs of groups; up from the place, on the
        # arcs of places. Of several arcs that run empty first, the last one along the cycle from its apex leaves.
        a = node
        b = j
        depth_a = depth[up] + 1
        depth_b = depth[j]
        least_a = 1 << 62
        least_b = 1 << 62
        leave_a = -1
        leave_b = -1
        while a != b:
            if depth_a >= depth_b:
                if a >= places and flow[a] < least_a:
                    least_a = flow[a]
                    leave_a = a
                a = parent[a]
                depth_a -= 1
            else:
                if b < places and flow[b] <= least_b:
                    least_b = flow[b]
                    leave_b = b
                b = parent[b]
                depth_b -= 1
        apex = a
        moved = min(least_a, least_b)
        if moved > 0:
            a = node
            while a != apex:
                flow[a] += -moved if a >= places else moved
                a = parent[a]
            b = j
            while b != apex:
                flow[b] += moved if b >= places else -moved
                b = parent[b]
        if least_b <= least_a:
            leave = leave_b
            inner = int(j)
            outer = int(node)
            shift = reduced
        else:
            leave = leave_a
            inner = int(node)
            outer = int(j)
            shift = -reduced

        # Cut the subtree under the leaving arc and hang it by its inner end on the outer end of the new arc.
        cost = table[enter, j] if table.shape[0] > 0 else pair_cost(enter, j, geometry)
        above = int(parent[leave])
        a = inner
        while True:
            if linked[a]:
                unlink(a, tree)
            if a == leave:
                break
            a = parent[a]
        if places <= above < root and first_child[above] < 0 and linked[above]:
            unlink(above, tree)
        a = inner
        up = outer
        arc_flow = moved
        while True:
            next_up = parent[a]
            next_flow = flow[a]
            next_cost = arc_cost[a]
            parent[a] = up
            flow[a] = arc_flow
            arc_cost[a] = cost
            if a == leave:
                break
            up = a
            a = next_up
            arc_flow = next_flow
            cost = next_cost
        while a != outer:
            if a < places or first_child[a] >= 0:
                link(a, tree)
            a = parent[a]
        if outer >= places and not linked[outer]:
            link(outer, tree)
            depth[outer] = depth[parent[outer]] + 1

        # Prices move by the same amount in the whole subtree. (A leaf group has nothing to move.)
        if linked[inner]:
            size = 1
            stack[0] = inner
            while size > 0:
                size -= 1
                a = stack[size]
                depth[a] = depth[parent[a]] + 1
                if a < places:
                    prices[a] += shift
                child = first_child[a]
                while child >= 0:
                    stack[size] = child
                    size += 1
                    child = after[child]


@step_kernel
def solve_dense(costs: Floats, supply: Ints, demand: Ints) -> tuple[Ints, Ints, Ints, float]:
    """Solve a balanced problem given by its matrix of finite costs; all of supply and demand positive.

    Returns
    -------
    Groups, places and people of the arcs with flow, and the bound on the gap.
    """
    groups, places = costs.shape
    nodes = groups + places + 1
    none = np.empty(0, np.float64)
    nobody = np.empty(0, np.int32)
    nowhere = np.empty(0, np.int64)
    tree = np.empty((7, nodes), np.int32)
    flow = np.empty(nodes, np.int64)
    arc_cost = np.empty(nodes, np.float64)
    prices = np.empty(places, np.float64)
    row = np.empty((1, places), np.float64)
    geometry = (none, none, none, none, nobody, nowhere, nowhere, none, none, nowhere, 0.0)
    best = np.empty(SHORTLIST, np.float64)
    choice = np.empty((groups, SHORTLIST), np.int32)
    choice_cost = np.empty((groups, SHORTLIST), np.float64)
    scale = np.abs(costs).max()
    gap = solve(
        groups,
        places,
        supply,
        demand,
        costs,
        geometry,
        scale,
        tree,
        flow,
        arc_cost,
        prices,
        row,
        best,
        choice,
        choice_cost,
    )
    used = np.flatnonzero(flow[: nodes - 1] > 0)
    rows = np.empty(len(used), np.int64)
    columns = np.empty(len(used), np.int64)
    for k in range(len(used)):
        node = used[k]
        up = int(tree[PARENT, node])
        rows[k] = max(node, up) - places
        columns[k] = min(node, up)
    return rows, columns, flow[used], gap


@step_kernel
def find_place(
    qx: float,
    qy: float,
    x: Floats,
    y: Floats,
    box: tuple[float, float, float, float, float],
    bucket_start: Ints,
    bucket_places: Ints,
) -> int:
    """Index of the first place at a point, or -1."""
    x0, y0, width, height, across = box
    side = int(across)
    left = np.floor((qx - SAME_POINT_KM - x0) / width)
    right = np.floor((qx + SAME_POINT_KM - x0) / width)
    low = np.floor((qy - SAME_POINT_KM - y0) / height)
    high = np.floor((qy + SAME_POINT_KM - y0) / height)
    if right < 0.0 or left >= across or high < 0.0 or low >= across:
        return -1
    found = -1
    for cx in range(max(0, int(left)), min(side - 1, int(right)) + 1):
        for cy in range(max(0, int(low)), min(side - 1, int(high)) + 1):
            cell = cx * side + cy
            for k in range(bucket_start[cell], bucket_start[cell + 1]):
                place = bucket_places[k]
                if abs(x[place] - qx) <= SAME_POINT_KM and abs(y[place] - qy) <= SAME_POINT_KM:
                    if found < 0 or place < found:
                        found = place
                    break
    return found


@step_kernel
def same_targets(
    at: int,
    qx: float,
    qy: float,
    other: int,
    other_x: float,
    other_y: float,
    indptr: Ints,
    indices: Ints,
    x: Floats,
    y: Floats,
) -> bool:
    """Whether H_at + {q} and H_other + {other q} are one set of points; -1 in place of `at` is an empty H."""
    if at == other:
        if abs(qx - other_x) <= SAME_POINT_KM and abs(qy - other_y) <= SAME_POINT_KM:
            return True
        if at < 0:
            return False
    for turn in range(2):
        if turn == 1:
            at, qx, qy, other, other_x, other_y = other, other_x, other_y, at, qx, qy
        start = indptr[at] if at >= 0 else 0
        stop = indptr[at + 1] if at >= 0 else 0
        for k in range(start - 1, stop):
            tx = qx if k < start else x[indices[k]]
            ty = qy if k < start else y[indices[k]]
            found = abs(tx - other_x) <= SAME_POINT_KM and abs(ty - other_y) <= SAME_POINT_KM
            if other >= 0 and not found:
                for m in range(indptr[other], indptr[other + 1]):
                    h = indices[m]
                    if abs(tx - x[h]) <= SAME_POINT_KM and abs(ty - y[h]) <= SAME_POINT_KM:
                        found = True
                        break
            if not found:
                return False
    return True


@step_kernel
def key_of(qx: float, qy: float) -> int:
    """A number below 2**31 that is the same for (nearly all) roundings of a point."""
    a = int(np.floor(qx * 1e9 + 0.5)) & 0x3FFFFFFF
    b = int(np.floor(qy * 1e9 + 0.5)) & 0x3FFFFFFF
    return (a * 73856093 + b * 19349663) & 0x7FFFFFFF


@step_kernel
def places_by_cell(x: Floats, y: Floats) -> tuple[tuple[float, float, float, float, float], Ints, Ints]:
    """List the places by the cell of a grid, to find the one at a point: the grid, where each cell begins, the places."""
    locations = len(x)
    side = max(1, int(np.sqrt(locations)))
    x0 = x.min()
    y0 = y.min()
    width = max((x.max() - x0) / side * (1.0 + 1e-9), 1e-6)
    height = max((y.max() - y0) / side * (1.0 + 1e-9), 1e-6)
    box = (x0, y0, width, height, float(side))
    bucket_start = np.zeros(side * side + 1, np.int64)
    bucket_places = np.empty(locations, np.int64)
    cell_of = np.empty(locations, np.int64)
    for place in range(locations):
        cx = min(side - 1, int(np.floor((x[place] - x0) / width)))
        cy = min(side - 1, int(np.floor((y[place] - y0) / height)))
        cell_of[place] = cx * side + cy
        bucket_start[cell_of[place] + 1] += 1
    for cell in range(side * side):
        bucket_start[cell + 1] += bucket_start[cell]
    for place in range(locations - 1, -1, -1):
        # Filled from behind, so that a bucket lists its places by index.
        bucket_start[cell_of[place] + 1] -= 1
        bucket_places[bucket_start[cell_of[place] + 1]] = place
    for cell in range(side * side):
        bucket_start[cell] = bucket_start[cell + 1]
    bucket_start[side * side] = locations
    return box, bucket_start, bucket_places


@step_kernel
def meaning_of_popular(x: Floats, y: Floats, indptr: Ints, indices: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """What the popular places of each place mean for somebody who stays there: whether it is the only one, and a key."""
    locations = len(x)
    stays = np.ones(locations, np.bool_)
    popular_key = np.zeros(locations, np.int64)
    if len(indices) > 0:
        for place in range(locations):
            for k in range(indptr[place], indptr[place + 1]):
                h = indices[k]
                stays[place] &= h == place
                popular_key[place] += key_of(x[h], y[h])
    return stays, popular_key


@step_kernel
def deal_out(
    groups: int,
    places: int,
    locations: int,
    people: int,
    tree: Indices,
    flow: Ints,
    arc_cost: Floats,
    group_number: Indices,
    place_number: Indices,
    group_of: Indices,
    rank_of: Indices,
    size_of: Ints,
    cancelled: Ints,
    then: Indices,
    by_place: Ints,
    by_group: Ints,
    sorted_group: Indices,
    sorted_place: Indices,
    sorted_flow: Ints,
    deal_place: Indices,
    deal_flow: Ints,
) -> float:
    """Send the people of each group, by index, to the places that the flows in the tree lead to; give the total cost."""
    # Destinations by place, then (stably) by group; the cancelled people of a group count among its destinations.
    parent = tree[PARENT]
    total = 0.0
    arcs = 0
    for j in range(places + 1):
        by_place[j] = 0
    for node in range(groups + places):
        if flow[node] > 0:
            by_place[min(node, parent[node]) + 1] += 1
            total += flow[node] * arc_cost[node]
            arcs += 1
    for j in range(places):
        by_place[j + 1] += by_place[j]
    for node in range(groups + places):
        if flow[node] > 0:
            j = min(node, int(parent[node]))
            k = by_place[j]
            by_place[j] += 1
            sorted_group[k] = max(node, int(parent[node])) - places
            sorted_place[k] = place_number[j]
            sorted_flow[k] = flow[node]
    for i in range(groups + 1):
        by_group[i] = 0
    for k in range(arcs):
        by_group[sorted_group[k] + 1] += 1
    for i in range(groups):
        if group_number[i] < locations and cancelled[group_number[i]] > 0:
            by_group[i + 1] += 1
    for i in range(groups):
        by_group[i + 1] += by_group[i]
    for k in range(arcs):
        i = sorted_group[k]
        number = group_number[i]
        place = sorted_place[k]
        if number < locations and number < place and cancelled[number] > 0 and size_of[number] > 0:
            deal_place[by_group[i]] = number
            deal_flow[by_group[i]] = cancelled[number]
            by_group[i] += 1
            size_of[number] = 0
        deal_place[by_group[i]] = place
        deal_flow[by_group[i]] = sorted_flow[k]
        by_group[i] += 1
    for i in range(groups):
        number = group_number[i]
        if number < locations and cancelled[number] > 0 and size_of[number] > 0:
            deal_place[by_group[i]] = number
            deal_flow[by_group[i]] = cancelled[number]
            by_group[i] += 1
    # Filling has moved each start to the start of the next group.
    for i in range(groups, 0, -1):
        by_group[i] = by_group[i - 1]
    by_group[0] = 0

    for person in range(people):
        number = group_of[person]
        i = rank_of[number]
        if i < 0:
            then[person] = number
            continue
        k = by_group[i]
        then[person] = deal_place[k]
        deal_flow[k] -= 1
        if deal_flow[k] == 0:
            by_group[i] += 1
    return float(total)


@step_kernel
def run_steps(
    begin: int,
    end: int,
    counts: Ints,
    x: Floats,
    y: Floats,
    kinds: NDArray[np.uint8],
    indptr: Ints,
    indices: Ints,
    cells: Indices,
    costs: Floats,
    gaps: Floats,
    table_cells: int,
    away: int,
    away_km: float,
) -> None:
    """Recover the cells of steps begin + 1 to end of a day from those of steps begin - 1 and begin.

    Parameters
    ----------
    counts
        (steps, locations) int64.
    cells
        (steps, people) int32, filled up to step `begin`.
    costs, gaps
        (steps - 1,) float64, written.
    table_cells
        A cost matrix up to this size is filled once and kept; beyond, costs are computed when they are looked at.
    away, away_km
        The location that is away, the last one, or -1; and what it costs to leave for it or to return from it.
    """
    people = cells.shape[1]
    locations = counts.shape[1]
    nodes = people + locations + 1

    real = locations if away < 0 else away
    box, bucket_start, bucket_places = places_by_cell(x[:real], y[:real])
    has_popular = len(indices) > 0
    stays, popular_key = meaning_of_popular(x, y, indptr, indices)
    slots = 8
    while slots < 2 * people:
        slots *= 2
    slot_step = np.full(slots, -1, np.int32)
    slot_group = np.empty(slots, np.int32)
    # Groups of a step: number l is {place l}, number locations + k the k-th set of another kind.
    group_of = np.empty(people, np.int32)
    size_of = np.empty(locations + people, np.int64)
    rank_of = np.empty(locations + people, np.int32)
    point_x = np.empty(people, np.float64)
    point_y = np.empty(people, np.float64)
    point_at = np.empty(people, np.int32)
    # Groups and places of the transportation problem.
    supply = np.empty(people, np.int64)
    group_x = np.empty(people, np.float64)
    group_y = np.empty(people, np.float64)
    group_at = np.empty(people, np.int32)
    group_number = np.empty(people, np.int32)
    demand = np.empty(locations, np.int64)
    place_number = np.empty(locations, np.int32)
    place_x = np.empty(locations, np.float64)
    place_y = np.empty(locations, np.float64)
    away_place = np.full(1, -1, np.int64)
    geometry = (place_x, place_y, group_x, group_y, group_at, indptr, indices, x, y, away_place, away_km)
    # How many of those who aim at a place only take the room there.
    cancelled = np.empty(locations, np.int64)
    tree = np.empty((7, nodes), np.int32)
    flow = np.empty(nodes, np.int64)
    arc_cost = np.empty(nodes, np.float64)
    prices = np.empty(locations, np.float64)
    row = np.empty((1, locations), np.float64)
    best = np.empty(SHORTLIST, np.float64)
    choice = np.empty((people, SHORTLIST), np.int32)
    choice_cost = np.empty((people, SHORTLIST), np.float64)
    table_space = np.empty(table_cells, np.float64)
    no_table = np.empty((0, 0), np.float64)
    # Destinations: (group, place, people) sorted by place, then by group.
    by_place = np.empty(locations + 1, np.int64)
    by_group = np.empty(people + 1, np.int64)
    sorted_group = np.empty(nodes + people, np.int32)
    sorted_place = np.empty(nodes + people, np.int32)
    sorted_flow = np.empty(nodes + people, np.int64)
    deal_place = np.empty(nodes + people, np.int32)
    deal_flow = np.empty(nodes + people, np.int64)

    for step in range(begin, end):
        now = cells[step]
        past = cells[step - 1] if step > 0 else now
        then = cells[step + 1]
        wanted = counts[step + 1]
        extrapolate = kinds[step] & EXTRAPOLATE != 0
        popular = has_popular and kinds[step] & POPULAR != 0
        for place in range(locations):
            size_of[place] = 0
        others = 0

        for person in range(people):
            at = now[person]
            # Who is away, or has just returned, has no velocity.
            moving = extrapolate and past[person] != at and past[person] != away and at != away
            if not moving and (not popular or stays[at]):
                group_of[person] = at
                size_of[at] += 1
                continue
            q = int(at)
            qx = x[at]
            qy = y[at]
            if moving:
                qx += qx - x[past[person]]
                qy += qy - y[past[person]]
                q = int(find_place(qx, qy, x, y, box, bucket_start, bucket_places))
                if q >= 0:
                    qx = x[q]
                    qy = y[q]
            key = 0
            source = -1
            if popular and indptr[at] < indptr[at + 1]:
                source = int(at)
                key = popular_key[at]
                known = False
                for k in range(indptr[at], indptr[at + 1]):
                    if indices[k] == q:
                        known = True
                        break
                if known and indptr[at + 1] - indptr[at] == 1:
                    source = -1
                if not known:
                    key += key_of(qx, qy)
            else:
                key = key_of(qx, qy)
            if source < 0 and q >= 0:
                group_of[person] = q
                size_of[q] += 1
                continue
            slot = key & (slots - 1)
            while True:
                if slot_step[slot] != step:
                    slot_step[slot] = step
                    slot_group[slot] = others
                    group_of[person] = locations + others
                    size_of[locations + others] = 1
                    point_x[others] = qx
                    point_y[others] = qy
                    point_at[others] = source
                    others += 1
                    break
                k = slot_group[slot]
                if same_targets(source, qx, qy, point_at[k], point_x[k], point_y[k], indptr, indices, x, y):
                    group_of[person] = locations + k
                    size_of[locations + k] += 1
                    break
                slot = (slot + 1) & (slots - 1)

        # Cancel: those who aim at one place only take the room there. By the triangle inequality no other use of that
        # room is better, whatever the others aim at. Not so for away: someone may return where another leaves.
        places = int(np.int64(0))
        away_place[0] = -1
        for place in range(locations):
            cancelled[place] = min(size_of[place], wanted[place]) if place != away else 0
            rank_of[place] = -2 if size_of[place] > cancelled[place] else -1
            if wanted[place] > cancelled[place]:
                place_number[places] = place
                place_x[places] = x[place]
                place_y[places] = y[place]
                demand[places] = wanted[place] - cancelled[place]
                if place == away:
                    away_place[0] = places
                places += 1
        costs[step] = 0.0
        gaps[step] = 0.0
        if places == 0:
            for person in range(people):
                then[person] = group_of[person]
            continue

        # What is left, in the order of the first members.
        for k in range(others):
            rank_of[locations + k] = -2
        groups = int(np.int64(0))
        for person in range(people):
            number = group_of[person]
            if rank_of[number] != -2:
                continue
            rank_of[number] = groups
            group_number[groups] = number
            if number < locations:
                supply[groups] = size_of[number] - cancelled[number]
                group_x[groups] = x[number]
                group_y[groups] = y[number]
                group_at[groups] = IS_AWAY if number == away else -1
            else:
                k = number - locations
                supply[groups] = size_of[number]
                group_x[groups] = point_x[k]
                group_y[groups] = point_y[k]
                group_at[groups] = point_at[k]
            groups += 1

        if groups == 1 or places == 1:
            # Only one way: written as the tree that the simplex would leave.
            for node in range(groups + places):
                tree[PARENT, node] = places if groups == 1 else 0
                flow[node] = 0
            for i in range(groups):
                distances(i, i + 1, places, geometry, row)
                for j in range(places):
                    node = j if groups == 1 else places + i
                    flow[node] = min(supply[i], demand[j])
                    arc_cost[node] = row[0, j]
        else:
            table = no_table
            if groups * places <= table_cells:
                table = table_space[: groups * places].reshape((groups, places))
                distances(int(np.int64(0)), groups, places, geometry, table)
            gaps[step] = solve(
                groups,
                places,
                supply,
                demand,
                table,
                geometry,
                0.0,
                tree,
                flow,
                arc_cost,
                prices,
                row,
                best,
                choice,
                choice_cost,
            )

        costs[step] = deal_out(
            groups,
            places,
            locations,
            people,
            tree,
            flow,
            arc_cost,
            group_number,
            place_number,
            group_of,
            rank_of,
            size_of,
            cancelled,
            then,
            by_place,
            by_group,
            sorted_group,
            sorted_place,
            sorted_flow,
            deal_place,
            deal_flow,
        )
