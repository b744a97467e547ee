//! Which findings have one cause: a finding of the log, and what shows it in other places.
//!
//! The catalogue says of each kind what it does as a cause ([`Row::effects`]), and of which effects it
//! can be a trace ([`Row::trace_of`]). Here is where cause and trace have to be for that; both are in one
//! partition. Finding the cause of a trace takes time in proportion to the logarithm of the number of
//! findings.

use crate::catalogue::causes::Cause;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::{ConsumerEffect, Effect, Joining, Row};
use crate::catalogue::severity::Severity;
use ottla_log::names::{FileKind, FileName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What has to be known of a finding, and where it is. Offsets, positions and the like as in
/// [`Finding`](crate::Finding).
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// What it is.
    pub kind: FindingKind,
    /// How grave.
    pub severity: Severity,
    /// Bytes from the start of the file.
    pub position: Option<u64>,
    /// Bytes affected.
    pub size: Option<u64>,
    /// First offset affected.
    pub first_offset: Option<i64>,
    /// Last offset affected.
    pub last_offset: Option<i64>,
    /// The producer affected.
    pub producer_id: Option<i64>,
    /// Why offsets are missing.
    pub cause: Option<Cause>,
    /// What should have been there.
    pub expected: &'a str,
    /// What is there.
    pub found: &'a str,
    /// The file or directory.
    pub path: Option<&'a [u8]>,
    /// Directory of the partition that it is about.
    pub directory: Option<&'a [u8]>,
}

/// The end of a partition's log.
#[derive(Clone, Copy, Debug)]
pub struct LogEnd<'a> {
    /// The log end offset.
    pub offset: i64,
    /// Path of the last segment.
    pub segment: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// Whether the broker had stopped cleanly.
    pub is_clean: bool,
}

/// Findings of one partition that have one cause, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The cause, or what shows it best.
    pub head: usize,
    /// All of them, the head first.
    pub members: Vec<usize>,
    /// That of the gravest.
    pub severity: Severity,
    /// The first and the last of the offsets that the log had at its end, if it lost it.
    pub lost_end: Option<(i64, i64)>,
    /// Whether the head claims offsets beyond the end that no other file confirms.
    pub is_contradicted: bool,
}

/// Returns findings in groups of one cause; every finding is in one of them.
///
/// `faults` are all findings, sorted by place, and `ends` the ends of logs, by directory, as far as they
/// are known.
pub fn group_findings(faults: &[Fault<'_>], ends: &BTreeMap<&[u8], LogEnd<'_>>) -> Vec<Group> {
    let mut logs: Vec<(&[u8], Vec<usize>)> = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    for (index, fault) in faults.iter().enumerate() {
        let named = fault.directory.filter(|directory| !directory.is_empty());
        let directory = named.or(fault.path).unwrap_or(b"");
        // Findings of one log follow each other, mostly.
        if let Some((last, indexes)) = logs.last_mut()
            && *last == directory
        {
            indexes.push(index);
            continue;
        }
        let place = *places.entry(directory).or_insert(logs.len());
        match logs.get_mut(place) {
            Some((_, indexes)) => indexes.push(index),
            None => logs.push((directory, vec![index])),
        }
    }
    let groups = logs.into_iter().flat_map(|(directory, indexes)| {
        let end = ends.get(directory).copied();
        let of_log = indexes.iter().filter_map(|&index| Some((index, faults.get(index)?)));
        LogFaults::new(of_log.collect(), end).into_groups()
    });
    groups.collect()
}

/// The segment or the producer that a cause and its traces share, where they have to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shared<'a> {
    Nothing,
    Producer(i64),
    Segment(&'a [u8]),
}

impl<'a> Shared<'a> {
    fn of(effect: Effect, fault: &Fault<'a>) -> Self {
        match effect {
            Effect::DisturbsProducer | Effect::RepeatsSequences => {
                fault.producer_id.map_or(Self::Nothing, Self::Producer)
            }
            Effect::MovesBatches
            | Effect::MisplacesBatches
            | Effect::MiscountsOffsets
            | Effect::ChangesTimestamps => {
                let name = base_name(fault.path.unwrap_or(b""));
                Self::Segment(name.split(|&byte| byte == b'.').next().unwrap_or(name))
            }
            Effect::LosesEnd
            | Effect::RemovesOffsets
            | Effect::HidesOffsets
            | Effect::LosesMarkers
            | Effect::ChangesBytes
            | Effect::ChangesEpochs => Self::Nothing,
        }
    }
}

pub(crate) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Causes with one effect, by what they share with their traces, in the order of offsets.
#[derive(Debug, Default)]
struct EffectCauses<'a> {
    /// First offset and number of each.
    found: HashMap<Shared<'a>, Vec<(i64, usize)>>,
    /// The first cause of each place whose offsets are not known.
    without_offsets: HashMap<Shared<'a>, usize>,
}

