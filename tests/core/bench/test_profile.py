"""The profiler's stacks become shares of functions."""

from bench.profile import function_table


def test_functions_are_ordered_by_their_own_share() -> None:
    stacks = "main (a.py:1);work (b.py:3) 3\nmain (a.py:2);work (b.py:9);work (b.py:9) 4\nmain (a.py:7) 3\n"
    _, _, *lines = function_table(stacks).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells == [["70.0%", "70.0%", "work (b.py)"], ["30.0%", "100.0%", "main (a.py)"]]
