"""Sketches: the distribution of values to within 1 %, in a form that can be added (PIP-047); and macros for DuckDB.

A value `v > 0` is counted in the bucket with index `ceil(ln v / ln g)`, where g = 1.01 / 0.99. A negative value is counted
by its magnitude, in buckets of a second side. A value whose magnitude is below 1e-9 counts as zero. The estimate of bucket
i, `2 g^i / (g + 1)`, is at most 1 % off any value in it. Merging only adds counts, so order and grouping do not matter,
and a merged sketch is exactly the sketch of all values.

A side has at most 2,048 buckets, which span nearly eighteen powers of ten. If there are more, those of least magnitude are
merged into one, and `collapsed` is true.
"""

from typing import Final

GAMMA: Final = 1.01 / 0.99
LN_GAMMA: Final = 0.020000666706669435
"""Natural logarithm of `GAMMA`, as a literal, so that every engine divides by the same number."""
SHARE: Final = 2.0 / (GAMMA + 1.0)  # the estimate of a bucket is this share of its upper end
ZERO_BELOW: Final = 1e-9
VALUE_MAX: Final = 1e308  # larger values, including infinity, count as this, so that the index fits every integer type
BUCKETS_MAX: Final = 2_048

_BUCKETS: Final = 'STRUCT("index" INTEGER, "count" BIGINT)[]'
_SKETCH: Final = f"STRUCT(zero BIGINT, positive {_BUCKETS}, negative {_BUCKETS}, collapsed BOOLEAN)"
_POINTS: Final = "STRUCT(v DOUBLE, n BIGINT)[]"
_ESTIMATE: Final = f"pow({GAMMA!r}::DOUBLE, b.index) * {SHARE!r}::DOUBLE"
_INDEX: Final = f"ceil(ln(least(abs(value), {VALUE_MAX!r})) / {LN_GAMMA!r}::DOUBLE)::INTEGER"
MACROS: Final = (
    f"""_sketch_starts(sorted {_BUCKETS}) AS
        list_filter(range(1, len(sorted) + 1), lambda p: p = 1 OR sorted[p].index <> sorted[p - 1].index)""",
    f"""_sketch_grouped(sorted {_BUCKETS}, starts BIGINT[]) AS list_transform(starts, lambda p, j: {{
        'index': sorted[p].index, 'count': list_sum(list_transform(
            sorted[p : coalesce(starts[j + 1], len(sorted) + 1) - 1], lambda b: b.count))::BIGINT}})""",
    f"_sketch_added(sorted {_BUCKETS}) AS _sketch_grouped(sorted, _sketch_starts(sorted))",
    f"_sketch_side(buckets {_BUCKETS}) AS list_transform([list_sort(buckets)], lambda s: _sketch_added(s))[1]",
    f"""_sketch_cut(buckets {_BUCKETS}) AS CASE WHEN len(buckets) <= {BUCKETS_MAX} THEN buckets ELSE list_concat([{{
        'index': buckets[len(buckets) - {BUCKETS_MAX - 1}].index,
        'count': list_sum(list_transform(buckets[1 : len(buckets) - {BUCKETS_MAX - 1}], lambda b: b.count))::BIGINT
        }}], buckets[len(buckets) - {BUCKETS_MAX - 2}:]) END""",
    f"""_sketch_united(zero BIGINT, positive {_BUCKETS}, negative {_BUCKETS}, collapsed BOOLEAN) AS {{
        'zero': zero, 'positive': _sketch_cut(positive), 'negative': _sketch_cut(negative),
        'collapsed': collapsed OR len(positive) > {BUCKETS_MAX} OR len(negative) > {BUCKETS_MAX}}}""",
    f"""_sketch_merged(sketches {_SKETCH}[]) AS
        CASE WHEN len(sketches) > 0 AND len(list_filter(sketches, lambda s: s IS NULL)) = 0 THEN list_transform([{{
            'p': _sketch_side(flatten(list_transform(sketches, lambda s: s.positive))),
            'n': _sketch_side(flatten(list_transform(sketches, lambda s: s.negative)))}}],
        lambda u: _sketch_united(list_sum(list_transform(sketches, lambda s: s.zero))::BIGINT, u.p, u.n,
                                 list_bool_or(list_transform(sketches, lambda s: s.collapsed))))[1] END""",
    f"sketch_merge(sketches {_SKETCH}[]) AS list_transform([sketches], lambda given: _sketch_merged(given))[1]",
    f"""_sketch_points(sketch {_SKETCH}) AS list_concat(
        list_reverse(list_transform(sketch.negative, lambda b: {{'v': -{_ESTIMATE}, 'n': b.count}})),
        [{{'v': 0.0::DOUBLE, 'n': sketch.zero}}],
        list_transform(sketch.positive, lambda b: {{'v': {_ESTIMATE}, 'n': b.count}}))""",
    f"""_sketch_found(points {_POINTS}, rank DOUBLE) AS list_reduce(points, lambda a, b: {{
        'v': CASE WHEN a.n > rank THEN a.v ELSE b.v END, 'n': CASE WHEN a.n > rank THEN a.n ELSE a.n + b.n END}}).v""",
    f"""sketch_quantile(sketch {_SKETCH}, q DOUBLE) AS CASE WHEN q BETWEEN 0 AND 1 THEN
        list_transform(list_transform([sketch], lambda s: _sketch_points(s)), lambda p: CASE WHEN list_sum(list_transform(p, lambda b: b.n)) > 0
            THEN _sketch_found(p, q * (list_sum(list_transform(p, lambda b: b.n)) - 1)::DOUBLE) END)[1] END""",
    f"""percentile(sketch {_SKETCH}, q DOUBLE, lowest DOUBLE, highest DOUBLE) AS
        least(greatest(sketch_quantile(sketch, q), lowest), highest)""",
    f"""sketch_of(value DOUBLE) AS CASE WHEN value IS NULL THEN
            {{'zero': 0, 'positive': [], 'negative': [], 'collapsed': false}}::{_SKETCH}
        WHEN abs(value) < {ZERO_BELOW!r} THEN
            {{'zero': 1, 'positive': [], 'negative': [], 'collapsed': false}}::{_SKETCH}
        WHEN value > 0 THEN
            {{'zero': 0, 'positive': [{{'index': {_INDEX}, 'count': 1}}], 'negative': [], 'collapsed': false}}::{_SKETCH}
        ELSE {{'zero': 0, 'positive': [], 'negative': [{{'index': {_INDEX}, 'count': 1}}], 'collapsed': false}}::{_SKETCH}
        END""",
)
"""For `CREATE MACRO`: `sketch_quantile(sketch, q)`; `percentile(sketch, q, min, max)`, the quantile within these bounds;
`sketch_merge(list of sketches)`; `sketch_of(value)`.
"""