impl<'a> EffectCauses<'a> {
    fn add(&mut self, place: Shared<'a>, first: Option<i64>, number: usize) {
        match first {
            None => drop(self.without_offsets.entry(place).or_insert(number)),
            Some(first) => self.found.entry(place).or_default().push((first, number)),
        }
    }

    fn at(&self, place: Shared<'a>) -> &[(i64, usize)] {
        self.found.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The last cause that begins at or below an offset, and the first above it.
    fn around(&self, place: Shared<'a>, offset: i64) -> (Option<usize>, Option<usize>) {
        let found = self.at(place);
        let above = found.partition_point(|&(first, _)| first <= offset);
        let at = |place: Option<usize>| place.and_then(|place| found.get(place)).map(|&(_, n)| n);
        (at(above.checked_sub(1)), at(Some(above)))
    }

    fn last_up_to(&self, place: Shared<'a>, offset: i64) -> Option<usize> {
        self.around(place, offset).0
    }
}

/// What findings with one cause have in common although neither is a trace: their kind, and as it joins
/// them their file, position or cause.
type Joint<'a> = (FindingKind, Option<&'a [u8]>, Option<u64>, Option<Cause>);

/// The findings of one partition, by number, each with its index among all.
struct LogFaults<'a> {
    faults: Vec<(usize, &'a Fault<'a>)>,
    end: Option<LogEnd<'a>>,
    /// By effect, in the order in which they were first met.
    causes: Vec<(Effect, EffectCauses<'a>)>,
    cause_of: Vec<Option<usize>>,
    lost_end: HashMap<usize, (i64, i64)>,
    contradicted: HashSet<usize>,
}

impl<'a> LogFaults<'a> {
    fn new(faults: Vec<(usize, &'a Fault<'a>)>, end: Option<LogEnd<'a>>) -> Self {
        let cause_of = vec![None; faults.len()];
        let (lost_end, contradicted) = (HashMap::new(), HashSet::new());
        let mut log = Self { faults, end, causes: Vec::new(), cause_of, lost_end, contradicted };
        let all = log.faults.iter().enumerate();
        let mut causes: Vec<(Effect, EffectCauses<'a>)> = Vec::new();
        for (number, (_, fault)) in all.filter(|(_, (_, fault))| !fault.is_lawful()) {
            for &effect in fault.row().effects {
                let known = causes.iter().position(|(known, _)| *known == effect);
                let place = known.unwrap_or(causes.len());
                if known.is_none() {
                    causes.push((effect, EffectCauses::default()));
                }
                if let Some((_, of_effect)) = causes.get_mut(place) {
                    of_effect.add(Shared::of(effect, fault), log.first(fault), number);
                }
            }
        }
        for (_, of_effect) in &mut causes {
            of_effect.found.values_mut().for_each(|found| found.sort_unstable());
        }
        log.causes = causes;
        log
    }

    /// The groups, in the order of their first findings.
    fn into_groups(mut self) -> Vec<Group> {
        for number in 0..self.faults.len() {
            if let Some(cause) = self.cause(number) {
                self.set_cause(number, cause);
            }
        }
        if let Some(end) = self.end {
            self.join_lost_end(end);
        }
        self.join_alike();
        let mut members = vec![Vec::new(); self.faults.len()];
        let mut order = Vec::new();
        for number in 0..self.faults.len() {
            let head = self.root(number);
            let Some(of_head) = members.get_mut(head) else { continue };
            if of_head.is_empty() {
                order.push(head);
            }
            of_head.push(number);
        }
        order.iter().filter_map(|head| self.group(*head, members.get(*head)?)).collect()
    }

    /// The cause that has none itself. There is one: no kind is a trace of itself by way of others, and what
    /// is joined besides is joined to such a cause.
    fn root(&self, number: usize) -> usize {
        let mut root = number;
        while let Some(&Some(cause)) = self.cause_of.get(root) {
            root = cause;
        }
        root
    }

    fn group(&self, head: usize, found: &[usize]) -> Option<Group> {
        let index = |number: usize| self.faults.get(number).map(|(index, _)| *index);
        let others = found.iter().filter(|&&number| number != head);
        Some(Group {
            head: index(head)?,
            members: std::iter::once(&head).chain(others).filter_map(|n| index(*n)).collect(),
            severity: found.iter().filter_map(|n| self.fault(*n)).map(|f| f.severity).max()?,
            lost_end: self.lost_end.get(&head).copied(),
            is_contradicted: self.contradicted.contains(&head),
        })
    }

    fn fault(&self, number: usize) -> Option<&'a Fault<'a>> {
        self.faults.get(number).map(|(_, fault)| *fault)
    }

    fn has_cause(&self, number: usize) -> bool {
        self.cause_of.get(number).is_some_and(Option::is_some)
    }

    fn set_cause(&mut self, number: usize, cause: usize) {
        if let Some(known) = self.cause_of.get_mut(number) {
            *known = Some(cause);
        }
    }

    fn causes(&self, effect: Effect) -> Option<&EffectCauses<'a>> {
        self.causes.iter().find(|(known, _)| *known == effect).map(|(_, causes)| causes)
    }

