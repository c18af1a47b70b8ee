"""Labels keep off points, lines, one another and the frame; what finds no room is left out."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Annotation

from memlab.show.label_places import PointLabel, place_labels
from memlab.show.style import BLACK, new_axes

SPOTS = st.tuples(st.floats(0, 10), st.floats(0, 10))


def drawn(spots, lines=(), width=8.0, height=5.0):
    ax = new_axes(None, width, height)
    ax.set(xlim=(0, 10), ylim=(0, 10))
    labels = [PointLabel(x, y, f"strategy {n}", BLACK) for n, (x, y) in enumerate(spots)]
    written = place_labels(ax, labels, spots, lines)
    return ax, written, {text.get_text(): text.get_window_extent() for text in names(ax)}


def names(ax) -> list[Annotation]:
    return [text for text in ax.texts if text.get_text()]


@settings(max_examples=25, deadline=None)
@given(st.lists(SPOTS, min_size=1, max_size=14))
def test_no_label_lies_on_another_a_point_a_line_or_the_frame(spots) -> None:
    ax, written, _ = drawn(spots, [((0, 5), (10, 5))])
    assert {label.text for label in written} == {text.get_text() for text in names(ax)}
    boxes = [text.get_tightbbox() if text.arrow_patch is None else text.get_window_extent() for text in names(ax)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    frame, level = ax.get_window_extent(), ax.transData.transform((0, 5))[1]
    for box in boxes:
        assert frame.padded(1).contains(box.x0, box.y0)
        assert frame.padded(1).contains(box.x1, box.y1)
        assert not box.y0 < level < box.y1
        assert not any(box.contains(*ax.transData.transform(spot)) for spot in spots)


def test_a_lone_label_stands_beside_its_point_without_a_line() -> None:
    ax, written, boxes = drawn([(5, 5)])
    assert len(written) == len(ax.texts) == 1
    assert 0 < boxes["strategy 0"].x0 - ax.transData.transform((5, 5))[0] < 30


def test_a_label_that_has_to_go_far_gets_a_line() -> None:
    ax, written, _ = drawn([(5, 5 + 0.05 * n) for n in range(8)])
    assert len(written) == 8
    assert any(text.arrow_patch is not None for text in ax.texts)


def test_a_label_that_finds_no_room_is_left_out() -> None:
    ax, written, _ = drawn([(5, 5)], width=1.4, height=1.2)
    assert written == []
    assert ax.texts[:] == []
