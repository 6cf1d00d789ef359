"""House rule: code speaks the language of the field (docs/glossary.md). What had a private name and
was renamed keeps its new name: the old one comes back neither as an identifier, nor as a file, nor
in a comment.

NAMES and SCOPED are identifiers of C++ and CUDA, FILES are paths, PHRASES are words of comments. An
old pass name stands only beside the new one, where it is still accepted (ALIASES).
"""

import re

from law import CPP, code, comments, finding, lines

# {identifier: what it is called now}, everywhere.
NAMES = dict(
    line.strip().split(": ")
    for line in """
    Ahead: PrefetchRange
    alone_along: batch_independent_along_axis
    await_previous: wait_for_previous_grid
    Beyond: PadMode or PaddingMode
    block_place: block_position
    BlockCut: BlockTiling
    Bound: DataDependentDims
    by_place: pixel_major or pixels
    canon: canonicalize
    canon64: canonicalize64
    carries: batched or moves_elements
    company: batching
    Company: Batching
    copy_cut: copy_partition
    copy_panel: pack_panel
    CopyCut: CopyPartition
    couple: binary_scalar
    covered_rows: norm_rows
    Curve: Interpolation
    Cut: WorkPartition or GemmPartition or SegmentBuilder
    cut_of: gemm_partition
    enqueue_all: enqueue_batch
    exact_quotient: exact_div
    Extent: Dim or StepShape or Shape
    Facts: Availability or SliceFacts
    feed_there: feed_device
    fetch_only: select_outputs
    few_rows: gemv
    find_library: find_vendor
    Finish: GemmEpilogue or RowNormalizer
    finish_plain: apply_epilogue_fast
    floor_quotient: floor_div_unmerged
    FlowEntry: ControlFlowEntry
    Fold: SoftmaxRescale or OnlineSoftmax or FuseOperations
    fold_weights_pass: fuse_operations_pass
    FoldWeights: FuseOperations
    Forced: Constraint
    forced_by: equality_constraint
    Formula: ExprBuilder
    Found: TensorRef
    goes_on: is_true or condition_is_constant or condition_stays_true
    Hashed: DigestCache
    How: Staging
    Inlined: InlineConstants
    JoinIs: ReductionIs
    kByPlace: kPixelMajor
    Kept: CopyBits or Unchanged
    key_at: key_of_slot
    kGives: kStoresRow
    Known: ChannelBlock or GroupParams
    kSmaller: kMinPrefix
    kTall: kThreadRows or kSums
    kTurnAcross: kTransposeAcross
    kTurned: kTransposeTile
    kTurnGroup: kTransposeGroup
    kTurnRows: kTransposeRows
    launch_early: launch_dependent
    library_rows: vendor_rows
    LibraryRow: VendorRow
    lies: alias_offset or in_place or is_view
    Life: LiveRange
    Light: InRegisterEpilogue
    light_epilogue: add_relu_epilogue
    Line: AxisBounds or CacheLine or PaddedRun
    Looped: LoopOperands
    Manner: RunMode
    manner_from: run_mode_from
    misfit: shape_error
    exp_near: exp_fast
    Most: Peak or MaxOp or MaxReduction
    move_walk: move_loops
    MovePiece: MoveRun
    MovePlace: MoveCursor
    MoveWalk: MoveLoops
    Named: NamedTensors
    names_no_place: out_of_bounds_error
    never_negative: is_nonnegative
    Now: StepHeader or Header
    nowhere: out_of_bounds_value
    OnceMemory: EagerMemory
    PadOfNothing: IdentityPad
    PanelPlace: PanelOffset or PanelSlice
    Part: Segment or ConstantSubgraph
    PartProgram: SegmentExecutor
    pays: charge_elements
    Phases: ConvPhase
    PlaceCut: PixelPartition
    Placed: IndirectA
    PlacedRow: IndexedRow
    Polynomial: DimExpr
    polynomial_of: dim_expr_of
    Ports: LoweringState
    put_two: store_split
    Quantised: QuantizedTensor or QuantizedB
    queue_whole: launch_held_rows
    Recover: RecognizeIdioms
    release_next: trigger_next_grid
    remove_dead: erase_dead_ops
    Replacing: DimReplacement
    Rooms: RuleRegistry
    scan_place: scan_position
    Seen: KeyMask
    Sequences: SequenceEliminator
    settle_rare: resolve_uncertain
    Settled: RoundedResult or DimConstraints
    Settling: DimSubstitution
    settling: substitution
    share_beside: parallel_for_overlapped
    shared_bytes_all: shared_bytes_batch
    shared_out: splits_keys
    Shares: ScatterPartition
    Sight: VisibleKeys
    Sizing: DimPropagation
    slots_of: plan_memory
    Spaced: DirectA
    Stored: Canonical
    stray: out_of_bounds or find_out_of_bounds
    Stray: OutOfBounds
    stray_of: find_out_of_bounds or out_of_bounds_of
    Stretch: KSpan
    thin: depthwise
    Tiled: GroupedGemm
    Together: GroupedPlan
    told: reported or record
    ToPlan: LowerToPlan
    ToRepro: LowerOnnxPass
    Traced: TracedElement
    Truth: Bool8
    Tuples: IndexTuples
    Turn: CosSin or Wave
    Unclamped: UnclampedSlice
    Walk: BroadcastLoops or TapCursor
    Way: Dequantization or CublasPlan or Route
    Whole: IntegerOp or ElementMap
    WholeBlock: SmemKvBlock
    with_join: with_reduction
    with_number: match_scalar_op
    WithNumber: ScalarOp
    WordsBytes: ReaderBytes
    Work: Cost or ProductScratch or UnitScratch
    Wrap: Unsigned
""".strip().splitlines()
)
# {identifier: (what it is called now, where)}, of those that have a use elsewhere.
SCOPED = {
    "Listener": ("EpilogueRecorder", "src/conformance/"),
    "alone": ("batch_independent", "src/kernels/"),
    "light": ("add_relu or InRegisterEpilogue", "src/kernels/"),
    "measure": ("materialize_dims", "src/compiler/"),
    "spread": ("expand", "src/compiler/"),
    "widened": ("expand_to", "src/compiler/"),
}
# {pattern of a path: what it is called now}.
FILES = {
    r"src/ir/": "src/compiler/",
    r"src/compiler/.*\b(compose|rules)\.h$": "lowering/op_builder.h, rule_registry.h",
    r"src/.*/compositions/": "lowering/decompositions/",
    r"src/.*/(settled|spread|unclamped|flow|steps|places|order|recover|bound)\.(cc|h)$": "the term of the field, see docs/glossary.md",
    r"src/run/(.*/)?(once|share|start|choose|loading|scope|part|turns)(_test)?\.(cc|h)$": "eager, worker_count, thread_setup, ...",
    r"src/ops/[^/]+/(.*/)?(near|far|whole|ring|rows|step|split|tile|words|stage|dense|places)\.(cuh|cu|h)$": "what the kernel does: decode_cluster, split_kv, smem_loader, ...",
    r"src/(ops|kernels)/(.*/)?(tile|tiles|panel|finish|flat|divide|rank|pairs|slide|lanes|turn|along|across|thin|columns)\.(cuh|h)$": "gemm_microkernel, gemm_blocking, row_sort, ...",
    r"src/num/(arc|rows|hyperbolic_inverse)/": "inverse_trig, table_lookup, inverse_hyperbolic",
    r"src/prompt/(added|impl|read)\.(cc|h)$": "added_tokens, tokenizer_model, tokenizer_json",
    r"tests/(.*/)?test_(settled|spelled|unproven|sets|levels)\.py$": "dim_constraints, idiom_recognition, operation_sets, ...",
}
# (words of a comment, where, what to say).
PHRASES = [
    (
        r"\b(?:tell|tells|told) of\b",
        "src/(kernels|ops|run|conformance)/",
        "passes to the epilogue callback",
    ),
    (
        r"\bsettle[sd]?\b|\bsettling\b",
        "src/(compiler|onnx|shape|plan)/",
        "resolve a dimension, learn a constraint",
    ),
    (
        r"\bReference rows only\b|\bRows of a [CG]PU\b|\b[CG]PU rows\b",
        "src/kernels/",
        "a member of OpContract, CpuKernel or GpuKernel",
    ),
    (r"\bnames? no place\b", "src/", "is out of bounds"),
    (r"\bcompositions?\b", "src/compiler/", "decomposition"),
    (r"\bpolynomials?\b", "src/(compiler|onnx|plan|run)/", "a dimension expression (DimExpr)"),
    (r"\bcompany\b", "(src|apps)/", "batched decoding, the other sequences of the batch"),
    (r"\bthere and back\b", "src/ops/", "boustrophedon order"),
]
# Old pass names, which --emit still accepts: {old: new}.
ALIASES = {
    "repro-fold": "repro-fuse",
    "repro-recover": "repro-recognize-idioms",
    "repro-simplify": "repro-canonicalize",
    "repro-turn": "repro-sink-transposes",
    "repro-settle": "repro-prepare-plan",
}
HISTORY = ("docs/notebook/", "docs/design/adr/", "docs/decisions.md", "tools/laws/")


