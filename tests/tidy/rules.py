"""All rules of tidy, and the one function that applies them to a tree."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.tidy import layers, shape, words
from tests.tidy.tree import Finding, Source, sources

OF_FILES: Final[tuple[Callable[[Source], Iterator[Finding]], ...]] = (
    layers.forbidden_imports,
    layers.waiting,
    layers.identity_of_memory,
    layers.iteration_over_sets,
    layers.floats_on_instants,
    layers.wire_fields_without_bound,
    layers.untyped_decoding,
    layers.effects_past_the_outbox,
    layers.nouns_past_the_kit,
    layers.functions_in_tables,
    shape.unparsable,
    shape.long_functions,
    shape.large_classes,
    shape.long_modules,
    shape.deep_nesting,
    shape.many_parameters,
    shape.missing_docstrings,
    shape.several_stories,
    shape.packages_without_a_word,
    words.registry_hosts,
    words.machine_paths,
    words.words_of_work,
    words.texts_elsewhere,
    words.metaphors,
    words.modules_to_be_guessed,
    words.names_to_be_guessed,
    words.unfinished,
    words.silenced_without_reason,
    words.skipped_tests,
    words.sleeping_tests,
    words.possessive_groups,
)
OF_TREES: Final[tuple[Callable[[list[Source]], Iterator[Finding]], ...]] = (
    layers.rooms_of_cores,
    layers.circles_of_imports,
    layers.small_modules,
    shape.dead_code,
)


def findings(root: Path) -> list[Finding]:
    """Everything that any rule finds under `root`, by file and line."""
    files = list(sources(root))
    found = [finding for source in files for rule in OF_FILES for finding in rule(source)]
    found += [finding for rule in OF_TREES for finding in rule(files)]
    return sorted(found)
