//! What the catalogue says of causes and traces.

use ottla_audit::{Effect, FindingKind, Joining};

/// The kinds of which a kind can be a trace.
fn causes(kind: FindingKind) -> Vec<FindingKind> {
    let can_cause = |cause: &FindingKind| kind.row().can_be_trace_of(cause.row());
    FindingKind::ALL.iter().copied().filter(can_cause).collect()
}

#[test]
fn no_kind_is_a_trace_of_itself_by_way_of_others() {
    for &kind in FindingKind::ALL {
        let mut above = causes(kind);
        let mut next = 0;
        while let Some(&cause) = above.get(next) {
            assert_ne!(cause, kind, "a circle of causes");
            above.extend(
                causes(cause).into_iter().filter(|kind| !above.contains(kind)).collect::<Vec<_>>(),
            );
            next += 1;
        }
    }
}

#[test]
fn every_effect_has_a_cause_and_a_trace() {
    let effects = FindingKind::ALL.iter().flat_map(|kind| kind.row().effects);
    let traced = FindingKind::ALL.iter().flat_map(|kind| kind.row().trace_of);
    let mut effects: Vec<&str> = effects.map(|effect| effect.name()).collect();
    let mut traced: Vec<&str> = traced.map(|effect| effect.name()).collect();
    for names in [&mut effects, &mut traced] {
        names.sort_unstable();
        names.dedup();
    }
    assert_eq!(effects, traced);
}

#[test]
fn the_index_can_be_a_trace_of_what_moves_batches_but_not_of_what_hides_them() {
    let index = FindingKind::IndexMismatch.row();
    assert!(index.can_be_trace_of(FindingKind::OffsetGap.row()));
    assert!(!index.can_be_trace_of(FindingKind::MagicFault.row()));
    assert_eq!(Effect::MovesBatches.name(), "moves-batches");
    assert_eq!(Joining::SameFile.name(), "same-file");
}