def banned(path):
    """{identifier: new name} of what may not stand in this file."""
    here = {old: new for old, (new, where) in SCOPED.items() if path.startswith(where)}
    return {**NAMES, **here}


def check(files):
    found = []
    for path, text in files.items():
        for pattern, new in FILES.items():
            if re.match(pattern, path):
                found.append(finding(path, 1, f"is named as the file was before; now: {new}"))
        if text is None or path.startswith(HISTORY):
            continue
        raw = text.split("\n")
        for n, line in lines(text) if "repro-" in text else []:
            for old, new in ALIASES.items():
                if re.search(rf"{old}\b", line) and not any(
                    new in near for near in raw[max(0, n - 3) : n]
                ):
                    found.append(
                        finding(
                            path,
                            n,
                            f"'{old}' is now '{new}'; the old name stands only beside it, as an alias",
                        )
                    )
        if not path.endswith(CPP):
            continue
        names = banned(path)
        word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b") if names else None
        for n, line in lines(code(text, strings=False)):
            for m in word.finditer(line) if word else []:
                found.append(finding(path, n, f"'{m.group(1)}' is now '{names[m.group(1)]}'"))
        said = comments(text)
        for pattern, where, new in PHRASES:
            if re.match(where, path):
                for m in re.finditer(pattern, said):
                    line = said.count("\n", 0, m.start()) + 1
                    found.append(
                        finding(path, line, f"'{m.group(0)}': say it in the field's words: {new}")
                    )
    return found


SELF_TEST = [
    ("an old name", {"src/plan/x.h": "Polynomial p;\n"}, 1),
    ("an old name of one stage", {"src/compiler/x.cc": "if (carries(op)) return;\n"}, 1),
    ("an old file", {"src/compiler/lowering/compose.h": "int x;\n", "src/ir/x.cc": "int x;\n"}, 2),
    ("an old phrase", {"src/kernels/x.h": "// The epilogue is told of each part.\n"}, 1),
    ("an old pass", {"tests/compiler/test_x.py": '"repro-settle"\n'}, 1),
    (
        "an alias, an everyday word, another use, the history",
        {
            "src/compiler/compiler.cc": '{"repro-prepare-plan", f, "repro-settle"}\n// carries the result\n',
            "src/run/x.cc": 'int spread = 1;\nf("Polynomial");\n',
            "docs/notebook/x.md": "repro-turn\n",
        },
        0,
    ),
]