    /// The first offset of a cause; at the end of the log, the log end offset.
    fn first(&self, fault: &Fault<'_>) -> Option<i64> {
        fault
            .first_offset
            .or_else(|| self.end.filter(|_| self.is_at_end(fault)).map(|end| end.offset))
    }

    /// Whether nothing that can be read is behind it.
    fn is_at_end(&self, fault: &Fault<'_>) -> bool {
        let Some(end) = self.end.filter(|end| fault.path == Some(end.segment)) else {
            return false;
        };
        fault.first_offset.is_some_and(|first| first >= end.offset)
            || fault.position.unwrap_or(0).saturating_add(fault.size.unwrap_or(0)) >= end.size
    }

    /// The cause of which a finding is a trace, if it is one of the log itself.
    fn cause(&self, number: usize) -> Option<usize> {
        let trace = self.fault(number).filter(|trace| !trace.is_lawful())?;
        let effects = trace.row().trace_of.iter().filter(|effect| **effect != Effect::LosesEnd);
        let causes = effects.filter_map(|&effect| Some((effect, self.causes(effect)?)));
        let mut matching =
            causes.filter_map(|(effect, causes)| self.matching(effect, causes, trace));
        matching.find(|cause| *cause != number)
    }

    /// The cause with an effect that is where the trace says.
    fn matching(
        &self,
        effect: Effect,
        causes: &EffectCauses<'a>,
        trace: &Fault<'a>,
    ) -> Option<usize> {
        let place = Shared::of(effect, trace);
        let is_beside = trace.file_kind().is_some_and(|kind| kind != FileKind::Segment);
        if effect == Effect::MisplacesBatches
            && is_beside
            && let Some(&(_, first)) = causes.at(place).first()
        {
            return Some(first);
        }
        let first = trace.first_offset?;
        let mut last = trace.last();
        match effect {
            Effect::RepeatsSequences => return self.repeated(causes, trace, first),
            Effect::LosesMarkers => return causes.around(place, first).1,
            Effect::DisturbsProducer if place == Shared::Nothing => return None,
            Effect::DisturbsProducer if trace.waits_for_end() => last = i64::MAX,
            _ => {}
        }
        let cause = causes.last_up_to(place, last);
        if matches!(effect, Effect::MovesBatches | Effect::ChangesTimestamps) {
            return cause.or_else(|| causes.without_offsets.get(&place).copied());
        }
        let cause = cause?;
        let is_behind = matches!(effect, Effect::MiscountsOffsets | Effect::DisturbsProducer);
        let reach = self.fault(cause)?.last().saturating_add(i64::from(is_behind));
        (reach >= first).then_some(cause)
    }

    /// The batches whose sequences a trace has again.
    fn repeated(&self, causes: &EffectCauses<'a>, trace: &Fault<'_>, first: i64) -> Option<usize> {
        let own = trace.producer_id.map_or(Shared::Nothing, Shared::Producer);
        let own = causes.last_up_to(own, first);
        let size = own.and_then(|own| self.fault(own)).map(Fault::offsets);
        if size.is_some() && size == trace.sequences_back() {
            return own;
        }
        let any = causes.last_up_to(Shared::Nothing, first)?;
        (self.fault(any)?.last().saturating_add(1) >= first).then_some(any)
    }

