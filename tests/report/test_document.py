"""A document whose sentences are changed."""

from __future__ import annotations

from concurve.report.document import Document, List, Paragraph, once


def paragraphs(*texts: str) -> tuple[Paragraph, ...]:
    return tuple(map(Paragraph, texts))


def test_advice_is_given_once_and_leaves_no_empty_paragraph() -> None:
    document = Document("title", (List(paragraphs("One. Wait.", "Wait.", "Two. Wait.")),
                                  *paragraphs("Wait.", ""), List(paragraphs("Wait."))))  # fmt: skip
    assert once(document, ["Wait."]).blocks == (
        List(paragraphs("One. Wait.", "Two.")),
        *paragraphs(""),
    )


def test_each_advice_is_given_once() -> None:
    document = Document("title", paragraphs("A. Wait.", "B. Measure.", "C. Measure.", "D. Wait."))
    found = once(document, ["Wait.", "Measure."])
    assert found.blocks == paragraphs("A. Wait.", "B. Measure.", "C.", "D.")
