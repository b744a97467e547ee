"""Circles of a graph: files that reach each other."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet


def circles(graph: Mapping[str, AbstractSet[str]]) -> list[list[str]]:
    """Sets of two and more nodes that each reach the others, in order.

    >>> circles({"a": {"b"}, "b": {"a", "c"}, "c": set()})
    [['a', 'b']]
    """
    return sorted(sorted(found) for found in _components(graph) if len(found) > 1)


def _components(graph: Mapping[str, AbstractSet[str]]) -> Iterator[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in graph:
        if root in index:
            continue
        stack = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    path.append(target)
                    on_path.add(target)
                    stack.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = path.index(node)
                    found = path[cut:]
                    del path[cut:]
                    on_path.difference_update(found)
                    yield found
