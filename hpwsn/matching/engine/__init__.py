"""The default matching engine: several indexes of conjunctions behind one interface. Pure.

`default_engine` puts each conjunction of a request into the first index below that accepts it. An event is
looked up in every index that has entries, and the ids found are merged.

- `keyword_index` takes conjunctions with `has(…)`. Each is stored under its rarest word, in the grid cells
  (`cells`, `word_cells`) that its rectangle touches.
- `equality_index` takes conjunctions with an equality or a list whose values few others name. Hash tables
  find them by one value, or by a pair of values (`equality_pairs`).
- `conjunction_index` takes conjunctions on an attribute that fewer than eight others use. It evaluates them
  one by one if the event has the attribute.
- `interval_index` takes the other conjunctions with at least one positive predicate. `intervals` turns them
  into rows of intervals, `interval_groups` stores rows with common attributes, `segments` packs them into
  bitsets, and `kernels` or `compiled_kernel` finds the rows that match.

The engine evaluates conjunctions of negated predicates alone for every event. It does not store conjunctions
that can never match.
"""
