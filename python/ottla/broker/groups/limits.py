"""Bounds of the group coordinator, each with its reason.

What is past a bound is answered with an error of the protocol; see `docs` of each constant.
"""

# Groups a coordinator holds. Kafka has no bound; a client that commits under ever new names fills
# its memory. Past it: GROUP_MAX_SIZE_REACHED for members, INVALID_COMMIT_OFFSET_SIZE for offsets.
MAX_GROUPS = 100_000

# Member ids given out (KIP-394) whose owners have not joined yet, in each group. A flood of first
# joins costs this much and no more. Past it: GROUP_MAX_SIZE_REACHED.
MAX_PENDING_MEMBERS = 10_000

# Committed and pending offsets of all groups; what the audit reads of a partition is bounded alike.
# Past it: INVALID_COMMIT_OFFSET_SIZE.
MAX_OFFSETS = 1 << 21

# Bytes of protocols and metadata of one member; its group's record has to fit a batch of
# `__consumer_offsets`. Past it: INVALID_REQUEST.
MAX_MEMBER_METADATA_BYTES = 1 << 20

# Members of a group, where `group.max.size` and `group.consumer.max.size` allow more.
MAX_MEMBERS = 100_000

# Length of a regular expression and number of states it may compile to. Matching costs states times
# characters at most. Past them: INVALID_REGULAR_EXPRESSION.
MAX_PATTERN_LENGTH = 1_000
MAX_PATTERN_STATES = 5_000

# Groups within groups of a pattern, each of which takes a frame of the stack.
MAX_PATTERN_DEPTH = 50

# Repetitions that a pattern may ask for in braces, as RE2.
MAX_PATTERN_REPEAT = 1_000

# States in those moves of a pattern's automaton that are remembered; past it they are worked out
# anew.
MAX_PATTERN_MOVES = 20_000

# States that are passed while a pattern is held against all names, some 0.3 s, and so many more for
# each name; the client that comes with it gets INVALID_REGULAR_EXPRESSION. What is remembered of
# earlier names costs nothing, so patterns over ordinary names stay far below.
MAX_PATTERN_WORK = 500_000
MAX_PATTERN_WORK_A_NAME = 20