    /// Joins what shows that the log had offsets behind its end.
    fn join_lost_end(&mut self, end: LogEnd<'_>) {
        let all = (0..self.faults.len()).filter_map(|number| Some((number, self.fault(number)?)));
        let shows: Vec<_> =
            all.filter(|(_, fault)| fault.row().trace_of.contains(&Effect::LosesEnd)).collect();
        let proofs =
            shows.iter().copied().filter(|(_, fault)| fault.proves_longer_than(end.offset));
        let strong: Vec<_> = proofs.collect();
        let losing =
            self.causes(Effect::LosesEnd).map_or(&[][..], |found| found.at(Shared::Nothing));
        let at_end = losing
            .iter()
            .map(|&(_, number)| number)
            .find(|number| self.fault(*number).is_some_and(|fault| self.is_at_end(fault)));
        let gravest = strong.iter().min_by_key(|(_, fault)| fault.weight());
        let reach = strong.iter().map(|(_, fault)| fault.last_claimed()).max();
        let (Some(&(first, _)), Some(reach)) = (gravest, reach) else { return };
        let head = at_end.unwrap_or(first);
        let mut witnesses: Vec<usize> = strong.iter().map(|&(number, _)| number).collect();
        let grave = strong.iter().filter(|(_, fault)| fault.severity > Severity::Info);
        if let Some(last) = grave.map(|(_, fault)| fault.last_claimed()).max() {
            // Groups that committed offsets of an earlier topic of this name prove nothing.
            let files: HashSet<_> = strong.iter().map(|(_, fault)| fault.path).collect();
            if at_end.is_some() || files.len() > 1 || !end.is_clean {
                self.lost_end.insert(head, (end.offset, last));
                let weaker =
                    shows.iter().filter(|(_, fault)| fault.is_explained(end.offset, reach));
                witnesses.extend(weaker.map(|&(number, _)| number));
            } else {
                self.contradicted.insert(head);
            }
        }
        let root = self.root(head);
        for witness in witnesses {
            if witness != root && !self.has_cause(witness) {
                self.set_cause(witness, root);
            }
        }
    }

    /// Joins findings of one kind that have one cause although neither is a trace.
    fn join_alike(&mut self) {
        let mut alike: HashMap<Joint<'a>, Vec<usize>> = HashMap::new();
        for (number, (_, fault)) in self.faults.iter().enumerate() {
            if let Some(joint) = fault.joint() {
                alike.entry(joint).or_default().push(number);
            }
        }
        for numbers in alike.into_values() {
            let traced = numbers.iter().find(|number| self.has_cause(**number));
            let Some(&joined) = traced.or(numbers.first()) else { continue };
            // One of them may be what another is a trace of, as that of a lost end.
            let root = self.root(joined);
            for number in numbers {
                if number != root && !self.has_cause(number) {
                    self.set_cause(number, root);
                }
            }
        }
    }
}

impl<'a> Fault<'a> {
    fn row(&self) -> &'static Row {
        self.kind.row()
    }

    pub(crate) fn is_lawful(&self) -> bool {
        self.cause.is_some_and(|cause| cause.row().is_lawful)
    }

    pub(crate) fn file_kind(&self) -> Option<FileKind> {
        self.path.map(|path| FileName::parse(base_name(path)).kind)
    }

    fn waits_for_end(&self) -> bool {
        self.row().consumers == ConsumerEffect::WaitForEnd
    }

    fn last(&self) -> i64 {
        self.last_offset.or(self.first_offset).unwrap_or(-1)
    }

    /// The number of offsets of a finding that has some.
    fn offsets(&self) -> i64 {
        self.last().saturating_sub(self.first_offset.unwrap_or(0)).saturating_add(1)
    }

    /// How far the sequences of a producer go back; `None` for a batch that is stored again.
    fn sequences_back(&self) -> Option<i64> {
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<i64>().ok().filter(|_| is_number)
        };
        Some(number(self.expected)?.saturating_sub(number(self.found)?))
    }

    /// Whether it is about an index, whose entries alone do not prove that the log was longer.
    pub(crate) fn is_of_index(&self) -> bool {
        matches!(
            self.file_kind(),
            Some(FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TransactionIndex)
        )
    }

    /// Whether it has an offset behind the end that only a longer log explains.
    fn proves_longer_than(&self, end: i64) -> bool {
        let is_beyond = self.first_offset.is_some() && self.last() >= end;
        is_beyond && !self.waits_for_end() && !self.is_of_index()
    }

    /// Whether a lost end explains it, although it does not prove one: entries of indexes between the end
    /// and the last offset known, and open transactions.
    fn is_explained(&self, end: i64, reach: i64) -> bool {
        let is_between = self.first_offset.is_some_and(|first| end <= first && first <= reach);
        self.waits_for_end() || (is_between && self.is_of_index())
    }

    fn last_claimed(&self) -> i64 {
        // What a group commits is the offset of the record after the last one that it got.
        self.last().saturating_sub(i64::from(self.kind == FindingKind::CommitBeyondEnd))
    }

    fn weight(&self) -> (Reverse<Severity>, &'static str, &'a [u8]) {
        (Reverse(self.severity), self.kind.name(), self.path.unwrap_or(b""))
    }

    fn joint(&self) -> Option<Joint<'a>> {
        let of_kind = (self.kind, None, None, None);
        match self.row().joins {
            Joining::Nothing => None,
            Joining::SameBatch => Some((self.kind, self.path, self.position, None)),
            Joining::SameFile => Some((self.kind, self.path, None, None)),
            Joining::SamePartition => Some(of_kind),
            Joining::SameLawfulCause => {
                self.is_lawful().then_some((self.kind, None, None, self.cause))
            }
        }
    }
}
